// What a reduction combines, and how.
// Targets differ in the order in which they combine, which the operation leaves free.
#pragma once

#include <vector>

#include "helve/ir/tensor/combine.h"
#include "helve/ir/tensor/stmt.h"

namespace helve {

struct Reduction {
  ReduceKind kind;
  Region src;
  Region dst;
  size_t dim;  ///< among the dimensions of the source region
  bool clear;
  DType acc;

  /// What combining starts from. Over nothing a magnitude is 0, but what stands in the destination stays, even below 0.
  Expr identity() const;
  /// Two partial results as one.
  Expr merge(const Expr& a, const Expr& b) const;
  /// An element of the source, or its value, as a partial result.
  Expr element(const std::vector<Expr>& at) const;
  Expr partial(const Expr& value) const;
  /// The place of the result for the coordinates of the remaining dimensions.
  std::vector<Expr> place(const std::vector<Expr>& rest) const;
  Stmt write(const std::vector<Expr>& rest, Expr value) const;
};

Reduction reduction_of(const TileOp& op);

}  // namespace helve
