// Finding and binding Open MPI.
// What a process has loaded already comes first: two copies of MPI in one process do not know of each other.
#include "helve/runtime/mpi/mpi_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>

#include "helve/support/diagnostic.h"

namespace helve::runtime::mpi {

namespace {

constexpr const char* kSoname = "libmpi.so.40";

[[noreturn]] void fail(std::string reason, std::string remedy) {
  throw UserError(Code::ProcessesMissing, {}, {{"reason", std::move(reason)}, {"remedy", std::move(remedy)}});
}

void* open_library(std::span<const std::string> paths, std::string& path) {
  path = kSoname;
  if (void* present = dlopen(kSoname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL)) return present;
  for (const std::string& each : paths) {
    if (!std::filesystem::exists(each)) continue;
    path = each;
    break;
  }
  // Global: components of Open MPI look for its symbols in the process.
  if (void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL)) return handle;
  const char* text = dlerror();
  const std::string reason = text != nullptr ? text : path;
  const std::string remedy = "pip install 'helve[mpi]', or install Open MPI 4.1 or later";
  if (void* mpich = dlopen("libmpi.so.12", RTLD_LAZY | RTLD_LOCAL)) {
    dlclose(mpich);
    fail("the MPI here is MPICH or one that is compatible with it (libmpi.so.12); helve calls Open MPI", remedy);
  }
  fail(fmt::format("Open MPI cannot be loaded: {}", reason), remedy);
}

MpiLibrary load(std::span<const std::string> paths) {
  MpiLibrary out;
  void* handle = open_library(paths, out.path);
  const auto find = [&](const char* symbol) {
    void* found = dlsym(handle, symbol);
    if (found == nullptr) fail(fmt::format("{} lacks {}", out.path, symbol), "install Open MPI 4.1 or later");
    return found;
  };
#define HELVE_MPI_FUNCTION(member, symbol, parameters) \
  out.member = reinterpret_cast<decltype(out.member)>(find(#symbol));
#include "helve/runtime/mpi/mpi_table.inc"
#undef HELVE_MPI_FUNCTION
  out.world = static_cast<MpiComm>(find("ompi_mpi_comm_world"));
  out.byte = static_cast<MpiDatatype>(find("ompi_mpi_byte"));
  out.errors_return = static_cast<MpiErrhandler>(find("ompi_mpi_errors_return"));
  return out;
}

}  // namespace

const MpiLibrary& mpi_library(std::span<const std::string> paths) {
  static const MpiLibrary library = load(paths);
  return library;
}

}  // namespace helve::runtime::mpi
