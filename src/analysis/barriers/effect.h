// The effect of a part of the program: its accesses that no barrier precedes, and those that none follows.
// It is computed once for each part, from its parts. So a loop body is analysed once at any depth, and inserting or
// removing a barrier updates only the path from it to the root.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "access_table.h"

namespace helve::barriers {

/// A set of accesses, in ascending order.
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

/// Sets of accesses by the queue of copies to which they belong, or after whose wait they are.
using QueuedAccesses = std::map<QueueId, AccessSet>;

/// A barrier orders what is pending, but not copies in flight: other threads see an asynchronous copy after the issuing
/// thread's wait and then a barrier. Which copies of its queue a wait covers is not analysed: all count as complete
/// and, unless it waits for all, also as in flight.
struct Effect {
  AccessSet exposed;  ///< that no barrier precedes: they conflict with what is pending before
  QueuedAccesses exposed_flight;  ///< that follow a wait without a barrier: they conflict with copies in flight before
  AccessSet pending;  ///< its own accesses that no barrier follows
  QueuedAccesses flight;  ///< its own copies that are not waited for
  bool barrier = false;  ///< every path through it has a barrier
  std::set<QueueId> lands;  ///< copies in flight before it are pending after it
  std::set<QueueId> drains;  ///< every path through it waits for all copies

  bool operator==(const Effect&) const = default;
};

/// `first` followed by `second`.
void append(Effect& first, const Effect& second);
Effect one_of(const Effect& first, const Effect& second);
/// The repeated body, seen from outside of its loop.
Effect repeated(const Effect& body, const BlockLoop& loop, AccessTable& table);

}  // namespace helve::barriers
