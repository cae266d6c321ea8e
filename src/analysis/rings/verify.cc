// The proof of a kernel's rings, on the program that its roles make together.
// An abstract run keeps, for each ring, how many uses are filled and not taken, and how many are taken and not
// released, as intervals over all executions of a place: loops are followed until the intervals stay.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "helve/analysis/box_copy.h"
#include "helve/analysis/cluster.h"
#include "helve/analysis/early_copies.h"
#include "helve/analysis/effects.h"
#include "helve/analysis/rings.h"
#include "helve/ir/tensor/ring.h"
#include "helve/ir/tensor/shared_place.h"
#include "helve/ir/tensor/visit.h"

namespace helve {

namespace {

/// From `least` to `most`, both of which some execution may have.
struct UseCount {
  int64_t least = 0;
  int64_t most = 0;
  bool operator==(const UseCount&) const = default;
  UseCount joined(const UseCount& other) const { return {std::min(least, other.least), std::max(most, other.most)}; }
};

struct RingState {
  UseCount ahead;  ///< uses that are filled and not taken
  UseCount open;   ///< uses that are taken and not released
  bool filling = false;
  bool may_fill = false;  ///< some execution of the place is filling, others are not
  bool held = false;  ///< the use that was taken last is not released
  std::set<const Buffer*> filled, may_be_filled;  ///< by copies since the slot was acquired
  bool operator==(const RingState&) const = default;
};

using RingStates = std::map<const Buffer*, RingState>;

/// Thrown inside of this file alone.
struct RingRefusal {
  RingFault fault;
};

[[noreturn]] void refuse_ring(const Span& span, std::string reason) { throw RingRefusal{{span, std::move(reason)}}; }

class RingRun {
 public:
  explicit RingRun(const Stmt& body) {
    for (const BufferRef& ring : rings_of(body)) {
      state_[ring.get()] = {};
      for (const BufferRef& buffer : buffers_of_ring(body, *ring)) {
        const auto [at, fresh] = ring_of_.emplace(buffer.get(), ring.get());
        if (!fresh) refuse_ring(buffer->span, fmt::format("copies fill '{}' for two rings", buffer->name));
        if (buffer->slots != ring_slots(*ring)) {
          refuse_ring(buffer->span, fmt::format("'{}' has {} slots, its ring '{}' {}", buffer->name, buffer->slots,
                                                ring->name, ring_slots(*ring)));
        }
      }
    }
    walk(body, [&](const Stmt& s) {
      const Alloc* n = as<Alloc>(s);
      if (n && n->buffer->slots > 0 && !ring_of_.contains(n->buffer.get())) {
        refuse_ring(s->span, fmt::format("'{}' has slots, and no copy fills them for a ring", n->buffer->name));
      }
    });
  }

  void run(const Stmt& body) {
    visit(body);
    for (const auto& [ring, state] : state_) {
      if (state.may_fill || state.filling)
        refuse_ring(ring->span, fmt::format("a slot of '{}' is never committed", ring->name));
      if (state.ahead.most > 0)
        refuse_ring(ring->span, fmt::format("a slot of '{}' is filled and never taken", ring->name));
      if (state.open.most > 0) refuse_ring(ring->span, fmt::format("a slot of '{}' is never released", ring->name));
    }
  }

 private:
  void visit(const Stmt& s) {
    if (!s) return;
    if (const TileOp* op = as<TileOp>(s)) {
      if (ring_event(*op)) return event(*op);
      return accesses(s, op);
    }
    if (const If* n = as<If>(s)) {
      expressions(s);
      const RingStates before = state_;
      visit(n->then_body);
      const RingStates yes = std::exchange(state_, before);
      visit(n->else_body);
      state_ = joined(yes, state_);
      return;
    }
    if (const For* n = as<For>(s)) return loop(s, n->body);
    if (const While* n = as<While>(s)) return loop(s, n->body);
    if (s->kind == StmtKind::Seq) {
      for (const Stmt& each : as<Seq>(s)->stmts) visit(each);
      return;
    }
    accesses(s, nullptr);
  }

  /// The counts are bounded by the slots, so they stay after a few rounds.
  void loop(const Stmt& s, const Stmt& body) {
    expressions(s);
    if (!has_ring_events(body)) return visit(body);
    while (true) {
      const RingStates before = state_;
      visit(body);
      state_ = joined(before, state_);
      if (state_ == before) return;
    }
  }

