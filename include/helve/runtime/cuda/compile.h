// From CUDA C to a cubin, by NVRTC in this process or nvcc in another one, through the disk cache.
// The assembler's report of registers and spills is returned as data, so slow code is noticed when it is compiled.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "helve/runtime/disk_cache.h"
#include "helve/support/diagnostic.h"

namespace helve::runtime::cuda {

/// The resources of one kernel, as ptxas reports them. Local memory and spills are in bytes per thread, shared memory
/// in bytes per block (static, without what the launch adds).
struct KernelResources {
  std::string name;
  int64_t registers = 0;
  int64_t shared_bytes = 0;
  int64_t local_bytes = 0;  ///< the stack frame: spilled registers, and arrays that do not fit registers
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

  /// Null if there is no kernel of that name.
  const KernelResources* find(std::string_view kernel) const;
};

enum class Compiler { Auto, Nvrtc, Nvcc };  ///< Auto: NVRTC, and nvcc where there is no NVRTC

struct CompileOptions {
  Compiler compiler = Compiler::Auto;
  std::vector<std::string> flags;          ///< further flags, which NVRTC and nvcc share: "--use_fast_math"
  std::vector<std::string> site_packages;  ///< folders of Python packages that may contain pip's NVRTC
  DiskCache cache;
};

/// 90 for "sm_90a"; nullopt if it is not an architecture.
std::optional<int> architecture_number(std::string_view arch);

/// Compiles `source`, whose kernels are `extern "C"`, under a file name for messages. `arch`: "sm_80", "sm_90a".
/// UserError NvrtcMissing, NvccMissing, CudaArchitecture; InternalError with the log and the source if it does not
/// compile, since helve generated it.
Cubin compile_cubin(std::string_view source, const std::string& name, const std::string& arch,
                    const CompileOptions& options = {});

/// The PTX that compile_cubin's compiler makes on its way, with the same arguments and errors; not cached.
std::string ptx_text(std::string_view source, const std::string& name, const std::string& arch,
                     const CompileOptions& options = {});

/// The cubin's machine code (SASS) as nvdisasm prints it: HELVE_NVDISASM, that of pip's wheels in
/// `options.site_packages`, of a toolkit in /usr/local, or of PATH. UserError NvdisasmMissing.
std::string machine_code_text(const Cubin& cubin, const CompileOptions& options = {});

/// The kernels that a log of `ptxas -v` describes.
std::vector<KernelResources> read_ptxas_log(std::string_view log);

/// The warnings about spills and local memory.
std::vector<Diagnostic> warnings_of(const std::vector<KernelResources>& kernels);

/// "NVRTC 13.0" or "nvcc 13.0.88": what compile_cubin would use. UserError NvrtcMissing, NvccMissing.
std::string compiler_text(const CompileOptions& options = {});

}  // namespace helve::runtime::cuda
