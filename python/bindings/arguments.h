// Arguments of a kernel call as the runtime takes them.
// Arrays are read in place: NumPy's through its C layout, everything else through DLPack.
#pragma once

#include <pybind11/pybind11.h>

#include <vector>

#include "helve/driver/compile.h"

namespace helve::python {

/// The arguments of one call. Holds what they borrow until it is destroyed.
class CallArguments {
 public:
  /// UserError ArgumentCount, NotAnArray, ArgumentStrides, ScalarArgumentType.
  CallArguments(const Function& function, const pybind11::args& args);

  const std::vector<runtime::TensorArgument>& tensors() const { return tensors_; }
  const std::vector<runtime::ScalarArgument>& scalars() const { return scalars_; }

 private:
  struct Array {
    runtime::DLTensor tensor;
    std::vector<int64_t> extents;  ///< shape, then strides
  };

  void add_tensor(const Buffer& parameter, pybind11::handle value);
  bool add_numpy(const Buffer& parameter, pybind11::handle value);
  void add_dlpack(const Buffer& parameter, pybind11::handle value);
  void add_scalar(const Var& parameter, pybind11::handle value);

  std::vector<Array> arrays_;
  std::vector<runtime::TensorArgument> tensors_;
  std::vector<runtime::ScalarArgument> scalars_;
  std::vector<pybind11::object> capsules_;
};

}  // namespace helve::python
