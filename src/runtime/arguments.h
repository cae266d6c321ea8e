// Checking a call's arguments and binding them to the plan's slots and buffers.
// After it, every address and extent that a kernel sees is what the compiler proved its code for.
#pragma once

#include <span>

#include "frame.h"
#include "helve/runtime/executor.h"

namespace helve::runtime {

/// Where the memory of arguments may be: HostOnly where the CPU uses it (UserError ArgumentDevice), Anywhere where the
/// caller has looked at the devices.
enum class ArgumentMemory { HostOnly, Anywhere };

/// Fills the frame's slots and the states of its parameters. UserError 601-615, 620, 621.
void bind_arguments(const Plan& plan, std::span<const TensorArgument> tensors, std::span<const ScalarArgument> scalars,
                    Frame& frame, ArgumentMemory memory = ArgumentMemory::HostOnly);

/// Whether two strided boxes of elements share a byte. Exact but for a bound on the search, beyond which it answers
/// true. Strides in bytes; `element` bytes each.
struct StridedBox {
  const std::byte* base;
  std::span<const int64_t> extents;
  std::span<const int64_t> strides;
  int64_t element;
};
bool share_memory(const StridedBox& a, const StridedBox& b);

}  // namespace helve::runtime
