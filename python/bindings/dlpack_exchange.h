// DLPack's C exchange: tensors and streams of array libraries by plain C calls.
// A type that offers it hands its tensors over in tens of nanoseconds, and tells its current stream.
#pragma once

#include <pybind11/pybind11.h>

#include <optional>

#include "helve/runtime/dlpack.h"

namespace helve::python {

/// The table that a type offers as `__dlpack_c_exchange_api__` (DLPack 1.3), with its standard names.
struct DLPackExchangeHeader {
  runtime::DLPackVersion version;
  const DLPackExchangeHeader* prev_api;  ///< the table of an earlier version
};

struct DLPackExchange {
  DLPackExchangeHeader header;
  void* managed_tensor_allocator;
  /// 0 for success; otherwise a Python error is set. No stream is synchronised.
  int (*managed_tensor_from_py_object_no_sync)(void* py_object, runtime::DLManagedTensorVersioned** out);
  void* managed_tensor_to_py_object_no_sync;
  /// The same without ownership: what it points to lives as long as the object. May be null.
  int (*dltensor_from_py_object_no_sync)(void* py_object, runtime::DLTensor* out);
  int (*current_work_stream)(runtime::DLDeviceType device_type, int32_t device_id, void** out);
};

/// How the tensors of one type are taken.
struct ExchangeType {
  const DLPackExchange* api = nullptr;  ///< null: the type offers none of a known version
  bool borrows = false;  ///< its tensors are never read-only, which the form without ownership could not say
  bool is_torch = false;  ///< a class of PyTorch's tensors, which are more than memory (torch_tensors.h)
  bool is_real = false;    ///< NumPy's integers and floats
  bool is_masked = false;  ///< NumPy's masked arrays, whose elements do not all count
};

/// Looked up once for a type.
const ExchangeType& exchange_of(PyTypeObject* type);

/// The stream on which the current library of `value`, an array on a CUDA device without a C exchange, works: CuPy's
/// current stream, and for every other library the legacy default stream.
void* current_stream_of(pybind11::handle value);

}  // namespace helve::python
