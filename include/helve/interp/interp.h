// The reference interpreter: the executable definition of the language.
// It runs a function at every stage, from the source IR to flat loops, so that a pass that changes meaning is found by running
// the function before and after it.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "helve/ir/tensor/function.h"

namespace helve::interp {

/// A tensor argument. `data` points to element 0; strides count elements, and are compact row-major when absent.
struct TensorArg {
  void* data = nullptr;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
};

/// A scalar argument. Integers go to any parameter, floats only to float parameters; a float parameter rounds.
struct ScalarArg {
  std::variant<double, int64_t> value;
};

using Arg = std::variant<TensorArg, ScalarArg>;

struct Options {
  /// Subscripts outside a buffer are refused (OutOfBounds). Without it they are undefined behaviour.
  bool check_bounds = true;
};

/// Runs `f` on `args`, one for each parameter in order. Dynamic extents are bound from the shapes of the arguments. Blocks of a
/// kernel run one after another; the cores of a mesh run in lockstep between collectives. What the language leaves undefined shows:
/// memory that was never written reads as NaN, the least signed or the greatest unsigned integer, true.
///
/// Throws UserError: wrong arguments (ArgumentCount, ArgumentRank, ArgumentShape, ArgumentStrides, ...), OutOfBounds, ZeroDivisor,
/// IndexOverflow, NegativeShift, NegativeExtent, ShapeMismatch, CollectiveShape, DivergentCollective.
void run(const FunctionRef& f, const std::vector<Arg>& args, const Options& options = {});

}  // namespace helve::interp
