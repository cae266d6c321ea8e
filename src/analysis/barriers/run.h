// An abstract execution of a kernel's parts, with the accesses that no barrier follows yet.
// A part that has been run is represented by its effect; it is run again only if it conflicts with new accesses.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "conflicts.h"
#include "part.h"

namespace helve::barriers {

/// A conflict between two parts, by their accesses seen from the innermost loop around both.
struct Found {
  AccessId earlier;
  AccessId later;
  const Part* place;  ///< of the later
  Conflict conflict;
};

/// Accesses by the depth from which they are seen, and by memory. Those of earlier iterations of the loop of their
/// depth are kept apart.
class Accessed {
 public:
  void add(AccessId id, bool carried, const AccessTable& table);
  void add(const Accessed& others);
  void add(const AccessSet& set, const AccessTable& table);
  void clear() { levels_.clear(); }
  bool empty() const { return levels_.empty(); }
  /// The loop of this depth continues: its accesses so far are now those of an earlier iteration.
  void carry(size_t depth);
  /// The accesses of earlier iterations of the loop of this depth.
  Accessed earlier(size_t depth) const;
  /// The loop of this depth ends: its accesses are now seen from outside.
  void leave(size_t depth, AccessTable& table);
  /// The first of them that conflicts with `later`.
  std::optional<Found> conflict_with(AccessId later, AccessTable& table, ConflictQueries& conflicts) const;
  std::optional<Found> conflict_with(const AccessSet& later, AccessTable& table, ConflictQueries& conflicts) const;

 private:
  using ByMemory = std::map<uint32_t, AccessSet>;
  struct Level {
    ByMemory now, earlier;
  };
  std::vector<Level> levels_;
};

/// The state before a part.
struct State {
  Accessed pending;
  std::map<QueueId, Accessed> flight;
};

class Run {
 public:
  /// Inserts barriers before the later of two conflicting parts, in front of a loop if the loop itself needs none; or
  /// only records conflicts.
  Run(AccessTable& table, ConflictQueries& conflicts, bool insert)
      : table_(table), conflicts_(conflicts), insert_(insert) {}

  /// Runs the body of a kernel.
  void run(Part& kernel);
  /// The same, until a conflict is found; is there any?
  bool finds_any(Part& kernel);
  /// The conflicts found, each later part once.
  const std::vector<Found>& found() const { return found_; }

 private:
  void sequence(Part& part, State& state, bool again);
  void branch(Part& part, State& state, bool again);
  void loop(Part& part, State& state, bool again);
  void enter(Part& part, State& state, bool again);
  bool needs_barrier(const Part& part, const State& state, bool stays_inside);
  std::optional<Found> conflict_with(const Effect& effect, const State& state);
  void apply(const Effect& effect, State& state) const;
  bool body_conflicts(const Part& body, const State& state);
  bool is_done() const { return first_only_ && !found_.empty(); }

  AccessTable& table_;
  ConflictQueries& conflicts_;
  bool insert_;
  bool first_only_ = false;
  bool has_inserted_ = false;
  std::vector<Found> found_;
};

}  // namespace helve::barriers
