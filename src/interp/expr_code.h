// Expressions prepared for running.
// One small object a node with its slots and functions resolved; evaluation is a walk over them.
#pragma once

#include <memory>
#include <vector>

#include "operators.h"
#include "scope.h"
#include "trace.h"

namespace helve::interp {

class ExprCode {
 public:
  virtual ~ExprCode() = default;
  /// The value in the evaluation dtype of the expression.
  virtual Scalar eval(Frame& frame) const = 0;
  /// In a checked run, the value for a copy: an element without a value stands in `origin` instead of being reported.
  /// What computes with the value uses it, so only loads and what hands them on have this of their own.
  virtual Scalar eval_copy(Frame& frame, Origin&) const { return eval(frame); }
};
using ExprCodeRef = std::unique_ptr<const ExprCode>;

ExprCodeRef prepare(const Expr& e, Scope& scope);
std::vector<ExprCodeRef> prepare(const std::vector<Expr>& exprs, Scope& scope);

/// Bytes by which the first element of a buffer lies behind a multiple of a page, as the run's options choose it.
int64_t first_byte(const Storage& buffer, const Scope& scope);

/// The values of index expressions.
std::vector<int64_t> eval_all(const std::vector<ExprCodeRef>& exprs, Frame& frame);

/// A subscripted element: its instance and where it stands.
class Element {
 public:
  Element(const Storage& buffer, const std::vector<Expr>& indices, Scope& scope, const Span& span);

  /// The offset of the element; checked unless the options say otherwise.
  int64_t offset(Frame& frame) const;
  Instance& instance(Frame& frame) const { return *frame.buffers[slot_]; }
  const Site& site() const { return site_; }

 private:
  size_t slot_;
  std::vector<ExprCodeRef> indices_;
  Site site_;
  bool check_;
};

}  // namespace helve::interp
