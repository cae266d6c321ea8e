// Machine code for the CPU of this process.
// One compile takes all kernels of a function, so that they share one link; the code lives as long as the module does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "helve/codegen/host/kernel_source.h"

namespace helve {

/// Runs blocks [begin, end) of a kernel, linearised row-major. `buffers` and `scalars` stand in the order of
/// kernel_interface; an integer scalar is its value, a float the bits of its dtype. In a mesh function the scalars are
/// followed by one instance stride in bytes for each Global buffer. `scratch` is 4096-aligned private memory of
/// scratch_bytes. Does not throw.
using CpuEntry = void (*)(void* const* buffers, const int64_t* scalars, int64_t begin, int64_t end, std::byte* scratch);

struct CpuOptions {
  int optimization = 3;  ///< 0 to 3
  bool fast_math = false;  ///< a product and the sum that it goes into may be one operation
  bool native = true;    ///< all features of this processor; otherwise those of every processor of the architecture
};

struct CpuKernel {
  std::string name;
  CpuEntry entry = nullptr;
  int64_t scratch_bytes = 0;
};

/// Wall time of the stages of a compile, in seconds.
struct CpuCompileTimes {
  double emit = 0;  ///< tensor IR to LLVM IR
  double optimize = 0;
  double generate = 0;  ///< LLVM IR to object code
  double link = 0;
};

class CpuModule {
 public:
  ~CpuModule();
  CpuModule(const CpuModule&) = delete;
  CpuModule& operator=(const CpuModule&) = delete;

  /// In the order of the sources.
  const std::vector<CpuKernel>& kernels() const { return kernels_; }
  /// Triple, processor and features: what the code depends on.
  const std::string& target() const { return target_; }
  const CpuCompileTimes& times() const { return times_; }

  /// The text of the module before or after optimisation; made anew on each call.
  std::string llvm_ir(bool optimized) const;
  std::string assembly() const;

 private:
  friend std::shared_ptr<CpuModule> compile_cpu(const std::vector<KernelSource>&, const CpuOptions&);
  struct Code;
  CpuModule();

  std::vector<KernelSource> sources_;
  CpuOptions options_;
  std::vector<CpuKernel> kernels_;
  std::string target_;
  CpuCompileTimes times_;
  std::unique_ptr<Code> code_;
};

/// Compiles lowered kernels for the processor of this process. Any number of threads may compile at once.
/// UserError DTypeOnTarget for a packed dtype; InternalError for a kernel that is not in lowered form.
std::shared_ptr<CpuModule> compile_cpu(const std::vector<KernelSource>& sources, const CpuOptions& options = {});

}  // namespace helve
