// Arguments bound to parameters.
// The checks come before the program runs, so that a wrong call leaves every argument untouched.
#pragma once

#include <memory>
#include <vector>

#include "scope.h"

namespace helve::interp {

/// The values of a call: scalars by variable, tensors by parameter, shared by all cores.
class Arguments {
 public:
  /// Checks the arguments against the parameters (see run).
  Arguments(const FunctionRef& f, const std::vector<Arg>& args, Scope& scope);

  /// Makes the arguments visible to an executor.
  void enter(Frame& frame) const;

  /// UnwrittenOutput for the first new array of which the checked run has left out elements.
  void check_written() const;

 private:
  void bind_scalars(const std::vector<Arg>& args);
  void bind_dims(const std::vector<Arg>& args);
  void check_tensor(const BufferRef& param, const TensorArg& arg, bool fresh);
  void check_assumption(const Assumption& assumption);

  FunctionRef function_;
  Scope& scope_;
  std::vector<std::pair<size_t, Scalar>> scalars_;                     ///< by variable slot
  std::vector<std::pair<size_t, std::unique_ptr<Instance>>> tensors_;  ///< by buffer slot
};

}  // namespace helve::interp
