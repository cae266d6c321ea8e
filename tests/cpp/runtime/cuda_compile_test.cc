// Compiling CUDA C: real sources by NVRTC and nvcc where they are, the log, the cache, the faults.
#include "helve/runtime/cuda/compile.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "processes.h"
#include "temporary_folder.h"

namespace helve::runtime::cuda {
namespace {

constexpr const char* kAdd = R"(extern "C" __global__ void add(float* x, long long n) {
  long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i < n) x[i] += 1.0f;
})";

/// 64 products that live across a loop in 32 registers, and an array that is indexed by a variable.
constexpr const char* kSpilling = R"(
extern "C" __global__ void __launch_bounds__(1024, 2) spill(float* a, int n) {
  float v[64];
  for (int i = 0; i < 64; ++i) v[i] = a[i * threadIdx.x];
  for (int k = 0; k < n; ++k)
    for (int i = 0; i < 64; ++i) v[i] = v[i] * v[(i * 7 + 3) % 64] + a[k];
  for (int i = 0; i < 64; ++i) a[i] = v[i];
}
extern "C" __global__ void lookup(float* a, int n) {
  float v[64];
  for (int i = 0; i < n; ++i) v[(i * n) & 63] = a[i];
  for (int i = 0; i < 64; ++i) a[i] = v[(i + n) & 63];
}
extern "C" __global__ void shared(float* a) {
  __shared__ float s[100];
  s[threadIdx.x] = a[threadIdx.x];
  __syncthreads();
  a[threadIdx.x] = s[99 - threadIdx.x];
})";

/// HELVE_TEST_SITE_PACKAGES stands for the folders of Python packages that Python's binding hands over.
CompileOptions options_in(const std::string& cache, Compiler compiler) {
  CompileOptions options;
  options.compiler = compiler;
  options.cache = DiskCache(cache, int64_t{1} << 26);
  if (const char* site = std::getenv("HELVE_TEST_SITE_PACKAGES")) options.site_packages = {site};
  return options;
}

class CudaCompile : public testing::TestWithParam<Compiler> {
 protected:
  void SetUp() override {
    try {
      compiler_text(options());
    } catch (const UserError& error) {
      GTEST_SKIP() << error.what();
    }
  }
  CompileOptions options() const { return options_in(folder_.path(), GetParam()); }
  TemporaryFolder folder_;
};

std::string elf_machine(const std::string& bytes) {
  return bytes.size() > 20 ? bytes.substr(0, 4) + bytes.substr(18, 1) : std::string();
}

TEST_P(CudaCompile, MakesCubinsForEachArchitecture) {
  for (const char* arch : {"sm_80", "sm_90a"}) {
    const Cubin cubin = compile_cubin(kAdd, "add.cu", arch, options());
    EXPECT_EQ(elf_machine(cubin.bytes), std::string("\x7f"
                                                    "ELF\xbe"));  // EM_CUDA
    EXPECT_EQ(cubin.arch, arch);
    EXPECT_FALSE(cubin.from_cache);
    EXPECT_TRUE(cubin.warnings.empty());
    ASSERT_NE(cubin.find("add"), nullptr) << cubin.log;
    EXPECT_EQ(cubin.kernels.size(), 1u);
    EXPECT_GT(cubin.find("add")->registers, 2);
    EXPECT_EQ(cubin.find("add")->local_bytes, 0);
    EXPECT_EQ(cubin.find("subtract"), nullptr);
  }
}

TEST_P(CudaCompile, ReportsWhatKernelsTake) {
  const Cubin cubin = compile_cubin(kSpilling, "spill.cu", "sm_80", options());
  const KernelResources *spill = cubin.find("spill"), *lookup = cubin.find("lookup"), *shared = cubin.find("shared");
  ASSERT_TRUE(spill != nullptr && lookup != nullptr && shared != nullptr) << cubin.log;
  EXPECT_EQ(spill->registers, 32);
  EXPECT_GT(spill->spill_store_bytes, 0);
  EXPECT_GE(spill->local_bytes, spill->spill_store_bytes / 4);
  EXPECT_EQ(lookup->local_bytes, 256);
  EXPECT_EQ(lookup->spill_load_bytes, 0);
  EXPECT_EQ(shared->shared_bytes, 400);
  EXPECT_EQ(shared->local_bytes, 0);
  ASSERT_EQ(cubin.warnings.size(), 2u);
  for (const Diagnostic& warning : cubin.warnings) {
    EXPECT_EQ(warning.code,
              std::get<std::string>(warning.args[0].second) == "spill" ? Code::RegisterSpills : Code::LocalArrays);
  }
}

