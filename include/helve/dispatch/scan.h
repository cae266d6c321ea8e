// The sums of a scan.
// Targets add in different orders, which the operation allows for floats.
#pragma once

#include "helve/ir/tensor/stmt.h"

namespace helve {

struct Scan {
  Region src;
  Region dst;
  size_t dim;  ///< of both regions
  bool reverse;
  DType acc;

  Expr identity() const;
  /// An element of the source, or its value, as a sum of one element.
  Expr element(const std::vector<Expr>& at) const;
  Expr partial(const Expr& value) const { return cast(value, acc); }
  /// The sum that ends at an element, rounded once.
  Stmt write(const std::vector<Expr>& at, const Expr& sum) const;
};

Scan scan_of(const TileOp& op);

}  // namespace helve
