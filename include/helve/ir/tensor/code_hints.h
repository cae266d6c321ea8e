// What a lowered program tells whoever makes machine code of it: rolled loops, functions, the stack.
// None of it has an effect on results, so a program means the same without.
#pragma once

#include "helve/ir/tensor/function.h"

namespace helve {

/// Bytes of all buffers of a kernel on the stack (ArrayPlace::Stack), at most.
inline constexpr int64_t kStackBytes = 65536;
/// The alignment of a buffer of a block in the memory of a CPU, in bytes.
inline constexpr int64_t kBlockAlignment = 64;

/// The bytes that a buffer of constant shape takes in the memory of a CPU, at least one element, aligned at its end.
int64_t block_bytes(const Buffer& buffer);

/// The function with no loop rolled, no statements of a function of their own, and no buffer on the stack.
FunctionRef without_code_hints(const FunctionRef& f);

}  // namespace helve
