// Rings: memory that one side fills and the other one takes, slot after slot.
// A ring is an array of mbarriers and the buffers that copies fill with them, which have as many slots. Use number u of
// a ring, from 0 on, has slot u modulo their number. The count is implicit: a side has the slot that it acquired, or
// waited for, last, so programs name buffers and not slots, and no product of loop bounds says which slot is meant.
#pragma once

#include <optional>
#include <vector>

#include "helve/ir/tensor/stmt.h"

namespace helve {

/// What an operation does to a ring. The side that fills repeats acquire and commit, the other one wait and release.
enum class RingEvent { Acquire, Commit, Wait, Release };
std::optional<RingEvent> ring_event(const TileOp& op);

/// Is the array of mbarriers that of a ring: two rows?
bool is_ring(const Buffer& barriers);

/// How many slots it has.
int64_t ring_slots(const Buffer& ring);

/// The arrays of the rings that operations of the statement name, in the order of their first use.
std::vector<BufferRef> rings_of(const Stmt& s);

/// The buffers that copies of the statement fill for the ring, each once, in program order.
std::vector<BufferRef> buffers_of_ring(const Stmt& s, const Buffer& ring);

/// Do the blocks of a cluster fill slots of the ring for each other, by a copy of the statement?
bool is_shared_ring(const Stmt& s, const Buffer& ring);

/// Do blocks of a cluster fill each other's slots?
bool has_shared_rings(const Stmt& s);

/// Has the kernel roles?
bool has_roles(const Kernel& kernel);

/// The threads that are launched for a block: the kernel's own, and those of further roles.
int64_t launched_threads(const Kernel& kernel);

}  // namespace helve
