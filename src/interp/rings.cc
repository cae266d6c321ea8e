// What the events of a ring do.
// A slot that is acquired holds nothing: what was written before, and who accessed it, does not count any more. So a
// checked run finds an access outside of its bracket, as one to what was never written or is still on its way.
#include "rings.h"

#include <algorithm>

#include "fibers.h"
#include "helve/ir/tensor/ring.h"
#include "helve/support/diagnostic.h"
#include "tile_op_code.h"

namespace helve::interp {

namespace {

Ring& ring_of(const Operands& op, Frame& frame) { return frame.rings[op.queue]; }

int64_t slots_of(const Operands& op) { return ring_slots(op.region("barriers").buffer()); }

/// Until `ready`, other roles of the block run.
void await(const Operands& op, Frame& frame, const std::function<bool()>& ready, const char* waits_for) {
  if (frame.fibers) {
    if (frame.fibers->await(ready)) return;
  } else if (ready()) {
    return;
  }
  throw UserError(Code::RingDeadlock, op.span,
                  {{"operation", op.operation()}, {"ring", op.region("barriers").buffer().name}, {"what", waits_for}});
}

void enter_slot(Frame& frame, size_t buffer, int64_t use) {
  std::vector<std::unique_ptr<Instance>>& slots = frame.slots.at(buffer);
  frame.buffers[buffer] = slots[static_cast<size_t>(use) % slots.size()].get();
}

}  // namespace

void allocate_slots(Frame& frame, size_t slot, const BufferRef& buffer, const std::vector<int64_t>& shape,
                    const Span& span) {
  std::vector<std::unique_ptr<Instance>>& slots = frame.slots[slot];
  while (slots.size() < static_cast<size_t>(buffer->slots)) {
    slots.push_back(std::make_unique<Instance>(buffer));
    if (frame.trace) slots.back()->watch(frame.trace->checker().clock());
  }
  for (const std::unique_ptr<Instance>& each : slots) each->allocate(shape, span);
  frame.buffers[slot] = slots.front().get();
}

void begin_ring(const Operands& op, Frame& frame) { ring_of(op, frame) = {}; }

void fill_slot(const Operands& op, Frame& frame) {
  const RegionCode& dst = op.region("dst");
  const int64_t slots = slots_of(op);
  if (dst.buffer().slots != slots) {
    throw UserError(Code::RingSlots, op.span,
                    {{"ring", op.region("barriers").buffer().name},
                     {"slots", slots},
                     {"buffer", dst.buffer().name},
                     {"given", dst.buffer().slots}});
  }
  Ring& ring = ring_of(op, frame);
  if (std::find(ring.buffers.begin(), ring.buffers.end(), dst.slot()) == ring.buffers.end()) {
    ring.buffers.push_back(dst.slot());
  }
  if (ring.acquired == ring.committed) {
    throw UserError(Code::RingBracket, op.span,
                    {{"buffer", dst.buffer().name},
                     {"what", "filled"},
                     {"bracket", "T.ring_acquire and T.ring_commit"},
                     {"ring", op.region("barriers").buffer().name}});
  }
  enter_slot(frame, dst.slot(), ring.acquired - 1);
}

void share_copy(const Operands& op, Frame& frame) {
  SharedCopies& shared = frame.shared_copies[op.node.get()];
  std::vector<int64_t> begin = op.region("src").begin(frame);
  const size_t number = shared.count++;
  if (frame.block % op.node->multicast() == 0) {
    shared.begins.push_back(std::move(begin));
  } else if (number >= shared.begins.size() || shared.begins[number] != begin) {
    throw UserError(Code::ClusterCopies, op.span, {{"buffer", op.region("dst").buffer().name}});
  }
}

void begin_shared_copies(Frame& frame, int64_t cluster) {
  if (frame.block % cluster == 0) frame.shared_copies.clear();
  for (auto& [op, shared] : frame.shared_copies) shared.count = 0;
}

void end_shared_copies(const Frame& frame, int64_t cluster) {
  if (frame.block % cluster == 0) return;
  for (const auto& [op, shared] : frame.shared_copies) {
    if (shared.count == shared.begins.size()) continue;
    throw UserError(Code::ClusterCopies, op->span, {{"buffer", op->region(1).buffer->name}});
  }
}

void run_ring_acquire(const Operands& op, Frame& frame) {
  Ring& ring = ring_of(op, frame);
  const int64_t slots = slots_of(op);
  await(op, frame, [&] { return ring.acquired - ring.released < slots; }, "a slot that is released");
  ++ring.acquired;
  for (const size_t buffer : ring.buffers) {
    enter_slot(frame, buffer, ring.acquired - 1);
    frame.buffers[buffer]->forget();
  }
}

void run_ring_commit(const Operands& op, Frame& frame) {
  ++ring_of(op, frame).committed;
  frame.copies.commit(op.queue, op.span);
}

void run_ring_wait(const Operands& op, Frame& frame) {
  Ring& ring = ring_of(op, frame);
  await(op, frame, [&] { return ring.committed > ring.taken; }, "a slot that is filled");
  ++ring.taken;
  frame.copies.wait(op.queue, ring.committed - ring.taken);
  for (const size_t buffer : ring.buffers) enter_slot(frame, buffer, ring.taken - 1);
}

void run_ring_release(const Operands& op, Frame& frame) {
  Ring& ring = ring_of(op, frame);
  ring.released = std::max(ring.released, ring.taken - op.node->pending());
}

}  // namespace helve::interp
