// The arguments that a kernel takes from the host: its free buffers and free variables.
// Code generation, the host plan and the executor pass arguments by position; this is the only definition of the order.
#pragma once

#include <vector>

#include "helve/ir/tensor/function.h"

namespace helve {

/// The arguments of a kernel. Buffers and variables are each in order of first use, where a statement's fields count in
/// their declared order, an expression before its operands, and the shape and strides of a buffer right after its first
/// use.
struct KernelInterface {
  std::vector<BufferRef> buffers;  ///< used in the kernel, allocated outside of it
  std::vector<VarRef> scalars;  ///< used in the kernel (grid and shapes of used buffers included), bound outside of it
};

KernelInterface kernel_interface(const Kernel& kernel);

/// Is `buffer` of the interface memory that the kernel does not access by another of its buffers?
bool is_apart(const KernelInterface& interface, const std::vector<MayAlias>& may_alias, const Buffer* buffer);

}  // namespace helve
