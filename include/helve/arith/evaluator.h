// Values of an expression at many points.
// simplify() makes a new expression for each point; where each thread of a warp or each lane of a vector is asked, the
// expression becomes a list of steps once.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "helve/ir/expr/expr.h"

namespace helve {

/// An integer or bool expression as a function of some variables.
class Evaluator {
 public:
  Evaluator(const Expr& e, const std::vector<VarRef>& vars);

  /// The value where the variables have these values, one for each, in their order; `and`, `or` and selections are
  /// lazy. Empty where it is undefined (zero divisor, shift out of range), leaves int64 (index; uint64 above 2^63 - 1),
  /// or depends on anything but the variables: others, memory, floats.
  std::optional<int64_t> at(std::span<const int64_t> values) const;

 private:
  enum class Kind { Unknown, Constant, Variable, Cast, Apply };

  /// Computes one part of the expression from earlier ones.
  struct Step {
    Kind kind = Kind::Unknown;
    Op op = Op::Add;
    DType operand;  ///< type of the operands
    DType dtype;  ///< type of the result
    int64_t value = 0;  ///< of a constant; the position of a variable
    std::vector<size_t> args = {};
  };
  std::optional<int64_t> value_of(const Step& step, std::span<const int64_t> values,
                                  const std::vector<std::optional<int64_t>>& known) const;

  std::vector<Step> steps_;  ///< the last is the whole expression
};

}  // namespace helve
