// The algebra of effects: sequence, choice, repetition.
// Sets grow in place, so a long sequence costs the sum of its parts.
#include "effect.h"

#include <algorithm>
#include <iterator>

namespace helve::barriers {

void AccessSet::add(AccessId id) {
  if (ids_.empty() || ids_.back() < id) return ids_.push_back(id);
  const auto at = std::lower_bound(ids_.begin(), ids_.end(), id);
  if (at == ids_.end() || *at != id) ids_.insert(at, id);
}

void AccessSet::add(const AccessSet& others) {
  constexpr size_t kFew = 8;  // of which each is looked up
  if (others.ids_.size() * kFew <= ids_.size()) {
    for (AccessId id : others) add(id);
    return;
  }
  if (std::includes(ids_.begin(), ids_.end(), others.ids_.begin(), others.ids_.end())) return;
  std::vector<AccessId> all;
  all.reserve(ids_.size() + others.ids_.size());
  std::set_union(ids_.begin(), ids_.end(), others.ids_.begin(), others.ids_.end(), std::back_inserter(all));
  ids_ = std::move(all);
}

AccessSet AccessSet::seen_from(size_t depth, AccessTable& table) const {
  AccessSet out;
  for (AccessId id : ids_) out.ids_.push_back(table.seen_from(id, depth));
  std::sort(out.ids_.begin(), out.ids_.end());
  out.ids_.erase(std::unique(out.ids_.begin(), out.ids_.end()), out.ids_.end());
  return out;
}

AccessSet AccessSet::without(const AccessSet& others) const {
  AccessSet out;
  std::set_difference(ids_.begin(), ids_.end(), others.ids_.begin(), others.ids_.end(), std::back_inserter(out.ids_));
  return out;
}

bool AccessSet::contains(AccessId id) const { return std::binary_search(ids_.begin(), ids_.end(), id); }

namespace {

void add(QueuedAccesses& sets, const QueuedAccesses& others) {
  for (const auto& [queue, set] : others) sets[queue].add(set);
}

}  // namespace

void append(Effect& first, const Effect& second) {
  if (!first.barrier) first.exposed.add(second.exposed);
  for (QueueId queue : first.lands) first.exposed_flight[queue].add(second.exposed);
  for (const auto& [queue, set] : second.exposed_flight) {
    if (!first.drains.contains(queue)) first.exposed_flight[queue].add(set);
  }
  if (second.barrier) first.pending = {};
  for (QueueId queue : second.lands) {
    if (const auto at = first.flight.find(queue); at != first.flight.end()) first.pending.add(at->second);
  }
  first.pending.add(second.pending);
  for (QueueId queue : second.drains) first.flight.erase(queue);
  add(first.flight, second.flight);
  if (second.barrier) first.lands.clear();
  for (QueueId queue : second.lands) {
    if (!first.drains.contains(queue)) first.lands.insert(queue);
  }
  first.barrier |= second.barrier;
  first.drains.insert(second.drains.begin(), second.drains.end());
}

Effect one_of(const Effect& first, const Effect& second) {
  Effect out = first;
  out.exposed.add(second.exposed);
  add(out.exposed_flight, second.exposed_flight);
  out.pending.add(second.pending);
  add(out.flight, second.flight);
  out.barrier = first.barrier && second.barrier;
  out.lands.insert(second.lands.begin(), second.lands.end());
  std::erase_if(out.drains, [&](QueueId queue) { return !second.drains.contains(queue); });
  return out;
}

Effect repeated(const Effect& body, const BlockLoop& loop, AccessTable& table) {
  // Two repetitions suffice: a third adds no access that the second does not.
  Effect out = body;
  append(out, body);
  for (AccessSet* set : {&out.exposed, &out.pending}) *set = set->seen_from(loop.parent->depth, table);
  for (QueuedAccesses* sets : {&out.exposed_flight, &out.flight}) {
    for (auto& [queue, set] : *sets) set = set.seen_from(loop.parent->depth, table);
  }
  if (runs(loop)) return out;
  out.barrier = false;
  out.drains.clear();
  return out;
}

}  // namespace helve::barriers