  static RingStates joined(const RingStates& a, const RingStates& b) {
    RingStates out = a;
    for (auto& [ring, state] : out) {
      const RingState& other = b.at(ring);
      state.ahead = state.ahead.joined(other.ahead);
      state.open = state.open.joined(other.open);
      state.may_fill |= other.may_fill || state.filling != other.filling;
      state.filling &= other.filling;
      state.held &= other.held;
      std::erase_if(state.filled, [&](const Buffer* each) { return !other.filled.contains(each); });
      state.may_be_filled.insert(other.may_be_filled.begin(), other.may_be_filled.end());
    }
    return out;
  }

  void event(const TileOp& op) {
    const Buffer& ring = *op.barriers()->buffer;
    RingState& state = state_.at(&ring);
    const int64_t slots = ring_slots(ring);
    switch (*ring_event(op)) {
      case RingEvent::Acquire:
        if (state.filling || state.may_fill)
          refuse_ring(op.span, fmt::format("a slot of '{}' is being filled already", ring.name));
        if (state.ahead.most + state.open.most >= slots) {
          refuse_ring(op.span,
                      fmt::format("all {} slots of '{}' may be in use here, and no T.ring_release is before it", slots,
                                  ring.name));
        }
        state.filling = true;
        state.filled.clear();
        state.may_be_filled.clear();
        return;
      case RingEvent::Commit:
        if (!state.filling) refuse_ring(op.span, fmt::format("no slot of '{}' was acquired before", ring.name));
        for (const auto& [buffer, of] : ring_of_) {
          if (of != &ring || state.filled.contains(buffer)) continue;
          refuse_ring(op.span, fmt::format("'{}' may not be filled in this slot of '{}'", buffer->name, ring.name));
        }
        state.filling = false;
        ++state.ahead.least, ++state.ahead.most;
        return;
      case RingEvent::Wait:
        if (state.ahead.least < 1) refuse_ring(op.span, fmt::format("no slot of '{}' was filled before", ring.name));
        --state.ahead.least, --state.ahead.most;
        ++state.open.least, ++state.open.most;
        state.held = true;
        return;
      case RingEvent::Release: {
        const int64_t kept = op.pending();
        if (kept < 0) refuse_ring(op.span, "pending is negative");
        if (state.open.most <= kept && kept == 0) {
          refuse_ring(op.span, fmt::format("no slot of '{}' was taken before", ring.name));
        }
        state.open = {std::min(state.open.least, kept), std::min(state.open.most, kept)};
        state.held &= kept > 0;
        return;
      }
    }
  }

  void check(const RegionAccess& access, const TileOp* op) {
    const Buffer* buffer = access.region.buffer.get();
    const auto at = ring_of_.find(buffer);
    if (at == ring_of_.end()) return;
    RingState& state = state_.at(at->second);
    const bool fills = op && op->is_by_tma() && op->barriers() && op->barriers()->buffer.get() == at->second;
    if (access.write && !fills) {
      refuse_ring(access.span, fmt::format("'{}' is written, and only copies for its ring '{}' fill it", buffer->name,
                                           at->second->name));
    }
    if (fills && !state.filling) {
      refuse_ring(access.span, fmt::format("'{}' is filled outside of T.ring_acquire and T.ring_commit of '{}'",
                                           buffer->name, at->second->name));
    }
    if (fills && access.write) {
      if (state.may_be_filled.contains(buffer) || !access.region.whole()) {
        refuse_ring(access.span, fmt::format("a slot of '{}' is filled by several copies", buffer->name));
      }
      state.filled.insert(buffer);
      state.may_be_filled.insert(buffer);
    }
    if (!access.write && !state.held) {
      refuse_ring(access.span, fmt::format("'{}' is read outside of T.ring_wait and T.ring_release of '{}'",
                                           buffer->name, at->second->name));
    }
  }

  void accesses(const Stmt& s, const TileOp* op) {
    for (const RegionAccess& each : helve::accesses(s)) check(each, op);
  }
  void expressions(const Stmt& s) {
    for (const RegionAccess& each : direct_accesses(s)) check(each, nullptr);
  }

