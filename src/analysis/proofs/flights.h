// Asynchronous copies that may be unfinished, each instance with what is known of its iteration.
// A ring is read where the copy of some iterations before has arrived and later ones have not: which slot one of them
// fills is known from how many iterations lie between.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <unordered_set>
#include <utility>

#include "helve/ir/expr/visit.h"
#include "helve/ir/tensor/copy_queue.h"
#include "helve/ir/tensor/stmt.h"

namespace helve::proofs {

/// A number for each of some loops.
using Counts = std::map<const For*, int64_t>;

/// Which instance of a copy is meant, seen from where the program is now. Iterations are counted of loops of one
/// variable whose iterations run one after the other.
struct Instance {
  Counts ago;  ///< of loops around both: its iteration is so many before; none: this one
  Counts values;  ///< of loops around the copy alone: the value of their variable
  Counts since;  ///< of loops around this place alone: iterations that are over
  std::set<const For*> lost;  ///< counted loops around the copy of whose variable nothing is known
  bool moved = false;  ///< names and variables of other loops have other values now
  /// It is of another iteration of a loop that threads divide, and of this one of the loops around that.
  bool elsewhere = false;
  bool any = false;  ///< it may be of any iterations
  auto operator<=>(const Instance&) const = default;
};

struct Flight {
  int64_t age = 0;  ///< the least number of copies issued after it
  bool read = false;  ///< it has read its source
};

/// A loop and the operations of its body.
struct LoopBody {
  const For* counted = nullptr;  ///< the loop itself, if its iterations are counted
  bool divided = false;  ///< threads share the iterations
  bool is_inside = false;  ///< of a loop whose iterations threads share
  std::unordered_set<const TileOp*> own;
};

/// Copies with so many instances that those of other iterations count as one, in all states of a function.
struct Crowded {
  std::set<int> copies;
  bool all = false;
};

class Flights {
 public:
  /// Of a kernel that begins; states that are joined share what is crowded.
  explicit Flights(std::shared_ptr<Crowded> crowded = {}) : crowded_(std::move(crowded)) {}

  /// A copy by its number in program order, so that the first reason found is deterministic.
  using Key = std::pair<int, Instance>;
  std::map<Key, std::pair<const TileOp*, Flight>> of;

  /// The union of two paths; true if it adds something.
  bool join(const Flights& other);
  void add(int place, const TileOp& copy, const Flight& flight) { merge({place, {}}, &copy, flight); }
  /// A copy or a group of them was issued to the queue.
  void age(const CopyQueue& queue);
  /// All but the `pending` youngest are complete. With `sources`, what copies write to global memory stays on its way.
  void complete(const CopyQueue& queue, int64_t pending, bool sources);

  // The program goes into a loop, on to its next iteration, and out of it.
  void enter(const LoopBody& loop);
  void next_iteration(const LoopBody& loop);
  /// Of the ends of iterations, what an iteration behind them sees.
  Flights seen_by_next(const LoopBody& loop) const;
  void leave(const LoopBody& loop);

 private:
  bool merge(Key key, const TileOp* copy, const Flight& flight);
  /// `f(instance, copy)` changes an instance, and is false for one that cannot be.
  template <class F>
  void rename(F&& f);

  bool is_crowded(int place) const { return crowded_->all || crowded_->copies.contains(place); }

  std::shared_ptr<Crowded> crowded_;
};

/// What a subscript of a copy is, in names of the place where the program is now: what is not known becomes a new name.
/// `fixed` are variables that have one value in the whole kernel.
class Renaming {
 public:
  Renaming(const Instance& at, const std::unordered_set<const Var*>& fixed) : at_(at), fixed_(fixed) {}
  Expr operator()(const Expr& subscript);
  /// What the place itself knows of its variables by the instance.
  Expr condition() const;

 private:
  const Instance& at_;
  const std::unordered_set<const Var*>& fixed_;
  Substitution then_;
};

}  // namespace helve::proofs