TEST_P(CudaCompile, AnswersFromTheCache) {
  const Cubin first = compile_cubin(kSpilling, "k.cu", "sm_80", options());
  const Cubin second = compile_cubin(kSpilling, "k.cu", "sm_80", options());
  EXPECT_TRUE(second.from_cache);
  EXPECT_EQ(second.bytes, first.bytes);
  EXPECT_EQ(second.kernels, first.kernels);
  EXPECT_EQ(second.warnings.size(), first.warnings.size());
  CompileOptions fast = options();
  fast.flags = {"--use_fast_math"};
  EXPECT_FALSE(compile_cubin(kSpilling, "k.cu", "sm_80", fast).from_cache);
  EXPECT_FALSE(compile_cubin(kAdd, "k.cu", "sm_80", options()).from_cache);
  EXPECT_FALSE(compile_cubin(kSpilling, "k.cu", "sm_90a", options()).from_cache);
}

TEST_P(CudaCompile, WhatDoesNotCompileIsAFaultOfHelve) {
  try {
    compile_cubin("extern \"C\" __global__ void f() { undeclared(); }\n", "f.cu", "sm_80", options());
    FAIL() << "it compiled";
  } catch (const InternalError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("does not compile what helve wrote for sm_80"), std::string::npos) << text;
    EXPECT_NE(text.find("identifier \"undeclared\" is undefined"), std::string::npos) << text;
    EXPECT_NE(text.find("--- f.cu\nextern \"C\" __global__ void f() { undeclared(); }"), std::string::npos) << text;
  }
}

