// Elements that two neighbouring iterations of a loop read, as of packed memory.
// From a whole pair on, vectors of such iterations load half as many elements, side by side.
#pragma once

#include <optional>
#include <unordered_set>

#include "helve/arith/facts.h"
#include "helve/ir/tensor/stmt.h"

namespace helve {

/// The last variable of a loop, in whose body subscripts are quotients by 2 of it.
class PairedReads {
 public:
  /// `bound` are values of names that the body binds, `facts` hold inside of the loop; both outlive this.
  PairedReads(const For& loop, const Substitution& bound, const Facts& facts);

  /// Is the subscript `u + (r + var) // 2`, with u and r the same in all iterations? And do pairs begin where those of
  /// all others do of which this was asked?
  bool add(const Expr& index);

  /// The iterations before the first whole pair, 0 or 1; 0 without pairs.
  const Expr& head() const { return head_; }

  /// The loop's body for the iteration `position` after these, with quotients and remainders of that alone.
  Stmt body_at(const Expr& position) const;

 private:
  /// r + begin of a quotient or remainder by 2 of r + var, known in front of the loop; nothing for other expressions.
  std::optional<Expr> begin_of(const Expr& e) const;
  bool computes_anywhere(const Expr& e) const;
  Expr offset(const Expr& begin) const;

  const For& loop_;
  const Var* var_;
  const Substitution& bound_;
  const Facts& facts_;
  std::unordered_set<const Var*> names_;  ///< that the body binds
  bool found_ = false;
  Expr head_;
};

}  // namespace helve
