// The kernels of collectives: their text, compiled for the CPU, against the host's communicator; and by NVRTC.
#include "cuda/collectives.h"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <random>
#include <sstream>

#include "fake_driver.h"
#include "helve/runtime/cuda/executor.h"
#include "helve/runtime/minifloat.h"
#include "helve/support/diagnostic.h"
#include "host_tensor.h"
#include "temporary_folder.h"

namespace helve::runtime::cuda {
namespace {

using P = ScalarProgram;

constexpr DLDataType kReducible[] = {
    {kDLFloat, 64, 1},      {kDLFloat, 32, 1}, {kDLFloat, 16, 1}, {kDLBfloat, 16, 1}, {kDLFloat8_e4m3fn, 8, 1},
    {kDLFloat8_e5m2, 8, 1}, {kDLInt, 8, 1},    {kDLInt, 16, 1},   {kDLInt, 32, 1},    {kDLInt, 64, 1},
    {kDLUInt, 8, 1},        {kDLUInt, 16, 1},  {kDLUInt, 32, 1},  {kDLUInt, 64, 1},   {kDLBool, 8, 1},
};

/// A plan of one collective between per-core buffers of `elements` elements; with one buffer, in place.
struct Case {
  std::vector<int64_t> mesh;
  Collective step;
  int64_t elements;
};

Collective collective(CollectiveKind kind, uint64_t axes, DLDataType dtype, ReduceOp op, bool in_place,
                      std::vector<int64_t> extents, std::vector<int64_t> src_strides, std::vector<int64_t> dst_strides,
                      int64_t src_offset, int64_t dst_offset, int64_t member_src, int64_t member_dst) {
  Collective out;
  out.kind = kind;
  out.axes = axes;
  out.src = 0;
  out.dst = in_place ? 0 : 1;
  out.src_offset = src_offset;
  out.dst_offset = dst_offset;
  for (int64_t n : extents) out.extents.emplace_back(n);
  for (int64_t n : src_strides) out.src_strides.emplace_back(n);
  for (int64_t n : dst_strides) out.dst_strides.emplace_back(n);
  out.member_stride_src = member_src;
  out.member_stride_dst = member_dst;
  out.op = op;
  out.dtype = dtype;
  out.root = 1;
  return out;
}

std::vector<Case> cases() {
  std::vector<Case> out;
  const DLDataType odd{kDLFloat, 32, 3};  // 12 bytes, moved as they are
  for (const std::vector<int64_t>& mesh : {std::vector<int64_t>{2, 3}, {3, 2}, {2, 2}}) {
    for (uint64_t axes : {1u, 2u, 3u}) {
      for (bool in_place : {false, true}) {
        const int64_t members = group_size(mesh, axes);
        std::vector<DLDataType> dtypes = {odd};
        if (axes == 2) dtypes = {kReducible[1], kReducible[2], kReducible[6], kReducible[9]};
        for (DLDataType dtype : dtypes) {
          // A box of 3 x 5, its rows 7 apart and backwards on one side.
          out.push_back({mesh,
                         collective(CollectiveKind::AllGather, axes, dtype, ReduceOp::Sum, in_place, {3, 5}, {7, 1},
                                    {5, 1}, 1, 0, 0, 15),
                         21 + 15 * members});
          out.push_back({mesh,
                         collective(CollectiveKind::Broadcast, axes, dtype, ReduceOp::Sum, in_place, {3, 5}, {7, 1},
                                    {-7, 1}, 0, 16, 0, 0),
                         40});
          out.push_back(
              {mesh,
               collective(CollectiveKind::AllToAll, axes, dtype, ReduceOp::Sum, in_place, {4}, {1}, {1}, 0, 0, 4, 4),
               4 * members});
        }
        out.push_back({mesh,
                       collective(CollectiveKind::AllReduce, axes, kFloat32, ReduceOp::Sum, in_place, {2, 1, 600},
                                  {700, 1, 1}, {600, 9, 1}, 3, 0, 0, 0),
                       1500});
        out.push_back({mesh,
                       collective(CollectiveKind::ReduceScatter, axes, kFloat32, ReduceOp::Max, in_place, {6}, {1}, {2},
                                  0, 1, 6, 0),
                       12 + 6 * members});
        Collective permute =
            collective(CollectiveKind::Permute, axes, kFloat32, ReduceOp::Sum, in_place, {9}, {1}, {1}, 2, 2, 0, 0);
        permute.source = P::binary(ScalarOp::Sub, P::slot(0), P(1));  // none before the first
        out.push_back({mesh, permute, 16});
        permute.source = P::binary(ScalarOp::FloorMod, P::binary(ScalarOp::Add, P::slot(0), P(2)), P(members));
        out.push_back({mesh, permute, 16});
        Collective gather = collective(CollectiveKind::Gather, axes, kFloat32, ReduceOp::Sum, in_place, {3, 5}, {7, 1},
                                       {5, 1}, 1, 0, 0, 15);
        Collective scatter =
            collective(CollectiveKind::Scatter, axes, kFloat32, ReduceOp::Sum, in_place, {6}, {1}, {2}, 0, 1, 6, 0);
        Collective sum = collective(CollectiveKind::Reduce, axes, kFloat32, ReduceOp::Sum, in_place, {2, 1, 600},
                                    {700, 1, 1}, {600, 9, 1}, 3, 0, 0, 0);
        for (int64_t root : {int64_t{0}, members - 1}) {
          gather.root = scatter.root = sum.root = P(root);
          out.push_back({mesh, gather, 21 + 15 * members});
          out.push_back({mesh, scatter, 12 + 6 * members});
          out.push_back({mesh, sum, 1500});
        }
      }
    }
  }
  for (DLDataType dtype : kReducible) {
    for (ReduceOp op : {ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Max, ReduceOp::Min}) {
      out.push_back(
          {{2, 3}, collective(CollectiveKind::AllReduce, 2, dtype, op, true, {500}, {1}, {1}, 0, 0, 0, 0), 500});
    }
  }
  out.push_back(
      {{2, 3},
       collective(CollectiveKind::AllReduce, 2, kFloat32, ReduceOp::Sum, true, {0, 4}, {1, 1}, {1, 1}, 0, 0, 0, 0),
       4});
  Collective far = collective(CollectiveKind::Permute, 2, kFloat32, ReduceOp::Sum, false, {2}, {1}, {1}, 0, 0, 0, 0);
  far.source = P::binary(ScalarOp::Sub, P(599), P::binary(ScalarOp::Mul, P(2), P::slot(0)));  // several launches
  out.push_back({{2, 600}, far, 2});
  return out;
}

/// What the kernels use of CUDA, for a compiler of C++.
constexpr const char* kCudaOnCpu = R"(
#include <cstring>
#define __global__
#define __device__
#define __constant__ static const
#define __grid_constant__
struct Axis { unsigned x; };
static Axis blockIdx, blockDim, threadIdx, gridDim;
static float __uint_as_float(unsigned v) { float f; std::memcpy(&f, &v, 4); return f; }
static unsigned __float_as_uint(float v) { unsigned u; std::memcpy(&u, &v, 4); return u; }
static float __fadd_rn(float a, float b) { return a + b; }
static float __fmul_rn(float a, float b) { return a * b; }
static double __dadd_rn(double a, double b) { return a + b; }
static double __dmul_rn(double a, double b) { return a * b; }
)";

/// Entry `run_<name>(grid, block, parameters)` for each kernel, whose arguments are all 8 bytes, sources of members
/// aside.
std::string entries(const std::vector<const Collective*>& steps) {
  std::ostringstream out;
  for (size_t c = 0; c < steps.size(); ++c) {
    const std::string name = collective_name(c);
    const size_t numbers = 10 + 3 * steps[c]->extents.size();
    out << "extern \"C\" void run_" << name << "(unsigned grid, unsigned block, void** p) {\n"
        << "  gridDim.x = grid; blockDim.x = block;\n"
        << "  for (blockIdx.x = 0; blockIdx.x < grid; ++blockIdx.x) for (threadIdx.x = 0; threadIdx.x < block; "
           "++threadIdx.x)\n"
        << "    " << name << "(*(const char**)p[0], *(char**)p[1], *(char**)p[2]";
    for (size_t n = 0; n < numbers; ++n) out << ", *(Int*)p[" << 3 + n << "]";
    if (steps[c]->kind == CollectiveKind::Permute) {
      out << ", *(Sources_" << name << "*)p[" << 3 + numbers << "], *(Int*)p[" << 4 + numbers << "]";
    }
    out << ");\n}\n";
  }
  return out.str();
}

using Entry = void (*)(unsigned grid, unsigned block, void** parameters);
Entry current = nullptr;

/// The driver's launch goes to the kernel that is compiled for the CPU.
void run_current(const LaunchConfig& config, void** parameters) {
  current(config.grid[0], config.block[0], parameters);
}

class CudaCollectives : public FakeDriverTest {};

std::vector<std::byte> random_bytes(size_t count, DLDataType dtype, std::mt19937& random) {
  std::vector<std::byte> out(count);
  for (std::byte& byte : out) byte = static_cast<std::byte>(random());
  if (dtype.code == kDLBool) {
    for (std::byte& byte : out) byte &= std::byte{1};
  }
  if (dtype.code == kDLFloat && dtype.bits == 32 && dtype.lanes == 1) {  // numbers whose sums are exact in no order
    for (size_t i = 0; i + 4 <= count; i += 4) {
      const float value = std::uniform_real_distribution<float>(-2, 2)(random);
      std::memcpy(out.data() + i, &value, 4);
    }
  }
  return out;
}

bool is_nan(const std::byte* at, DLDataType dtype) {
  uint64_t bits = 0;
  std::memcpy(&bits, at, static_cast<size_t>(element_bytes(dtype)));
  switch (dtype.code << 8 | dtype.bits) {
    case kDLFloat << 8 | 64: return std::isnan(std::bit_cast<double>(bits));
    case kDLFloat << 8 | 32: return std::isnan(std::bit_cast<float>(static_cast<uint32_t>(bits)));
    case kDLFloat << 8 | 16: return std::isnan(Float16::decode(static_cast<uint32_t>(bits)));
    case kDLBfloat << 8 | 16: return std::isnan(BFloat16::decode(static_cast<uint32_t>(bits)));
    case kDLFloat8_e4m3fn << 8 | 8: return std::isnan(Float8E4M3Fn::decode(static_cast<uint32_t>(bits)));
    case kDLFloat8_e5m2 << 8 | 8: return std::isnan(Float8E5M2::decode(static_cast<uint32_t>(bits)));
    default: return false;
  }
}

/// The cores of random groups over `axes`, ascending.
std::vector<int64_t> some_groups(const std::vector<int64_t>& mesh, uint64_t axes, std::mt19937& random) {
  std::vector<int64_t> out;
  std::map<int64_t, bool> chosen;  // by the core of the group whose coordinates on `axes` are 0
  for (int64_t core = 0; core < mesh[0] * mesh[1]; ++core) {
    const int64_t row = axes & 1 ? 0 : core / mesh[1], column = axes & 2 ? 0 : core % mesh[1];
    const auto [at, fresh] = chosen.try_emplace(row * mesh[1] + column, false);
    if (fresh) at->second = random() % 2 == 0;
    if (at->second) out.push_back(core);
  }
  return out;
}

/// Runs the case's collective by the kernel and by the host, on the same random bytes of every core: for all cores, or
/// for those of some groups.
void compare(const Case& c, Entry entry, bool all, std::mt19937& random) {
  int64_t cores = 1;
  for (int64_t extent : c.mesh) cores *= extent;
  const std::vector<int64_t> part = all ? std::vector<int64_t>{} : some_groups(c.mesh, c.step.axes, random);
  if (!all && part.empty()) return;
  const int64_t stride = (c.elements * element_bytes(c.step.dtype) + 63) / 64 * 64;
  std::vector<std::byte> given[2], expected[2];
  for (int b = 0; b < 2; ++b)
    given[b] = expected[b] = random_bytes(static_cast<size_t>(stride * cores), c.step.dtype, random);
  std::vector<int64_t> extents, src_strides, dst_strides;
  for (const P& p : c.step.extents) extents.push_back(evaluate(p, {}));
  for (const P& p : c.step.src_strides) src_strides.push_back(evaluate(p, {}));
  for (const P& p : c.step.dst_strides) dst_strides.push_back(evaluate(p, {}));
  std::vector<int64_t> sources;
  for (int64_t me = 0; me < group_size(c.mesh, c.step.axes) && c.step.kind == CollectiveKind::Permute; ++me) {
    sources.push_back(evaluate(c.step.source, std::array{me}));
  }
  const auto request_on = [&](std::vector<std::byte>(&memory)[2]) {
    CollectiveRequest r;
    r.mesh = c.mesh;
    r.axes = c.step.axes;
    r.cores = part;
    r.dtype = c.step.dtype;
    r.op = c.step.op;
    r.src = {memory[c.step.src].data(), stride};
    r.dst = {memory[c.step.dst].data(), stride};
    r.src_offset = evaluate(c.step.src_offset, {});
    r.dst_offset = evaluate(c.step.dst_offset, {});
    r.extents = extents;
    r.src_strides = src_strides;
    r.dst_strides = dst_strides;
    r.member_stride_src = evaluate(c.step.member_stride_src, {});
    r.member_stride_dst = evaluate(c.step.member_stride_dst, {});
    r.root = evaluate(c.step.root, {});
    r.sources = sources;
    return r;
  };
  HostCommunicator().run(c.step.kind, request_on(expected));
  const CollectiveRequest request = request_on(given);
  const ExchangeSize size = exchange_size(c.step, request);
  std::vector<std::byte> exchange(static_cast<size_t>(size.exchange_bytes));
  current = entry;
  fake_state().kernels = {run_current};
  const ContextScope context(device(0));
  launch_collective(request, size, exchange.data(), reinterpret_cast<CudaFunction>(uintptr_t{1}), device(0), nullptr);
  const int64_t element = element_bytes(c.step.dtype);
  for (int b = 0; b < 2; ++b) {
    if (given[b] == expected[b]) continue;
    for (size_t at = 0; at + static_cast<size_t>(element) <= given[b].size(); at += static_cast<size_t>(element)) {
      if (std::memcmp(given[b].data() + at, expected[b].data() + at, static_cast<size_t>(element)) == 0) continue;
      if (is_nan(given[b].data() + at, c.step.dtype) && is_nan(expected[b].data() + at, c.step.dtype)) continue;
      FAIL() << name_of(c.step.kind) << " " << to_text(c.step.dtype) << " " << name_of(c.step.op) << " axes "
             << c.step.axes << " mesh " << c.mesh[0] << "x" << c.mesh[1]
             << (c.step.src == c.step.dst ? " in place" : "") << ": byte " << at << " of buffer " << b;
    }
  }
}

TEST_F(CudaCollectives, AgreeWithTheHost) {
  if (std::system("c++ --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "no C++ compiler";
  const std::vector<Case> all = cases();
  std::mt19937 random(1);
  for (const std::vector<int64_t>& mesh : {std::vector<int64_t>{2, 3}, {3, 2}, {2, 2}, {2, 600}}) {
    std::vector<const Collective*> steps;
    std::vector<const Case*> chosen;
    for (const Case& c : all) {
      if (c.mesh != mesh) continue;
      steps.push_back(&c.step);
      chosen.push_back(&c);
    }
    const TemporaryFolder folder;
    const std::string source = folder.path() + "/collectives.cc", library = folder.path() + "/collectives.so";
    std::ofstream(source) << kCudaOnCpu << collective_source(mesh, steps) << entries(steps);
    ASSERT_EQ(std::system(("c++ -O0 -w -shared -fPIC -o " + library + " " + source).c_str()), 0);
    void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(handle, nullptr) << dlerror();
    for (size_t c = 0; c < chosen.size(); ++c) {
      auto* entry = reinterpret_cast<Entry>(dlsym(handle, ("run_" + collective_name(c)).c_str()));
      ASSERT_NE(entry, nullptr);
      for (const bool all : {true, false, false}) compare(*chosen[c], entry, all, random);
    }
    dlclose(handle);
  }
}

CompileOptions toolchain(const std::string& cache) {
  CompileOptions options;
  options.compiler = Compiler::Nvrtc;
  options.cache = DiskCache(cache, int64_t{1} << 26);
  if (const char* site = std::getenv("HELVE_TEST_SITE_PACKAGES")) options.site_packages = {site};
  return options;
}

TEST_F(CudaCollectives, CompileForEachArchitectureWithoutSpills) {
  const TemporaryFolder folder;
  const CompileOptions options = toolchain(folder.path());
  try {
    compiler_text(options);
  } catch (const UserError& error) {
    GTEST_SKIP() << error.what();
  }
  const std::vector<Case> all = cases();
  std::vector<const Collective*> steps;
  for (const Case& c : all) {  // each kernel once: in place or not, it is the same
    const bool of_dtypes = c.elements == 500, once = c.step.axes == 2 && c.step.src != c.step.dst;
    if (c.mesh != std::vector<int64_t>{2, 3}) continue;
    if (of_dtypes ? c.step.op == (c.step.dtype.bits < 32 ? ReduceOp::Max : ReduceOp::Sum) : once)
      steps.push_back(&c.step);
  }
  ASSERT_GT(steps.size(), 25u);
  for (const char* arch : {"sm_80", "sm_90a"}) {
    const Cubin cubin = compile_cubin(collective_source({2, 3}, steps), "collectives.cu", arch, options);
    EXPECT_EQ(cubin.kernels.size(), steps.size());
    EXPECT_TRUE(cubin.warnings.empty());
  }
}

TEST_F(CudaCollectives, RunBetweenTheLaunchesOfAPlan) {
  const TemporaryFolder folder;
  const CompileOptions options = toolchain(folder.path());
  try {
    compiler_text(options);
  } catch (const UserError& error) {
    GTEST_SKIP() << error.what();
  }
  Plan plan;
  plan.name = "sums";
  plan.mesh = {2, 3};
  plan.mesh_axes = {"x", "y"};
  plan.buffers = {{"part", kFloat32, 8, true, 64}};
  Collective sum = collective(CollectiveKind::AllReduce, 3, kFloat32, ReduceOp::Sum, true, {8}, {1}, {1}, 0, 0, 0, 0);
  Collective barrier;
  barrier.kind = CollectiveKind::Barrier;
  plan.steps = {{Allocate{0}}, {barrier}, {sum}};
  fake_state().kernel_names = {"collective_0"};
  static int launches;
  launches = 0;
  fake_state().kernels = {[](const LaunchConfig&, void**) { ++launches; }};
  Cubin cubin;
  cubin.arch = "sm_90a";
  const Executor executor(plan, cubin, {}, options);
  executor.call({});
  EXPECT_EQ(launches, 2);  // in place: all is read before anything is written
  EXPECT_EQ(calls("cuMemAlloc").size(), 2u);
  executor.call({});
  EXPECT_EQ(calls("cuMemAlloc").size(), 2u);
  EXPECT_EQ(calls("cuLaunchKernelEx").back(), "cuLaunchKernelEx grid 1 block 256 shared 0 stream 0");
}

TEST_F(CudaCollectives, DtypesThatCannotBeReduced) {
  const Collective four_bits = collective(CollectiveKind::AllReduce, 1, {kDLFloat4_e2m1fn, 4, 1}, ReduceOp::Max, true,
                                          {8}, {1}, {1}, 0, 0, 0, 0);
  try {
    collective_source({2, 3}, {&four_bits});
    FAIL() << "it compiled";
  } catch (const UserError& error) {
    EXPECT_EQ(std::string(error.what()),
              "error[HV0624]: collectives cannot reduce float4_e2m1fn by max\nhelp: reduce in float32 "
              "and cast the result");
  }
}

}  // namespace
}  // namespace helve::runtime::cuda
