// The table of diagnostics as Python sees it.
// Tests, documentation and the error renderer read the same rows that C++ throws.
#include <pybind11/stl.h>

#include "bindings.h"
#include "helve/support/diagnostic.h"

namespace helve::python {

namespace py = pybind11;

void bind_diagnostics(py::module_& module) {
  module.def(
      "diagnostic_rows",
      [] {
        py::list rows;
        for (const DiagnosticRow& row : diagnostic_rows()) {
          const char* severity = row.severity == Severity::Error ? "error" : "warning";
          rows.append(py::make_tuple(row.name, row.number, severity, row.message, row.help));
        }
        return rows;
      },
      "All diagnostics as (name, number, severity, message, help), in table order; severity is \"error\" or "
      "\"warning\", message and help are templates with `{argument}` places.");
}

}  // namespace helve::python
