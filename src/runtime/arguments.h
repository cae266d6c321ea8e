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

/// Fills the frame's slots and the states of its parameters. UserError 601-615, 620, 621, 641.
void bind_arguments(const Plan& plan, std::span<const TensorArgument> tensors, std::span<const ScalarArgument> scalars,
                    Frame& frame, ArgumentMemory memory = ArgumentMemory::HostOnly);

}  // namespace helve::runtime
