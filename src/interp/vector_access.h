// Vector accesses: what the lanes of a vectorized loop read before the first of them runs, and write after the last.
// They run as the machine makes them, so that a pass that moves an access across another is seen by its results.
#pragma once

#include "stmt_code.h"

namespace helve::interp {

/// One vector access, as the loop around its lanes sees it.
class VectorAccess {
 public:
  virtual ~VectorAccess() = default;
  /// The access of lane `lane` of `lanes`, whose variable has its value, before any lane runs.
  virtual void before_lanes(Frame& frame, int64_t lane, int64_t lanes) const = 0;
  /// The same after all lanes have run.
  virtual void after_lanes(Frame& frame, int64_t lane) const = 0;
};

/// Prepared while `scope.vectors` is the list of the loop's accesses.
ExprCodeRef prepare_vector_load(const Load& load, Scope& scope);
StmtCodeRef prepare_vector_store(const Store& store, Scope& scope);

}  // namespace helve::interp
