// Collectives between GPUs of processes as calls of NCCL.
// What NCCL does as helve does is one call of it; all else is sends and receives, and a kernel that reduces in the
// order of the members, as the executor has it.
#pragma once

#include <string>
#include <vector>

#include "call_names.h"
#include "helve/runtime/plan.h"

namespace helve {

struct CollectiveText {
  std::vector<std::string> lines;  ///< statements in braces, indented by two
  std::string kernel;              ///< CUDA C of the reduction, if it has one of its own
};

/// Does it have a communicator? Not a group of one member.
bool has_communicator(const runtime::Plan& plan, uint64_t axes);

/// `reduction` is the name of its kernel, if it has one. The statements use the variables `room`, `core`, `stream` and
/// `kernels`.
CollectiveText collective_text(const runtime::Plan& plan, const runtime::Collective& step, const CallNames& names,
                               const std::string& reduction);

/// What the kernels of reductions begin with.
std::string reduction_prelude();

}  // namespace helve
