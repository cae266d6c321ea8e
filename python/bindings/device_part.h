// The array that holds a part of a tensor on a GPU.
// PyTorch's is read by DLPack's C exchange, every other one by its `__dlpack__`.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <vector>

#include "helve/plan/local_exchange.h"
#include "helve/runtime/cuda/driver.h"

namespace helve::python {

class DevicePart {
 public:
  /// An array on a CUDA device, which it keeps; None: a part that is nowhere. UserError LazyArgumentView.
  explicit DevicePart(pybind11::object array);

  LocalPart part() const;
  runtime::DLDataType dtype() const { return dtype_; }
  runtime::DLDevice device() const { return device_; }
  /// The one on which the library works at this moment; null: the legacy default stream.
  runtime::cuda::CudaStream stream() const;
  /// UserError ReadOnlyArgument, ArgumentRequiresGrad.
  void check_writable() const;
  /// Tells PyTorch that its tensor was written.
  void count_writes() const;

 private:
  pybind11::object array_;
  std::shared_ptr<void> memory_;  ///< what `__dlpack__` gave
  std::byte* data_ = nullptr;
  std::vector<int64_t> numbers_;  ///< extents, then strides
  runtime::DLDataType dtype_ = {runtime::kDLUInt, 8, 1};
  runtime::DLDevice device_ = {runtime::kDLCPU, 0};
  bool is_torch_ = false;
  bool is_read_only_ = false;
};

}  // namespace helve::python
