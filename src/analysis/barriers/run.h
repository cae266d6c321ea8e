// A run of a kernel's parts from the first to the last, with what no barrier follows yet.
// A part that has been run is known by its effect; it is entered again only where it meets what is new.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "part.h"
#include "questions.h"

namespace helve::barriers {

/// Two parts that meet, by their accesses seen from the innermost loop around both.
struct Found {
  AccessId earlier;
  AccessId later;
  const Part* place;  ///< of the later
  Meeting meeting;
};

/// Accesses by the depth that they are seen from, and by memory. Those of an earlier iteration of the loop of their
/// depth stand apart.
class Accessed {
 public:
  void add(AccessId id, bool carried, const AccessTable& table);
  void add(const Accessed& others);
  void add(const AccessSet& set, const AccessTable& table);
  void clear() { levels_.clear(); }
  bool empty() const { return levels_.empty(); }
  /// The loop of this depth goes on: what was done in it is now an earlier iteration's.
  void carry(size_t depth);
  /// What earlier iterations of the loop of this depth did.
  Accessed earlier(size_t depth) const;
  /// The loop of this depth ends: what was done in it is seen from outside.
  void leave(size_t depth, AccessTable& table);
  /// The first of them that `later` meets.
  std::optional<Found> meets(AccessId later, AccessTable& table, Questions& questions) const;
  std::optional<Found> meets(const AccessSet& later, AccessTable& table, Questions& questions) const;

 private:
  using ByMemory = std::map<uint32_t, AccessSet>;
  struct Level {
    ByMemory now, earlier;
  };
  std::vector<Level> levels_;
};

/// What a place of the program finds.
struct State {
  Accessed pending;
  Accessed flight;
};

class Run {
 public:
  /// Puts barriers before the later of two parts that meet, in front of a loop where the loop alone needs none; or only
  /// finds such parts.
  Run(AccessTable& table, Questions& questions, bool insert) : table_(table), questions_(questions), insert_(insert) {}

  /// Runs the body of a kernel.
  void run(Part& kernel);
  /// What was found, each later part once.
  const std::vector<Found>& found() const { return found_; }
  bool has_inserted() const { return has_inserted_; }

 private:
  void sequence(Part& part, State& state, bool again);
  void branch(Part& part, State& state, bool again);
  void loop(Part& part, State& state, bool again);
  void enter(Part& part, State& state, bool again);
  bool needs_barrier(const Part& part, const State& state, bool stays_inside);
  std::optional<Found> meets(const Effect& effect, const State& state);
  void apply(const Effect& effect, State& state) const;
  bool body_meets(const Part& body, const State& state);

  AccessTable& table_;
  Questions& questions_;
  bool insert_;
  bool has_inserted_ = false;
  std::vector<Found> found_;
};

}  // namespace helve::barriers
