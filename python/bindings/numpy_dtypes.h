// Element types of NumPy's arrays as the runtime has them.
// Calls of kernels and moves of parts of tensors read NumPy's arrays in place, without DLPack.
#pragma once

#include <pybind11/numpy.h>

#include <optional>

#include "helve/runtime/dlpack.h"

namespace helve::python {

/// The dtype of a NumPy array; those of ml_dtypes are known by name. Empty for what has no counterpart.
std::optional<runtime::DLDataType> numpy_dtype(const pybind11::dtype& dtype);

}  // namespace helve::python
