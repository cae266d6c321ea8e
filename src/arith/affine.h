// The affine abstraction of expressions: what isl can read, and unknowns for the rest.
// An unknown may take any value, so whatever holds of the abstraction holds of the expression.
#pragma once

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "helve/arith/relation.h"

namespace helve {

/// Abstracts the expressions of one question. Equal parts without changing loads become one unknown.
class AffineAbstraction {
 public:
  explicit AffineAbstraction(const Translation& translation) : translation_(translation) {}

  /// `e` (index or bool) over sums, products by constants, // and % by positive constants, min, max, selections,
  /// comparisons of these and connectives.
  Expr operator()(const Expr& e);

  const std::vector<VarRef>& unknowns() const { return unknowns_; }
  /// What the unknowns stand for.
  const std::vector<Expr>& parts() const { return parts_; }
  /// Says of the first unknown what it stands for; empty when there is none.
  const std::string& reason() const { return reason_; }

 private:
  template <class F>
  Expr once(const Expr& e, F&& f);
  Expr index(const Expr& e);
  Expr index_once(const Expr& e);
  Expr index_operator(const Expr& e, const Apply& node);
  Expr by_constant(const Expr& e, const Apply& node);
  Expr condition(const Expr& e);
  Expr condition_once(const Expr& e);
  /// A data integer as the index of the same value; null when that is not found.
  Expr data_integer(const Expr& e);
  bool repeats(const Expr& e) const;
  Expr unknown(const Expr& e);

  const Translation& translation_;
  std::vector<std::pair<Expr, VarRef>> known_;
  std::vector<VarRef> unknowns_;
  std::vector<Expr> parts_;
  std::string reason_;
  std::unordered_map<Expr, Expr> abstracted_;  ///< large expressions
  size_t varying_ = 0;  ///< unknowns that another place may not share
};

}  // namespace helve
