// The parts of helve._core.
// Every part is one function, so that module.cc is the table of contents and files compile side by side.
#pragma once

#include <pybind11/pybind11.h>

namespace helve::python {

/// `diagnostic_rows()`: the table of diagnostics.
void bind_diagnostics(pybind11::module_& module);

}  // namespace helve::python
