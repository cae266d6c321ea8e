// The abstract execution.
// A part that was run before is passed by its effect, unless it conflicts with something new.
#include "run.h"

#include <algorithm>

#include "helve/ir/tensor/stmt.h"

namespace helve::barriers {

// Accesses of a state.

void Accessed::add(AccessId id, bool carried, const AccessTable& table) {
  const size_t depth = table.depth(id);
  if (levels_.size() <= depth) levels_.resize(depth + 1);
  (carried ? levels_[depth].earlier : levels_[depth].now)[table.memory(id)].add(id);
}

void Accessed::add(const AccessSet& set, const AccessTable& table) {
  for (AccessId id : set) add(id, false, table);
}

void Accessed::add(const Accessed& others) {
  if (levels_.size() < others.levels_.size()) levels_.resize(others.levels_.size());
  for (size_t depth = 0; depth < others.levels_.size(); ++depth) {
    for (const auto& [memory, set] : others.levels_[depth].now) levels_[depth].now[memory].add(set);
    for (const auto& [memory, set] : others.levels_[depth].earlier) levels_[depth].earlier[memory].add(set);
  }
}

void Accessed::carry(size_t depth) {
  if (levels_.size() <= depth) return;
  for (const auto& [memory, set] : levels_[depth].now) levels_[depth].earlier[memory].add(set);
  levels_[depth].now.clear();
}

Accessed Accessed::earlier(size_t depth) const {
  Accessed out;
  if (levels_.size() <= depth) return out;
  out.levels_.resize(depth + 1);
  out.levels_[depth].earlier = levels_[depth].earlier;
  return out;
}

void Accessed::leave(size_t depth, AccessTable& table) {
  if (levels_.size() <= depth) return;
  const Level left = std::move(levels_[depth]);
  levels_.resize(depth);
  for (const ByMemory* sets : {&left.now, &left.earlier}) {
    for (const auto& [memory, set] : *sets) levels_[depth - 1].now[memory].add(set.seen_from(depth - 1, table));
  }
}

std::optional<Found> Accessed::conflict_with(AccessId later, AccessTable& table, ConflictQueries& conflicts) const {
  const uint32_t memory = table.memory(later);
  const auto among = [&](const ByMemory& sets, AccessId seen, bool carried) -> std::optional<Found> {
    auto it = sets.find(memory);
    if (it == sets.end()) return {};
    for (AccessId earlier : it->second) {
      const Conflict conflict = conflicts.ask(earlier, seen, carried);
      if (conflict != Conflict::None) return Found{earlier, seen, nullptr, conflict};
    }
    return {};
  };
  for (size_t depth = 0; depth < levels_.size(); ++depth) {
    const AccessId seen = table.seen_from(later, depth);
    if (std::optional<Found> found = among(levels_[depth].now, seen, false)) return found;
    if (std::optional<Found> found = among(levels_[depth].earlier, seen, true)) return found;
  }
  return {};
}

std::optional<Found> Accessed::conflict_with(const AccessSet& later, AccessTable& table,
                                             ConflictQueries& conflicts) const {
  if (empty()) return {};
  for (AccessId id : later) {
    if (std::optional<Found> found = conflict_with(id, table, conflicts)) return found;
  }
  return {};
}

// The run.

void Run::run(Part& kernel) {
  State state;
  enter(kernel, state, false);
}

bool Run::finds_any(Part& kernel) {
  first_only_ = true;
  run(kernel);
  return !found_.empty();
}

std::optional<Found> Run::conflict_with(const Effect& effect, const State& state) {
  if (std::optional<Found> found = state.pending.conflict_with(effect.exposed, table_, conflicts_)) return found;
  for (const auto& [queue, later] : effect.exposed_flight) {
    const auto at = state.flight.find(queue);
    if (at == state.flight.end()) continue;
    if (std::optional<Found> found = at->second.conflict_with(later, table_, conflicts_)) return found;
  }
  return {};
}

void Run::apply(const Effect& effect, State& state) const {
  if (effect.barrier) state.pending.clear();
  for (QueueId queue : effect.lands) {
    if (const auto at = state.flight.find(queue); at != state.flight.end()) state.pending.add(at->second);
  }
  state.pending.add(effect.pending, table_);
  for (QueueId queue : effect.drains) state.flight.erase(queue);
  for (const auto& [queue, copies] : effect.flight) state.flight[queue].add(copies, table_);
}

/// Runs a part, after which its effect is known; or, `again`, finds the conflicts of a part that was run with a new
/// state.
void Run::enter(Part& part, State& state, bool again) {
  if (is_done()) return;
  const bool is_plain = part.parts.empty() && part.kind != Part::Kind::Sequence;
  if (again && (is_plain || !conflict_with(part.effect, state))) return apply(part.effect, state);
  switch (part.kind) {
    case Part::Kind::Sequence: sequence(part, state, again); break;
    case Part::Kind::Branch: branch(part, state, again); break;
    case Part::Kind::Loop: loop(part, state, again); break;
    default: part.effect = effect_of(part, table_); return apply(part.effect, state);
  }
  if (!is_done() && (!again || has_inserted_)) part.effect = effect_of(part, table_);
}

void Run::sequence(Part& part, State& state, bool again) {
  std::vector<PartRef> out;
  bool after_inserted = false;  // a barrier was inserted before another part of the same statement
  for (PartRef& each : part.parts) {
    if (is_done()) {
      out.push_back(std::move(each));
      continue;
    }
    // A barrier in front of a loop also precedes the reads of its bounds.
    const Part* before = out.empty() ? nullptr : out.back().get();
    const bool reads_bounds = before && before->stmt == each->stmt && !before->accesses.empty();
    if (needs_barrier(*each, state, after_inserted || reads_bounds)) {
      out.push_back(std::make_unique<Part>());
      out.back()->kind = Part::Kind::Barrier;
      out.back()->stmt = tile_op(TileOpcode::SyncThreads, {}, each->stmt->span);
      out.back()->is_inserted = has_inserted_ = true;
      enter(*out.back(), state, false);
      after_inserted = true;
    } else {
      after_inserted = false;
    }
    enter(*each, state, again);
    out.push_back(std::move(each));
  }
  part.parts = std::move(out);
}

/// Is a barrier needed here? Records the conflict if none is inserted.
bool Run::needs_barrier(const Part& part, const State& state, bool stays_inside) {
  if (part.kind == Part::Kind::Accesses) {
    AccessSet accesses;
    for (AccessId id : part.accesses) accesses.add(id);
    std::optional<Found> found = state.pending.conflict_with(accesses, table_, conflicts_);
    if (!found || insert_) return found.has_value();
    found->place = &part;
    const bool known = std::any_of(found_.begin(), found_.end(), [&](const Found& f) { return f.place == &part; });
    if (!known) found_.push_back(*found);
    return false;
  }
  const bool is_for = part.kind == Part::Kind::Loop && part.stmt->kind == StmtKind::For;
  return insert_ && is_for && !stays_inside && body_conflicts(*part.parts[0], state);
}

/// Does the part of the first iteration before the body's own barriers conflict with what is pending?
bool Run::body_conflicts(const Part& body, const State& state) {
  for (const PartRef& part : body.parts) {
    if (part->kind == Part::Kind::Barrier) return false;
    if (state.pending.conflict_with(part->all, table_, conflicts_)) return true;
  }
  return false;
}

void Run::branch(Part& part, State& state, bool again) {
  State otherwise = state;
  enter(*part.parts[0], state, again);
  enter(*part.parts[1], otherwise, again);
  state.pending.add(otherwise.pending);
  for (const auto& [queue, copies] : otherwise.flight) state.flight[queue].add(copies);
}

void Run::loop(Part& part, State& state, bool again) {
  const size_t depth = part.loop->depth;
  Part& body = *part.parts[0];
  std::optional<State> before;
  if (!runs(*part.loop)) before = state;
  enter(body, state, again);
  if (is_done()) return;
  const auto each = [&](const auto& change) {
    change(state.pending);
    for (auto& [queue, copies] : state.flight) change(copies);
  };
  each([&](Accessed& accessed) { accessed.carry(depth); });
  // Conflicts with what precedes the loop are found in its first iteration.
  if (conflict_with(body.effect, {state.pending.earlier(depth), state.flight}))
    enter(body, state, true);
  else
    apply(body.effect, state);
  each([&](Accessed& accessed) { accessed.leave(depth, table_); });
  if (!before) return;
  if (body.effect.barrier) state.pending.add(before->pending);
  for (const auto& [queue, copies] : before->flight) {
    if (body.effect.drains.contains(queue)) state.flight[queue].add(copies);
  }
}

}  // namespace helve::barriers
