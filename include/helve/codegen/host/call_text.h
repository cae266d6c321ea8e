// A plan for GPUs as a C++ function of CUDA's driver and NCCL.
// The steps are those that the executor follows, so that a reader, or a program without helve, has the same call.
#pragma once

#include <string>
#include <vector>

#include "helve/runtime/plan.h"

namespace helve {

struct CallTextOptions {
  std::vector<std::string> kernels;  ///< the names of the entry points, by Launch::kernel
  std::string flags;                 ///< of the compiler of the kernels
  bool cores_are_processes = false;  ///< the mesh's cores are GPUs of processes, which NCCL connects
};

/// `extern "C" int run_NAME(...)`, complete, with a head comment of its parameters and results. UserError CallText
/// where cores of one process exchange values between launches, or go on each by its own memory.
std::string call_text(const runtime::Plan& plan, const CallTextOptions& options);

}  // namespace helve
