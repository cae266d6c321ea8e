// Arrays that hold the parts of a tensor, as the core moves them.
// They are read in place: NumPy's by their C layout, PyTorch's by DLPack's C exchange.
#pragma once

#include <pybind11/pybind11.h>

#include <span>
#include <vector>

#include "helve/plan/local_exchange.h"

namespace helve::python {

/// The arrays of a list, None where a device has no part: NumPy's, or PyTorch's in memory of the CPU, all of one dtype;
/// who makes the list has seen to it. The list keeps the arrays.
class ArrayParts {
 public:
  /// Can the array be read so? A PyTorch without DLPack's C exchange has none that can.
  static bool reads(pybind11::handle array);

  /// UserError LazyArgumentView.
  explicit ArrayParts(const pybind11::list& arrays);

  std::span<const LocalPart> parts() const { return parts_; }
  /// The dtype of the elements; of a dtype that has no counterpart, and of `bytes`, it is so many bytes.
  runtime::DLDataType dtype() const;
  runtime::DLDataType bytes() const { return {runtime::kDLUInt, 8, static_cast<uint16_t>(element_bytes_)}; }
  int64_t element_bytes() const { return element_bytes_; }

  /// Are addresses, extents and strides what they were?
  bool is_still() const;
  /// UserError ReadOnlyArgument, ArgumentRequiresGrad.
  void check_writable() const;
  /// Tells PyTorch that its tensors were written.
  void count_writes() const;

 private:
  /// The address; appends extents and strides, in elements.
  std::byte* read(pybind11::handle value, std::vector<int64_t>& numbers) const;

  pybind11::list arrays_;
  std::vector<LocalPart> parts_;
  std::vector<int64_t> numbers_;  ///< extents, then strides, of one array after the other
  mutable std::vector<int64_t> again_;
  int64_t element_bytes_ = 1;
  pybind11::list torch_;
  pybind11::object first_;
};

}  // namespace helve::python
