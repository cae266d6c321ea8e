// What a part of the program does to the accesses that no barrier follows yet.
// It is computed once for each part, from its own parts; so a loop body is read once however deep it stands, and what
// one barrier more or less changes is found on the way from it to the root.
#pragma once

#include <vector>

#include "access_table.h"

namespace helve::barriers {

/// Accesses in ascending order, each once.
class AccessSet {
 public:
  void add(AccessId id);
  void add(const AccessSet& others);
  /// As seen from outside of the loops deeper than `depth`.
  AccessSet seen_from(size_t depth, AccessTable& table) const;
  /// Those that are not in `others`.
  AccessSet without(const AccessSet& others) const;
  bool contains(AccessId id) const;
  bool empty() const { return ids_.empty(); }
  auto begin() const { return ids_.begin(); }
  auto end() const { return ids_.end(); }
  bool operator==(const AccessSet&) const = default;

 private:
  std::vector<AccessId> ids_;
};

/// A barrier ends what is pending, but not what is in flight: a copy that a thread has begun is seen by others behind a
/// barrier after the thread's wait. Which copies a wait covers is not asked, so that all of them count as done and,
/// unless it waits for all, as in flight.
struct Effect {
  AccessSet exposed;  ///< that no barrier stands before: they meet what was pending before
  AccessSet exposed_flight;  ///< that a wait stands before, and no barrier between: they meet what was in flight
  AccessSet pending;  ///< of its own that no barrier follows
  AccessSet flight;  ///< copies of its own that are not waited for
  bool barrier = false;  ///< each way through it has a barrier
  bool lands = false;  ///< what was in flight before is pending behind it
  bool drains = false;  ///< each way through it waits for all copies

  bool operator==(const Effect&) const = default;
};

/// `first` followed by `second`.
void append(Effect& first, const Effect& second);
Effect one_of(const Effect& first, const Effect& second);
/// The body again and again, seen from outside of its loop.
Effect repeated(const Effect& body, const BlockLoop& loop, AccessTable& table);

}  // namespace helve::barriers
