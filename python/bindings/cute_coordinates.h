// Layouts whose values are coordinates: a part of helve.cute.
// Apart from the other parts, since they extend the functions that those bind.
#pragma once

#include <pybind11/pybind11.h>

namespace helve::python {

/// Whether `source` is a step along entries of a coordinate.
bool is_basis(pybind11::handle source);

/// `E`, `Basis`, `CoordinateLayout`, and overloads of the functions of the submodule `cute`, which is there already.
void bind_cute_coordinates(pybind11::module_& module);

}  // namespace helve::python
