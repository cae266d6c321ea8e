// Reading the parts of a tensor.
// A redistribution of small parts is over in microseconds, so that no Python code runs for an array.
#include "array_parts.h"

#include <pybind11/numpy.h>

#include <algorithm>

#include "dlpack_exchange.h"
#include "helve/support/diagnostic.h"
#include "numpy_dtypes.h"
#include "torch_tensors.h"

namespace helve::python {

namespace py = pybind11;

bool ArrayParts::reads(py::handle array) {
  return py::isinstance<py::array>(array) || exchange_of(Py_TYPE(array.ptr())).borrows;
}

ArrayParts::ArrayParts(const py::list& arrays) : arrays_(arrays), parts_(arrays.size()) {
  std::vector<size_t> ends;
  ends.reserve(arrays.size());
  for (size_t k = 0; k < arrays.size(); ++k) {
    const py::handle value = PyList_GET_ITEM(arrays.ptr(), static_cast<py::ssize_t>(k));
    if (!value.is_none()) {
      if (exchange_of(Py_TYPE(value.ptr())).is_torch) torch_.append(value);
      if (!first_) first_ = py::reinterpret_borrow<py::object>(value);
      parts_[k].data = read(value, numbers_);
    }
    ends.push_back(numbers_.size());
  }
  if (first_) element_bytes_ = py::object(first_.attr("itemsize")).cast<int64_t>();
  size_t begin = 0;
  for (size_t k = 0; k < ends.size(); ++k) {
    const size_t rank = (ends[k] - begin) / 2;
    parts_[k].extents = std::span(numbers_).subspan(begin, rank);
    parts_[k].strides = std::span(numbers_).subspan(begin + rank, rank);
    begin = ends[k];
  }
}

std::byte* ArrayParts::read(py::handle value, std::vector<int64_t>& numbers) const {
  if (py::isinstance<py::array>(value)) {
    const auto array = py::reinterpret_borrow<py::array>(value);
    const auto rank = static_cast<size_t>(array.ndim());
    const int64_t item = std::max<int64_t>(1, array.itemsize());
    const auto *shape = array.shape(), *strides = array.strides();
    numbers.insert(numbers.end(), shape, shape + rank);
    for (size_t d = 0; d < rank; ++d) numbers.push_back(strides[d] / item);
    return static_cast<std::byte*>(const_cast<void*>(array.data()));
  }
  const ExchangeType& type = exchange_of(Py_TYPE(value.ptr()));
  HELVE_CHECK(type.borrows, "a part that is neither NumPy's nor PyTorch's");
  check_torch_tensor("part", value, false);
  runtime::DLTensor tensor{};
  if (type.api->dltensor_from_py_object_no_sync(value.ptr(), &tensor) != 0) throw py::error_already_set();
  HELVE_CHECK(runtime::is_host_memory(tensor.device), "a part in memory of " + runtime::to_text(tensor.device));
  const auto rank = static_cast<size_t>(tensor.ndim);
  const size_t strides = numbers.size() + rank;
  numbers.insert(numbers.end(), tensor.shape, tensor.shape + rank);
  numbers.resize(strides + rank);
  int64_t compact = 1;
  for (size_t d = rank; d-- > 0;) {
    numbers[strides + d] = tensor.strides != nullptr ? tensor.strides[d] : compact;
    compact *= tensor.shape[d];
  }
  return static_cast<std::byte*>(tensor.data) + tensor.byte_offset;
}

runtime::DLDataType ArrayParts::dtype() const {
  if (!first_) return bytes();
  if (py::isinstance<py::array>(first_)) {
    return numpy_dtype(py::reinterpret_borrow<py::array>(first_).dtype()).value_or(bytes());
  }
  runtime::DLTensor tensor{};
  if (exchange_of(Py_TYPE(first_.ptr())).api->dltensor_from_py_object_no_sync(first_.ptr(), &tensor) != 0)
    throw py::error_already_set();
  return tensor.dtype;
}

bool ArrayParts::is_still() const {
  again_.clear();
  for (size_t k = 0; k < parts_.size(); ++k) {
    const py::handle value = PyList_GET_ITEM(arrays_.ptr(), static_cast<py::ssize_t>(k));
    if (!value.is_none() && read(value, again_) != parts_[k].data) return false;
  }
  return again_ == numbers_;
}

void ArrayParts::check_writable() const {
  for (const py::handle value : arrays_) {
    if (value.is_none()) continue;
    if (!py::isinstance<py::array>(value)) {
      check_torch_tensor("out", value, true);
    } else if (!py::reinterpret_borrow<py::array>(value).writeable()) {
      throw UserError(Code::ReadOnlyArgument, {}, {{"parameter", std::string("out")}});
    }
  }
}

void ArrayParts::count_writes() const {
  if (!torch_.empty()) count_torch_writes(torch_);
}

}  // namespace helve::python
