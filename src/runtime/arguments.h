// Checks a call's arguments and binds them to the plan's slots and buffers.
// Afterwards every address and extent that a kernel uses satisfies what the compiler assumed.
#pragma once

#include <span>

#include "frame.h"
#include "helve/runtime/executor.h"

namespace helve::runtime {

/// Where the memory of arguments may be: HostOnly if the CPU uses it (UserError ArgumentDevice), Anywhere if the caller
/// has checked the devices.
enum class ArgumentMemory { HostOnly, Anywhere };

/// Fills the frame's slots and the states of its parameters, for a machine that runs `multiprocessors` blocks side by
/// side. UserError 601-615, 620, 621, 641.
void bind_arguments(const Plan& plan, std::span<const TensorArgument> tensors, std::span<const ScalarArgument> scalars,
                    int64_t multiprocessors, Frame& frame, ArgumentMemory memory = ArgumentMemory::HostOnly);

}  // namespace helve::runtime
