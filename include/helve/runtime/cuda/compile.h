// From CUDA C to a cubin, through NVRTC in this process or nvcc beside it, by way of the disk cache.
// What the assembler says of registers and spills comes back as data, so that slow code is noticed where it is made.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "helve/runtime/disk_cache.h"
#include "helve/support/diagnostic.h"

namespace helve::runtime::cuda {

/// What one kernel takes of a multiprocessor, as ptxas reports it. Bytes of local memory and spills are those of a
/// thread, of shared memory those of a block (static, without what the launch adds).
struct KernelResources {
  std::string name;
  int64_t registers = 0;
  int64_t shared_bytes = 0;
  int64_t local_bytes = 0;  ///< the stack frame: spilled registers, and arrays that registers cannot hold
  int64_t spill_store_bytes = 0;
  int64_t spill_load_bytes = 0;

  bool operator==(const KernelResources&) const = default;
};

struct Cubin {
  std::string arch;      ///< "sm_90a"
  std::string bytes;     ///< the ELF image
  std::string compiler;  ///< "NVRTC 13.0"
  std::string log;
  std::vector<KernelResources> kernels;  ///< in the order of the log
  std::vector<Diagnostic> warnings;      ///< RegisterSpills, LocalArrays, CacheUnusable
  bool from_cache = false;

  /// Null where there is no kernel of that name.
  const KernelResources* find(std::string_view kernel) const;
};

enum class Compiler { Auto, Nvrtc, Nvcc };  ///< Auto: NVRTC, and nvcc where there is no NVRTC

struct CompileOptions {
  Compiler compiler = Compiler::Auto;
  std::vector<std::string> flags;          ///< further flags, which NVRTC and nvcc spell alike: "--use_fast_math"
  std::vector<std::string> site_packages;  ///< folders of Python packages, in which pip's wheels of NVRTC may stand
  DiskCache cache;
};

/// 90 for "sm_90a"; nullopt for what is no architecture.
std::optional<int> architecture_number(std::string_view arch);

/// Compiles `source`, whose kernels are `extern "C"`, under a file name for messages. `arch`: "sm_80", "sm_90a".
/// UserError NvrtcMissing, NvccMissing, CudaArchitecture; InternalError with the log and the source where it does not
/// compile, since helve wrote it.
Cubin compile_cubin(std::string_view source, const std::string& name, const std::string& arch,
                    const CompileOptions& options = {});

/// The kernels that a log of `ptxas -v` describes.
std::vector<KernelResources> read_ptxas_log(std::string_view log);

/// The warnings about spills and local memory.
std::vector<Diagnostic> warnings_of(const std::vector<KernelResources>& kernels);

/// "NVRTC 13.0" or "nvcc 13.0.88": what compile_cubin would use. UserError NvrtcMissing, NvccMissing.
std::string compiler_text(const CompileOptions& options = {});

}  // namespace helve::runtime::cuda