TEST_P(CudaCompile, UnknownArchitectures) {
  for (const char* arch : {"sm_12", "sm_", "90a", "sm_90x", "sm_80a", "compute_90", ""}) {
    try {
      compile_cubin(kAdd, "add.cu", arch, options());
      FAIL() << arch;
    } catch (const UserError& error) {
      const std::string head =
          "error[HV0906]: " + compiler_text(options()) + " does not compile for '" + arch + "'\nhelp: it compiles for ";
      EXPECT_EQ(std::string(error.what()).substr(0, head.size()), head);
      EXPECT_NE(std::string(error.what()).find("sm_80, "), std::string::npos);
      EXPECT_NE(std::string(error.what()).find("sm_90, sm_90a, "), std::string::npos);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Toolchains, CudaCompile, testing::Values(Compiler::Nvrtc, Compiler::Nvcc),
                         [](const auto& info) { return info.param == Compiler::Nvrtc ? "Nvrtc" : "Nvcc"; });

/// 64 processes compile the same source and one of eight others at once: all get sound cubins, and at the end every
/// source is in the cache.
TEST(CudaCompileProcesses, ShareOneCache) {
  const TemporaryFolder folder;
  const CompileOptions options = options_in(folder.path(), Compiler::Nvrtc);
  const auto source_of = [](int n) {
    std::ostringstream out;
    out << "extern \"C\" __global__ void k" << n << "(int* x) { x[threadIdx.x] *= " << n + 2 << "; }";
    return out.str();
  };
  try {
    compiler_text(options);
  } catch (const UserError& error) {
    GTEST_SKIP() << error.what();
  }
  // Here first: what fails in this process would fail in all of them.
  ASSERT_NO_THROW(compile_cubin(source_of(9), "k.cu", "sm_80", options));
  run_processes(64, [&](int process) {
    int faults = 0;
    for (int n : {0, 1 + process % 8}) {
      const Cubin cubin = compile_cubin(source_of(n), "k.cu", "sm_80", options);
      faults += cubin.find("k" + std::to_string(n)) == nullptr || !cubin.warnings.empty() || cubin.bytes.size() < 500;
    }
    return faults;
  });
  for (int n = 0; n <= 8; ++n) EXPECT_TRUE(compile_cubin(source_of(n), "k.cu", "sm_80", options).from_cache) << n;
}

TEST(PtxasLog, IsReadLineByLine) {
  const std::vector<KernelResources> kernels =
      read_ptxas_log("ptxas info    : 0 bytes gmem\n"
                     "ptxas info    : Compiling entry function 'first' for 'sm_90a'\n"
                     "ptxas info    : Function properties for first\n"
                     "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
                     "ptxas info    : Used 12 registers, used 1 barriers, 4096 bytes smem, 380 bytes cmem[0]\n"
                     "ptxas info    : Compiling entry function 'second' for 'sm_90a'\n"
                     "ptxas info    : Function properties for helper\n"
                     "    64 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads\n"
                     "ptxas info    : Function properties for second\n"
                     "ptxas         .     296 bytes stack frame, 568 bytes spill stores, 612 bytes spill loads\n"
                     "ptxas info    : Used 255 registers, used 0 barriers, 296 bytes cumulative stack size");
  const std::vector<KernelResources> expected = {{"first", 12, 4096, 0, 0, 0}, {"second", 255, 0, 296, 568, 612}};
  EXPECT_EQ(kernels, expected);
  EXPECT_TRUE(read_ptxas_log("").empty());
  EXPECT_TRUE(read_ptxas_log("nvrtc: error: x").empty());
  const std::vector<Diagnostic> warnings =
      warnings_of({{"first", 12, 0, 0, 0, 0}, expected[1], {"third", 9, 0, 64, 0, 0}});
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_EQ(to_text(warnings[0]),
            "warning[HV0907]: kernel 'second' spills registers: 568 bytes of stores and 612 bytes of "
            "loads a thread\nhelp: use smaller tiles, or more threads");
  EXPECT_EQ(to_text(warnings[1]),
            "warning[HV0908]: kernel 'third' keeps 64 bytes a thread of local arrays in memory\nhelp: "
            "index local arrays by constants and unrolled loops, so that they fit registers");
}

/// The fault with a variable of the environment set, or what was found.
std::string with(const std::vector<std::pair<const char*, const char*>>& environment, Compiler compiler) {
  const TemporaryFolder folder;
  for (const auto& [name, value] : environment) setenv(name, value, 1);
  std::string out;
  try {
    out = compiler_text(options_in(folder.path(), compiler));
  } catch (const UserError& error) {
    out = error.what();
  }
  for (const auto& [name, value] : environment) unsetenv(name);
  return out;
}

/// A program of the shell; its path.
std::string script_in(const TemporaryFolder& folder, const std::string& name, const std::string& body) {
  const std::string path = folder.path() + "/" + name;
  std::ofstream(path) << "#!/bin/sh\n" << body << "\n";
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  return path;
}

TEST(Toolchains, AreMissedByName) {
  const std::string nvrtc =
      "error[HV0905]: NVRTC, the compiler of CUDA C, cannot be loaded: /none/libnvrtc.so: cannot open shared object "
      "file: "
      "No such file or directory";
  const std::string pip = "\nhelp: pip install helve[cuda], or name the library by HELVE_NVRTC";
  const std::string nvcc = "nvcc cannot be run: /none/nvcc: No such file or directory";
  EXPECT_EQ(with({{"HELVE_NVRTC", "/none/libnvrtc.so"}}, Compiler::Nvrtc), nvrtc + pip);
  EXPECT_EQ(with({{"HELVE_NVCC", "/none/nvcc"}}, Compiler::Nvcc),
            "error[HV0909]: " + nvcc + "\nhelp: put nvcc on PATH, or name it by HELVE_NVCC");
  EXPECT_EQ(with({{"HELVE_NVRTC", "/none/libnvrtc.so"}, {"HELVE_NVCC", "/none/nvcc"}}, Compiler::Auto),
            nvrtc + "\nnote: nvcc would do as well: " + nvcc + pip);
  const TemporaryFolder folder;
  const auto script = [&](const char* name, const char* body) { return script_in(folder, name, body); };
  const std::string failing = script("failing", "echo no licence; exit 3"), silent = script("silent", "echo hello");
  const std::string help = "\nhelp: put nvcc on PATH, or name it by HELVE_NVCC";
  EXPECT_EQ(with({{"HELVE_NVCC", failing.c_str()}}, Compiler::Nvcc),
            "error[HV0909]: nvcc cannot be run: " + failing + " --version failed: no licence\n" + help);
  EXPECT_EQ(with({{"HELVE_NVCC", silent.c_str()}}, Compiler::Nvcc),
            "error[HV0909]: nvcc cannot be run: " + silent + " does not tell its version" + help);
}

/// What the machine code is said to be, or the fault, with that program for it.
std::string machine_code_by(const std::string& program) {
  setenv("HELVE_NVDISASM", program.c_str(), 1);
  std::string out;
  try {
    out = machine_code_text({"sm_80", "the image", {}, {}, {}, {}, false});
  } catch (const UserError& error) {
    out = error.what();
  }
  unsetenv("HELVE_NVDISASM");
  return out;
}

TEST(Toolchains, MachineCodeIsPrintedByAProgram) {
  const TemporaryFolder folder;
  const auto script = [&](const char* name, const char* body) { return script_in(folder, name, body); };
  EXPECT_EQ(machine_code_by(script("prints", "echo \"$1\"; cat \"$2\"")), "--print-code\nthe image");
  const std::string fault = "error[HV0913]: nvdisasm, which prints machine code, cannot be run: ";
  const std::string help = "\nhelp: pip install nvidia-cuda-nvdisasm, put it on PATH, or name it by HELVE_NVDISASM";
  EXPECT_EQ(machine_code_by("/none/nvdisasm"), fault + "/none/nvdisasm: No such file or directory" + help);
  const std::string failing = script("failing", "echo no image; exit 3");
  EXPECT_EQ(machine_code_by(failing), fault + failing + " failed: no image\n" + help);
}

TEST(Toolchains, ALibraryThatIsNoNvrtcIsRefused) {
  EXPECT_EQ(with({{"HELVE_NVRTC", "libm.so.6"}}, Compiler::Nvrtc).substr(0, 110),
            std::string("error[HV0905]: NVRTC, the compiler of CUDA C, cannot be loaded: the library has no function "
                        "nvrtcVersion\nhelp:")
                .substr(0, 110));
}

}  // namespace
}  // namespace helve::runtime::cuda
