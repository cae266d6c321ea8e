// Rings of a block while a program runs.
// A buffer that a ring hands over has an instance for each slot. The name stands for the slot that the side at work has
// acquired or waited for last, so that accesses find it without asking.
#pragma once

#include "scope.h"

namespace helve::interp {

struct Operands;

/// Fresh undefined storage for each slot of a buffer.
void allocate_slots(Frame& frame, size_t slot, const BufferRef& buffer, const std::vector<int64_t>& shape,
                    const Span& span);

/// The array of mbarriers of a ring counts nothing yet.
void begin_ring(const Operands& op, Frame& frame);

/// A copy fills a buffer of the ring: from here on the buffer is the slot that was acquired last.
void fill_slot(const Operands& op, Frame& frame);

/// A copy that the blocks of a cluster make together: all are to make it equally often, of the same region. Here each
/// block makes it for itself.
void share_copy(const Operands& op, Frame& frame);
/// A block of a cluster begins, and ends.
void begin_shared_copies(Frame& frame, int64_t cluster);
void end_shared_copies(const Frame& frame, int64_t cluster);

// One function a row. RingDeadlock where nobody is left who could let the operation go on.
void run_ring_acquire(const Operands& op, Frame& frame);
void run_ring_commit(const Operands& op, Frame& frame);
void run_ring_wait(const Operands& op, Frame& frame);
void run_ring_release(const Operands& op, Frame& frame);

}  // namespace helve::interp
