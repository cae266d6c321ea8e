// Questions about rings and roles that all rooms ask.
// The buffers of a ring are those that its copies fill, so no declaration can disagree with them.
#include "helve/ir/tensor/ring.h"

#include <algorithm>

#include "helve/ir/tensor/visit.h"
#include "helve/support/diagnostic.h"

namespace helve {

std::optional<RingEvent> ring_event(const TileOp& op) {
  switch (op.op) {
    case TileOpcode::RingAcquire: return RingEvent::Acquire;
    case TileOpcode::RingCommit: return RingEvent::Commit;
    case TileOpcode::RingWait: return RingEvent::Wait;
    case TileOpcode::RingRelease: return RingEvent::Release;
    default: return std::nullopt;
  }
}

bool is_ring(const Buffer& barriers) { return barriers.rank() == 2; }

int64_t ring_slots(const Buffer& ring) {
  const int64_t* slots = int_value(ring.shape.back());
  HELVE_CHECK(is_ring(ring) && slots, "a ring has a constant number of slots");
  return *slots;
}

namespace {

void add_once(std::vector<BufferRef>& out, const BufferRef& buffer) {
  if (std::find(out.begin(), out.end(), buffer) == out.end()) out.push_back(buffer);
}

}  // namespace

std::vector<BufferRef> rings_of(const Stmt& s) {
  std::vector<BufferRef> out;
  walk(s, [&](const Stmt& each) {
    const TileOp* op = as<TileOp>(each);
    const Region* barriers = op ? op->barriers() : nullptr;
    if (barriers && is_ring(*barriers->buffer)) add_once(out, barriers->buffer);
  });
  return out;
}

std::vector<BufferRef> buffers_of_ring(const Stmt& s, const Buffer& ring) {
  std::vector<BufferRef> out;
  walk(s, [&](const Stmt& each) {
    const TileOp* op = as<TileOp>(each);
    if (op && op->is_by_tma() && op->barriers() && op->barriers()->buffer.get() == &ring) {
      add_once(out, op->region(1).buffer);
    }
  });
  return out;
}

bool is_shared_ring(const Stmt& s, const Buffer& ring) {
  return has_operation(s, [&](const TileOp& op) {
    return op.multicast() > 1 && op.barriers() && op.barriers()->buffer.get() == &ring;
  });
}

bool has_shared_rings(const Stmt& s) {
  return has_operation(s, [](const TileOp& op) { return op.multicast() > 1; });
}

bool has_roles(const Kernel& kernel) {
  bool found = false;
  walk(kernel.body, [&](const Stmt& s) { found |= s->kind == StmtKind::Role; });
  return found;
}

int64_t launched_threads(const Kernel& kernel) {
  int64_t end = kernel.threads;
  walk(kernel.body, [&](const Stmt& s) {
    if (const Role* role = as<Role>(s)) end = std::max(end, role->first + role->threads);
  });
  return end;
}

}  // namespace helve
