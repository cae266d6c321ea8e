// Arguments of a kernel call as the runtime takes them.
// Arrays are read in place: NumPy's through its C layout, everything else through DLPack, by its C exchange where there
// is one.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <optional>
#include <vector>

#include "dlpack_exchange.h"
#include "helve/driver/compile.h"

namespace helve::python {

/// The arguments of one call. Holds what they borrow until it is destroyed.
///
/// Reading an argument may run Python code (`__dlpack__`, `__index__`, properties of a class of tensors), which may
/// change another one: that code runs first, and what was read in place before it is read again.
class CallArguments {
 public:
  /// UserError CallArgumentCount, NotAnArray, ArgumentStrides, ScalarArgumentType, LazyArgumentView,
  /// ArgumentRequiresGrad.
  CallArguments(const CompiledKernel& kernel, const pybind11::args& args);
  CallArguments(const CallArguments&) = delete;
  CallArguments& operator=(const CallArguments&) = delete;

  const std::vector<runtime::TensorArgument>& tensors() const { return tensors_; }
  const std::vector<runtime::ScalarArgument>& scalars() const { return scalars_; }
  /// The stream on which the library of the first tensor on a CUDA device works at this moment; null for the legacy
  /// default stream, and where there is no such tensor.
  void* stream() const { return stream_.value_or(nullptr); }

  /// Tells the libraries that count writes of those that the call has made, or may have.
  void count_writes() const;

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

  /// What the C exchange gave to keep.
  struct Managed {
    size_t argument;
    std::unique_ptr<runtime::DLManagedTensorVersioned, Release> tensor;
  };

  /// Looks at the types of all arrays, takes what they hand over to keep, and asks PyTorch about its tensors: all of it
  /// may run Python code, and is done before anything is read that is not kept.
  void ask_libraries();
  /// Reads all that runs no Python code; what does is put off.
  void read_in_place();
  void read_deferred();
  /// False where only `__dlpack__` can give the array.
  bool add_tensor(const Buffer& parameter, pybind11::handle value);
  bool add_numpy(const Buffer& parameter, pybind11::handle value, const ExchangeType& type);
  bool add_borrowed(const Buffer& parameter, pybind11::handle value, const ExchangeType& type);
  void add_managed(pybind11::handle value, const runtime::DLManagedTensorVersioned& managed);
  void find_stream(const ExchangeType& type, runtime::DLDevice device);

  /// What `__dlpack__` gave.
  struct Exported {
    runtime::TensorArgument tensor;
    std::shared_ptr<void> memory;
  };
  Exported read_dlpack(const Buffer& parameter, pybind11::handle value);

  const CompiledKernel& kernel_;
  const pybind11::args& args_;
  std::vector<Array> arrays_;
  std::vector<runtime::TensorArgument> tensors_;
  std::vector<runtime::ScalarArgument> scalars_;
  std::vector<Managed> managed_;  ///< in the order of the arguments
  std::vector<size_t> deferred_;  ///< arguments whose reading runs Python code
  std::vector<std::optional<Exported>> exported_;             ///< by argument, once they were read
  std::vector<std::optional<runtime::ScalarArgument>> read_;  ///< by argument, as well
  pybind11::object torch_written_;                            ///< a list of tensors, or nothing
  std::optional<void*> stream_;
};

}  // namespace helve::python
