// NVRTC, loaded at run time.
// It comes with pip's wheels, with PyTorch or with a toolkit; linking to one of them would tie helve to it.
#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>

#include "helve/support/diagnostic.h"
#include "helve/support/text.h"
#include "toolchain.h"
#include "toolkit_folders.h"

namespace helve::runtime::cuda {

namespace fs = std::filesystem;

namespace {

using NvrtcProgram = struct ProgramHandle*;

/// The functions of libnvrtc; all return a result code, 0 for success.
struct Functions {
  int (*nvrtcVersion)(int*, int*);
  int (*nvrtcGetNumSupportedArchs)(int*);
  int (*nvrtcGetSupportedArchs)(int*);
  int (*nvrtcCreateProgram)(NvrtcProgram*, const char*, const char*, int, const char* const*, const char* const*);
  int (*nvrtcDestroyProgram)(NvrtcProgram*);
  int (*nvrtcCompileProgram)(NvrtcProgram, int, const char* const*);
  int (*nvrtcGetCUBINSize)(NvrtcProgram, size_t*);
  int (*nvrtcGetCUBIN)(NvrtcProgram, char*);
  int (*nvrtcGetPTXSize)(NvrtcProgram, size_t*);
  int (*nvrtcGetPTX)(NvrtcProgram, char*);
  int (*nvrtcGetProgramLogSize)(NvrtcProgram, size_t*);
  int (*nvrtcGetProgramLog)(NvrtcProgram, char*);
  const char* (*nvrtcGetErrorString)(int);
};

constexpr const char* kNames[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};

/// Folders that may contain the library, in search order.
std::vector<fs::path> folders(const std::vector<std::string>& site_packages) {
  return toolkit_folders(site_packages, {"nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"}, "lib64");
}

/// NVRTC opens its library of built-ins by name and finds it by its own run path, which does not work if dlopen is
/// wrapped (sanitizers, profilers): a library that is already loaded is always found.
void open_builtins(const fs::path& folder) {
  std::error_code fault;
  for (fs::directory_iterator it(folder, fault), end; !fault && it != end; it.increment(fault)) {
    if (it->path().filename().string().starts_with("libnvrtc-builtins.so."))
      (void)dlopen(it->path().c_str(), RTLD_NOW | RTLD_LOCAL);
  }
}

void* open_library(const std::vector<std::string>& site_packages) {
  const auto fail = [](std::string reason) {
    throw UserError(Code::NvrtcMissing, {}, {{"reason", std::move(reason)}});
  };
  const char* named = std::getenv("HELVE_NVRTC");
  if (named != nullptr && *named != '\0') {
    open_builtins(fs::path(named).parent_path());
    if (void* handle = dlopen(named, RTLD_NOW | RTLD_LOCAL)) return handle;
    fail(dlerror());
  }
  const std::vector<fs::path> places = folders(site_packages);
  for (const fs::path& folder : places) {
    for (const char* name : kNames) {
      std::error_code fault;
      if (!fs::exists(folder / name, fault)) continue;
      open_builtins(folder);
      if (void* handle = dlopen((folder / name).c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
      fail(dlerror());
    }
  }
  for (const char* name : kNames) {
    if (void* handle = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return handle;
  }
  fail(fmt::format(
      "there is no {} in {} nor in the system's library path", kNames[2],
      places.empty() ? "/usr/local/cuda*/lib64" : join(places, ", ", [](const fs::path& p) { return p.string(); })));
  return nullptr;
}

class Nvrtc final : public Toolchain {
 public:
  explicit Nvrtc(void* handle) {
    auto bind = [handle](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
      if (function == nullptr) {
        throw UserError(Code::NvrtcMissing, {}, {{"reason", fmt::format("the library has no function {}", name)}});
      }
    };
#define HELVE_BIND(name) bind(call_.name, #name)
    HELVE_BIND(nvrtcVersion);
    HELVE_BIND(nvrtcGetNumSupportedArchs);
    HELVE_BIND(nvrtcGetSupportedArchs);
    HELVE_BIND(nvrtcCreateProgram);
    HELVE_BIND(nvrtcDestroyProgram);
    HELVE_BIND(nvrtcCompileProgram);
    HELVE_BIND(nvrtcGetCUBINSize);
    HELVE_BIND(nvrtcGetCUBIN);
    HELVE_BIND(nvrtcGetPTXSize);
    HELVE_BIND(nvrtcGetPTX);
    HELVE_BIND(nvrtcGetProgramLogSize);
    HELVE_BIND(nvrtcGetProgramLog);
    HELVE_BIND(nvrtcGetErrorString);
#undef HELVE_BIND
    int major = 0, minor = 0, count = 0;
    check(call_.nvrtcVersion(&major, &minor), "nvrtcVersion");
    text_ = fmt::format("NVRTC {}.{}", major, minor);
    if (major >= 13) flags_.push_back("--minimal");  // the text declares what it uses: a tenth of the time
    // What its own cache gives back has no log, in which registers and spills are; helve has a cache itself.
    if (accepts("--no-cache")) flags_.push_back("--no-cache");
    check(call_.nvrtcGetNumSupportedArchs(&count), "nvrtcGetNumSupportedArchs");
    architectures_.resize(static_cast<size_t>(count));
    check(call_.nvrtcGetSupportedArchs(architectures_.data()), "nvrtcGetSupportedArchs");
  }

  const std::string& text() const override { return text_; }
  const std::vector<int>& architectures() const override { return architectures_; }

  Result compile(std::string_view source, const std::string& name, const std::string& arch,
                 const std::vector<std::string>& flags) const override {
    std::vector<std::string> all = flags_;
    all.push_back("--gpu-architecture=" + arch);
    all.insert(all.end(), flags.begin(), flags.end());
    return compile(source, name, all, makes_ptx(arch));
  }

 private:
  Result compile(std::string_view source, const std::string& name, const std::vector<std::string>& all,
                 bool ptx) const {
    std::vector<const char*> pointers;
    for (const std::string& flag : all) pointers.push_back(flag.c_str());
    NvrtcProgram program = nullptr;
    check(call_.nvrtcCreateProgram(&program, std::string(source).c_str(), name.c_str(), 0, nullptr, nullptr),
          "nvrtcCreateProgram");
    struct Destroy {
      const Functions& call;
      NvrtcProgram program;
      ~Destroy() { call.nvrtcDestroyProgram(&program); }
    } destroy{call_, program};
    const int outcome = call_.nvrtcCompileProgram(program, static_cast<int>(pointers.size()), pointers.data());
    Result out{outcome == 0, {}, {}};
    size_t bytes = 0;
    check(call_.nvrtcGetProgramLogSize(program, &bytes), "nvrtcGetProgramLogSize");
    out.log.resize(bytes);
    check(call_.nvrtcGetProgramLog(program, out.log.data()), "nvrtcGetProgramLog");
    while (!out.log.empty() && (out.log.back() == '\0' || out.log.back() == '\n')) out.log.pop_back();
    if (!out.compiled) {
      if (out.log.empty()) out.log = call_.nvrtcGetErrorString(outcome);
      return out;
    }
    check(ptx ? call_.nvrtcGetPTXSize(program, &bytes) : call_.nvrtcGetCUBINSize(program, &bytes), "nvrtcGet...Size");
    out.bytes.resize(bytes);
    check(ptx ? call_.nvrtcGetPTX(program, out.bytes.data()) : call_.nvrtcGetCUBIN(program, out.bytes.data()),
          ptx ? "nvrtcGetPTX" : "nvrtcGetCUBIN");
    while (ptx && !out.bytes.empty() && out.bytes.back() == '\0') out.bytes.pop_back();
    return out;
  }

  /// Does this version have the option? The first one that it lacks ends a compile before it begins.
  bool accepts(const std::string& option) const {
    return compile("", "none.cu", {option, "--no-such-option"}, false).log.find(option) == std::string::npos;
  }

  void check(int result, const char* function) const {
    HELVE_CHECK(result == 0, fmt::format("{} failed: {}", function, call_.nvrtcGetErrorString(result)));
  }

  Functions call_{};
  std::string text_;
  std::vector<std::string> flags_ = {"--std=c++17", "--ptxas-options=-v"};  ///< of every program
  std::vector<int> architectures_;
};

}  // namespace

std::shared_ptr<const Toolchain> nvrtc(const std::vector<std::string>& site_packages) {
  static std::mutex mutex;
  static std::map<void*, std::shared_ptr<const Toolchain>> loaded;
  void* handle = open_library(site_packages);
  std::lock_guard<std::mutex> lock(mutex);
  std::shared_ptr<const Toolchain>& slot = loaded[handle];
  if (slot == nullptr) slot = std::make_shared<Nvrtc>(handle);
  return slot;
}

}  // namespace helve::runtime::cuda
