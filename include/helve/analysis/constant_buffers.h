// Memory that a kernel only reads, as a compiler may be told.
// It may then keep loads of it for longer, and load it by other ways.
#pragma once

#include <unordered_set>

#include "helve/analysis/kernel_interface.h"

namespace helve {

/// The buffers of the interface whose memory nothing changes while the kernel runs, under no other name either; none if
/// the kernel also loads global memory that it may write: NVVM merges two loads in the branches of a condition, and
/// uses the read-only cache if one of the two pointers allows it.
std::unordered_set<const Buffer*> constant_buffers(const Kernel& kernel, const KernelInterface& interface,
                                                   const std::vector<MayAlias>& may_alias);

}  // namespace helve
