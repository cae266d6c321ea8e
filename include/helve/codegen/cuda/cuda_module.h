// CUDA C of kernels in thread form.
// The text is complete: it includes nothing, so that NVRTC compiles it without a toolkit, and it reads like a kernel
// written by hand.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "helve/codegen/host/kernel_source.h"
#include "helve/runtime/plan.h"
#include "helve/target/machine.h"

namespace helve {

struct CudaOptions {
  bool line_directives = false;  ///< name the user's file and line beside each statement
  bool prelude = true;           ///< include the helve_ functions that the kernels call
  Machine machine = any_gpu();   ///< for which the passes have lowered the kernels
};

/// A buffer of shared memory.
struct SharedBuffer {
  std::string name;
  int64_t bytes;
  Span span;  ///< of its allocation
};

/// A kernel of the text. Its parameters are one pointer a buffer of the kernel's interface, then each scalar as a long
/// long (a float scalar as the bits of its dtype), then, in a mesh function, the instance stride in bytes of each
/// Global buffer and the number of the first block, then, in a cooperative kernel, an unsigned*: zeroed words for its
/// blocks to synchronize with, then, in a kernel that can end with a fault, a long long*: zeroed words, the first for
/// its state (0 none, 2 complete), then the number of the report and its values, then each tensor map by value. The
/// grid is one-dimensional: blockIdx.x counts blocks, row-major, in a mesh function from the first one.
struct CudaKernel {
  std::string name;
  int64_t threads = 0;              ///< of a block, with those of further roles
  int64_t own_threads = 0;          ///< without these
  int64_t shared_bytes = 0;         ///< dynamic shared memory of a block
  int64_t cluster = 1;              ///< blocks of a cluster
  bool cooperative = false;         ///< all blocks synchronize: a parameter is zeroed words
  int64_t barrier_words = 0;        ///< how many: one for each group that meets
  bool faults = false;              ///< it can end with a fault: a parameter is memory for one
  std::vector<SharedBuffer> shared;  ///< its contents, in program order
  std::vector<int64_t> alignments;  ///< bytes, required of each buffer's base; at least an element's
  std::vector<runtime::TensorMap> maps;
};

struct CudaSource {
  std::string text;
  std::vector<CudaKernel> kernels;  ///< in the order of the sources
};

/// The text is for sm_80 and later, to be compiled with --fmad=false: contraction changes results.
/// UserError DTypeOnTarget for a packed dtype, NoSchedule for more tensor maps than a kernel takes; InternalError for a
/// kernel that is not in thread form.
CudaSource emit_cuda(const std::vector<KernelSource>& kernels, const CudaOptions& options = {});

}  // namespace helve