  RingStates state_;
  std::unordered_map<const Buffer*, const Buffer*> ring_of_;
};

/// What rings order: their mbarriers, and the buffers that they hand over.
std::unordered_set<const Buffer*> ordered_by_rings(const Kernel& kernel) {
  std::unordered_set<const Buffer*> out;
  for (const BufferRef& ring : rings_of(kernel.body)) {
    out.insert(ring.get());
    for (const BufferRef& buffer : buffers_of_ring(kernel.body, *ring)) out.insert(buffer.get());
  }
  return out;
}

/// Memory that both roles access, and one of them writes.
void check_shared(const Function& f, const Kernel& kernel) {
  std::vector<std::vector<BufferEffect>> effects;
  std::vector<const Role*> roles;
  for (const Stmt& s : statements_of(kernel.body)) {
    if (const Role* role = as<Role>(s)) {
      roles.push_back(role);
      effects.push_back(buffer_effects(role->body));
    }
  }
  if (roles.size() < 2) return;
  const std::unordered_set<const Buffer*> ordered = ordered_by_rings(kernel);
  for (const BufferEffect& one : effects[0]) {
    for (const BufferEffect& other : effects[1]) {
      const bool meet =
          share_memory(*one.buffer, *other.buffer) || may_overlap(f.may_alias, one.buffer.get(), other.buffer.get());
      const bool by_ring = one.buffer == other.buffer && ordered.contains(one.buffer.get());
      if (!meet || by_ring || (!one.written && !other.written)) continue;
      refuse_ring(roles[1]->span, fmt::format("both roles access '{}', which one of them writes", one.buffer->name));
    }
  }
}

/// What orders the copies of the blocks of a cluster for each other: they have the same events of a shared ring, each
/// releases its slots to all, and none copies before the mbarriers of all are ready, or ends before all have.
void check_clusters(const Kernel& kernel) {
  const ClusterFacts facts = cluster_facts(kernel);
  walk(kernel.body, [&](const Stmt& s) {
    const TileOp* op = as<TileOp>(s);
    if (!op || !op->barriers()) return;
    const Buffer& ring = *op->barriers()->buffer;
    const bool shared = is_shared_ring(kernel.body, ring);
    if (op->op == TileOpcode::RingRelease && op->flag(op->row().index_of("cluster")) != shared) {
      refuse_ring(s->span, shared ? fmt::format("slots of '{}' are released to this block alone, and others fill them",
                                                ring.name)
                                  : fmt::format("slots of '{}' are released to a cluster that does not fill them",
                                                ring.name));
    }
    if (op->multicast() == 1) return;
    const std::string& buffer = op->region(1).buffer->name;
    if (op->multicast() != kernel.cluster) {
      refuse_ring(s->span, fmt::format("{} blocks fill '{}' together, and a cluster has {}", op->multicast(), buffer,
                                       kernel.cluster));
    }
    if (!facts.same.contains(op)) {
      refuse_ring(s->span, fmt::format("the blocks of a cluster may fill '{}' from different regions", buffer));
    }
    if (facts.uneven.contains(&ring)) {
      refuse_ring(s->span, fmt::format("the blocks of a cluster may fill slots of '{}' unequally often", ring.name));
    }
    if (!shared_boxes(*op, op->multicast())) {
      refuse_ring(s->span, fmt::format("'{}' has no equal parts for the blocks of a cluster", buffer));
    }
  });
  if (!has_shared_rings(kernel.body)) return;
  const std::vector<Stmt> body = statements_of(kernel.body);
  const auto is = [&](size_t at, TileOpcode what) { return as<TileOp>(body[at]) && as<TileOp>(body[at])->op == what; };
  size_t ready = 0;
  while (ready < body.size() && !is(ready, TileOpcode::SyncCluster)) {
    if (has_ring_events(body[ready])) break;
    ++ready;
  }
  if (ready == body.size() || !is(ready, TileOpcode::SyncCluster)) {
    refuse_ring(kernel.span, "no T.sync_cluster precedes copies to the memory of other blocks");
  }
  for (size_t i = ready; i < body.size(); ++i) {
    if (!is(i, TileOpcode::MbarrierInit) || !is_ring(*as<TileOp>(body[i])->barriers()->buffer)) continue;
    refuse_ring(body[i]->span, "a T.sync_cluster precedes it, after which other blocks use the ring");
  }
  if (ready + 1 == body.size() || !is(body.size() - 1, TileOpcode::SyncCluster)) {
    refuse_ring(kernel.span, "no T.sync_cluster ends it, while other blocks use its memory");
  }
}

}  // namespace

std::optional<RingFault> ring_fault(const Function& f, const Ref<const Kernel>& kernel) {
  RingFault fault;
  const std::optional<Ref<const Kernel>> joined = joined_roles(kernel, &fault);
  if (!joined) return fault;
  try {
    check_shared(f, *kernel);
    check_clusters(**joined);
    RingRun((*joined)->body).run((*joined)->body);
  } catch (const RingRefusal& found) {
    return found.fault;
  }
  return std::nullopt;
}

}  // namespace helve
