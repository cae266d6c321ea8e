// Places of buffers in the shared memory of a block.
// A place is a part of the program, so that what shares bytes is decided by a pass, judged by the interpreter and
// printed by code generation.
#pragma once

#include "helve/ir/tensor/function.h"

namespace helve {

/// The bytes [begin, end) of the shared memory of a block.
struct SharedPlace {
  int64_t begin = 0;
  int64_t end = 0;

  bool meets(const SharedPlace& other) const { return begin < other.end && other.begin < end; }
};

/// The alignment of a buffer in shared memory, in bytes: 128 suits every access, of TMA too; with a swizzle its period,
/// so that its XOR can be applied to addresses.
int64_t shared_alignment(const Buffer& buffer);
/// That of a buffer without a swizzle, and the unit in which the memory of a block is counted.
inline constexpr int64_t kSharedUnit = 128;

/// The bytes that a buffer of shared memory takes, with all its slots.
int64_t shared_size(const Buffer& buffer);

/// The bytes from one slot of a buffer to the next, each of which is aligned as the buffer is.
int64_t slot_bytes(const Buffer& buffer);

/// The buffer of shared memory as so many slots of a ring, at least one (BadArgument, at `span`).
BufferRef with_slots(const BufferRef& buffer, int64_t slots, const Span& span);

/// The buffer of shared memory at an offset, in bytes, that is not negative, and a multiple of its alignment
/// (BufferOffset, at `span`).
BufferRef at_offset(const BufferRef& buffer, int64_t offset, const Span& span);

/// The place of a buffer with an offset; nothing for others.
std::optional<SharedPlace> place_of(const Buffer& buffer);

/// May an access to one buffer change the other: are they the same, or do their places meet?
bool share_memory(const Buffer& a, const Buffer& b);

/// The end of the last place of a statement's buffers.
int64_t shared_end(const Stmt& s);

/// The shared memory of a block that runs the statement, in bytes, in whole units.
int64_t shared_bytes(const Stmt& s);

/// The function with no buffer at an offset: all have memory of their own.
FunctionRef without_offsets(const FunctionRef& f);

}  // namespace helve
