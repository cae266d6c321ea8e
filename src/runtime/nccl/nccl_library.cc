// Finding and binding NCCL.
// What a process has loaded already comes first: PyTorch brings one, and two copies would each open every connection.
#include "helve/runtime/nccl/nccl_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "helve/support/diagnostic.h"

namespace helve::runtime::nccl {

namespace {

constexpr const char* kSoname = "libnccl.so.2";
constexpr const char* kRemedy = "pip install nvidia-nccl-cu13, or name the library by HELVE_NCCL";

[[noreturn]] void fail(std::string reason) {
  throw UserError(Code::NcclMissing, {}, {{"reason", std::move(reason)}, {"remedy", std::string(kRemedy)}});
}

void* open_library(std::span<const std::string> paths, std::string& path) {
  path = kSoname;
  const char* named = std::getenv("HELVE_NCCL");
  if (named != nullptr && *named != '\0') {
    path = named;
  } else if (void* present = dlopen(kSoname, RTLD_NOW | RTLD_NOLOAD | RTLD_LOCAL)) {
    return present;
  } else {
    for (const std::string& each : paths) {
      if (!std::filesystem::exists(each)) continue;
      path = each;
      break;
    }
  }
  if (void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
  const char* text = dlerror();
  fail(text != nullptr ? text : path);
}

NcclLibrary load(std::span<const std::string> paths) {
  NcclLibrary out;
  void* handle = open_library(paths, out.path);
  const auto find = [&](const char* symbol) {
    void* found = dlsym(handle, symbol);
    if (found == nullptr) fail(fmt::format("{} lacks {}, it is older than 2.18", out.path, symbol));
    return found;
  };
  out.get_version = reinterpret_cast<decltype(out.get_version)>(find("ncclGetVersion"));
  if (out.get_version(&out.version) != kNcclSuccess || out.version < kNcclLeastVersion)
    fail(fmt::format("{} is version {}, helve needs 2.18 or later", out.path, version_text(out.version)));
#define HELVE_NCCL_FUNCTION(member, symbol, parameters) \
  out.member = reinterpret_cast<decltype(out.member)>(find(#symbol));
#include "helve/runtime/nccl/nccl_table.inc"
#undef HELVE_NCCL_FUNCTION
  out.get_error_string = reinterpret_cast<decltype(out.get_error_string)>(find("ncclGetErrorString"));
  out.get_last_error = reinterpret_cast<decltype(out.get_last_error)>(find("ncclGetLastError"));
  return out;
}

}  // namespace

std::string version_text(int version) {
  const int major = version < 10000 ? 1000 : 10000;  // the form of before 2.9
  return fmt::format("{}.{}.{}", version / major, version % major / 100, version % 100);
}

const NcclLibrary& nccl_library(std::span<const std::string> paths) {
  static const NcclLibrary library = load(paths);
  return library;
}

}  // namespace helve::runtime::nccl
