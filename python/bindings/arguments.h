// Arguments of a kernel call as the runtime takes them.
// Arrays are read in place: NumPy's through its C layout, everything else through DLPack, by its C exchange where there
// is one.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <optional>
#include <vector>

#include "helve/driver/compile.h"

namespace helve::python {

/// The arguments of one call. Holds what they borrow until it is destroyed.
class CallArguments {
 public:
  /// UserError ArgumentCount, NotAnArray, ArgumentStrides, ScalarArgumentType.
  CallArguments(const Function& function, const pybind11::args& args);
  CallArguments(const CallArguments&) = delete;
  CallArguments& operator=(const CallArguments&) = delete;

  const std::vector<runtime::TensorArgument>& tensors() const { return tensors_; }
  const std::vector<runtime::ScalarArgument>& scalars() const { return scalars_; }
  /// The stream on which the library of the first tensor on a CUDA device works at this moment; null for the legacy
  /// default stream, and where there is no such tensor.
  void* stream() const { return stream_.value_or(nullptr); }

 private:
  struct Array {
    runtime::DLTensor tensor;
    std::vector<int64_t> extents;  ///< shape, then strides
  };

  struct Release {
    void operator()(runtime::DLManagedTensorVersioned* managed) const {
      if (managed->deleter != nullptr) managed->deleter(managed);
    }
  };

  void add_tensor(const Buffer& parameter, pybind11::handle value);
  bool add_numpy(const Buffer& parameter, pybind11::handle value);
  bool add_exchanged(const Buffer& parameter, pybind11::handle value);
  void add_dlpack(const Buffer& parameter, pybind11::handle value, runtime::TensorArgument& out);
  void add_scalar(const Var& parameter, pybind11::handle value);

  /// An array that only `__dlpack__` gives, which is asked last: it is told the stream.
  struct Deferred {
    size_t tensor;
    const Buffer* parameter;
    pybind11::handle value;
  };

  std::vector<Array> arrays_;
  std::vector<runtime::TensorArgument> tensors_;
  std::vector<runtime::ScalarArgument> scalars_;
  std::vector<std::unique_ptr<runtime::DLManagedTensorVersioned, Release>> managed_;
  std::vector<Deferred> deferred_;
  std::vector<pybind11::object> capsules_;
  std::optional<void*> stream_;
};

}  // namespace helve::python
