// The combination of a reduction.
// Targets combine in different orders, which the operation allows.
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

  /// The neutral element. An empty reduction of magnitudes gives 0, but an existing destination is kept, even if
  /// negative.
  Expr identity() const;
  /// Two partial results as one.
  Expr merge(const Expr& a, const Expr& b) const;
  /// An element of the source, or its value, as a partial result.
  Expr element(const std::vector<Expr>& at) const;
  Expr partial(const Expr& value) const;
  /// The place of a result for the coordinates of the remaining dimensions.
  std::vector<Expr> place(const std::vector<Expr>& rest) const;
  Stmt write(const std::vector<Expr>& rest, Expr value) const;
};

Reduction reduction_of(const TileOp& op);

}  // namespace helve
