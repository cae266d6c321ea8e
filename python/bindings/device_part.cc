// Reading a part on a GPU.
// An array is read when moves are prepared, and kept, so that its memory stays what it was.
#include "device_part.h"

#include "dlpack_capsule.h"
#include "dlpack_exchange.h"
#include "helve/support/diagnostic.h"
#include "torch_tensors.h"

namespace helve::python {

namespace py = pybind11;

DevicePart::DevicePart(py::object array) : array_(std::move(array)) {
  if (array_.is_none()) return;
  const ExchangeType& type = exchange_of(Py_TYPE(array_.ptr()));
  is_torch_ = type.is_torch;
  if (is_torch_) check_torch_tensor("part", array_, false);
  runtime::DLTensor borrowed{};
  const runtime::DLTensor* tensor = &borrowed;
  if (type.borrows) {
    if (type.api->dltensor_from_py_object_no_sync(array_.ptr(), &borrowed) != 0) throw py::error_already_set();
  } else {
    void* const stream = current_stream_of(array_);
    py::dict asked;
    asked["stream"] = stream == nullptr ? 1 : reinterpret_cast<uintptr_t>(stream);
    const py::object capsule = capsule_of(array_, asked);
    if (PyCapsule_IsValid(capsule.ptr(), "dltensor_versioned")) {
      auto managed = taken<runtime::DLManagedTensorVersioned>(capsule, "dltensor_versioned", "used_dltensor_versioned");
      is_read_only_ = (managed->flags & runtime::DLPACK_FLAG_BITMASK_READ_ONLY) != 0;
      tensor = &managed->dl_tensor;
      memory_ = std::move(managed);
    } else {
      auto managed = taken<runtime::DLManagedTensor>(capsule, "dltensor", "used_dltensor");
      tensor = &managed->dl_tensor;
      memory_ = std::move(managed);
    }
  }
  HELVE_CHECK(tensor->device.device_type == runtime::kDLCUDA, "a part in memory of " + to_text(tensor->device));
  const auto rank = static_cast<size_t>(tensor->ndim);
  numbers_.assign(tensor->shape, tensor->shape + rank);
  numbers_.resize(2 * rank);
  int64_t compact = 1;
  for (size_t d = rank; d-- > 0;) {
    numbers_[rank + d] = tensor->strides != nullptr ? tensor->strides[d] : compact;
    compact *= tensor->shape[d];
  }
  data_ = static_cast<std::byte*>(tensor->data) + tensor->byte_offset;
  dtype_ = tensor->dtype;
  device_ = tensor->device;
}

LocalPart DevicePart::part() const {
  if (array_.is_none()) return {};
  const size_t rank = numbers_.size() / 2;
  LocalPart out;
  out.data = data_;
  out.extents = std::span(numbers_).first(rank);
  out.strides = std::span(numbers_).subspan(rank);
  return out;
}

runtime::cuda::CudaStream DevicePart::stream() const {
  const ExchangeType& type = exchange_of(Py_TYPE(array_.ptr()));
  void* out = nullptr;
  if (type.api == nullptr || type.api->current_work_stream == nullptr) {
    out = current_stream_of(array_);
  } else if (type.api->current_work_stream(device_.device_type, device_.device_id, &out) != 0) {
    throw py::error_already_set();
  }
  return static_cast<runtime::cuda::CudaStream>(out);
}

void DevicePart::check_writable() const {
  if (is_read_only_) throw UserError(Code::ReadOnlyArgument, {}, {{"parameter", std::string("out")}});
  if (is_torch_) check_torch_tensor("out", array_, true);
}

void DevicePart::count_writes() const {
  if (!is_torch_) return;
  py::list all;
  all.append(array_);
  count_torch_writes(all);
}

}  // namespace helve::python
