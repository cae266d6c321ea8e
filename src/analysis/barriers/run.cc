// The run: a state on its way through the parts.
// A part that was run before is passed by its effect, unless it meets something new.
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

std::optional<Found> Accessed::meets(AccessId later, AccessTable& table, Questions& questions) const {
  const uint32_t memory = table.memory(later);
  const auto among = [&](const ByMemory& sets, AccessId seen, bool carried) -> std::optional<Found> {
    auto it = sets.find(memory);
    if (it == sets.end()) return {};
    for (AccessId earlier : it->second) {
      const Meeting meeting = questions.ask(earlier, seen, carried);
      if (meeting != Meeting::Never) return Found{earlier, seen, nullptr, meeting};
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

std::optional<Found> Accessed::meets(const AccessSet& later, AccessTable& table, Questions& questions) const {
  if (empty()) return {};
  for (AccessId id : later) {
    if (std::optional<Found> found = meets(id, table, questions)) return found;
  }
  return {};
}

// The run.

void Run::run(Part& kernel) {
  State state;
  enter(kernel, state, false);
}

std::optional<Found> Run::meets(const Effect& effect, const State& state) {
  if (std::optional<Found> found = state.pending.meets(effect.exposed, table_, questions_)) return found;
  return state.flight.meets(effect.exposed_flight, table_, questions_);
}

void Run::apply(const Effect& effect, State& state) const {
  if (effect.barrier) state.pending.clear();
  if (effect.lands) state.pending.add(state.flight);
  state.pending.add(effect.pending, table_);
  if (effect.drains) state.flight.clear();
  state.flight.add(effect.flight, table_);
}

/// Runs a part, after which its effect is known, or, `again`, finds in a part that was run what it meets of a new
/// state.
void Run::enter(Part& part, State& state, bool again) {
  const bool is_plain = part.parts.empty() && part.kind != Part::Kind::Sequence;
  if (again && (is_plain || !meets(part.effect, state))) return apply(part.effect, state);
  switch (part.kind) {
    case Part::Kind::Sequence: sequence(part, state, again); break;
    case Part::Kind::Branch: branch(part, state, again); break;
    case Part::Kind::Loop: loop(part, state, again); break;
    default: part.effect = effect_of(part, table_); return apply(part.effect, state);
  }
  if (!again || has_inserted_) part.effect = effect_of(part, table_);
}

void Run::sequence(Part& part, State& state, bool again) {
  std::vector<PartRef> out;
  bool behind_inserted = false;  // a barrier was put before what belongs to one statement
  for (PartRef& each : part.parts) {
    // A barrier in front of a loop stands in front of what its bounds read, too.
    const Part* before = out.empty() ? nullptr : out.back().get();
    const bool reads_bounds = before && before->stmt == each->stmt && !before->accesses.empty();
    if (needs_barrier(*each, state, behind_inserted || reads_bounds)) {
      out.push_back(std::make_unique<Part>());
      out.back()->kind = Part::Kind::Barrier;
      out.back()->stmt = tile_op(TileOpcode::SyncThreads, {}, each->stmt->span);
      out.back()->is_inserted = has_inserted_ = true;
      enter(*out.back(), state, false);
      behind_inserted = true;
    } else {
      behind_inserted = false;
    }
    enter(*each, state, again);
    out.push_back(std::move(each));
  }
  part.parts = std::move(out);
}

/// Does what is pending have to be ended here? Records what is found where none is inserted.
bool Run::needs_barrier(const Part& part, const State& state, bool stays_inside) {
  if (part.kind == Part::Kind::Accesses) {
    AccessSet accesses;
    for (AccessId id : part.accesses) accesses.add(id);
    std::optional<Found> found = state.pending.meets(accesses, table_, questions_);
    if (!found || insert_) return found.has_value();
    found->place = &part;
    const bool known = std::any_of(found_.begin(), found_.end(), [&](const Found& f) { return f.place == &part; });
    if (!known) found_.push_back(*found);
    return false;
  }
  const bool is_for = part.kind == Part::Kind::Loop && part.stmt->kind == StmtKind::For;
  return insert_ && is_for && !stays_inside && body_meets(*part.parts[0], state);
}

/// Does a part of the first iteration, in front of the body's own barriers, meet what is pending?
bool Run::body_meets(const Part& body, const State& state) {
  for (const PartRef& part : body.parts) {
    if (part->kind == Part::Kind::Barrier) return false;
    if (state.pending.meets(part->all, table_, questions_)) return true;
  }
  return false;
}

void Run::branch(Part& part, State& state, bool again) {
  State otherwise = state;
  enter(*part.parts[0], state, again);
  enter(*part.parts[1], otherwise, again);
  state.pending.add(otherwise.pending);
  state.flight.add(otherwise.flight);
}

void Run::loop(Part& part, State& state, bool again) {
  const size_t depth = part.loop->depth;
  Part& body = *part.parts[0];
  std::optional<State> before;
  if (!runs(*part.loop)) before = state;
  enter(body, state, again);
  for (Accessed* accessed : {&state.pending, &state.flight}) accessed->carry(depth);
  // Of what stands before the loop, later iterations meet what the first one met.
  if (meets(body.effect, {state.pending.earlier(depth), state.flight}))
    enter(body, state, true);
  else
    apply(body.effect, state);
  for (Accessed* accessed : {&state.pending, &state.flight}) accessed->leave(depth, table_);
  if (!before) return;
  if (body.effect.barrier) state.pending.add(before->pending);
  if (body.effect.drains) state.flight.add(before->flight);
}

}  // namespace helve::barriers
