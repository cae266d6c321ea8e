// Diagnostics as Python sees them: the table, spans, the data of one diagnostic, and what a C++ exception becomes.
// Tests, documentation and the error renderer read the same rows that C++ throws, and Python raises by the same names.
#include <pybind11/stl.h>

#include <fmt/format.h>

#include "words.h"
#include "bindings.h"
#include "helve/support/diagnostic.h"

namespace helve::python {

namespace py = pybind11;

namespace {

const DiagnosticRow& row_named(const std::string& name) {
  for (const DiagnosticRow& row : diagnostic_rows()) {
    if (row.name == name) return row;
  }
  throw py::value_error(fmt::format("no diagnostic is named '{}'", name));
}

/// Raises the Python exception that `helve.errors` makes of `argument` by its function `maker`.
void raise(const char* maker, py::object argument) {
  try {
    py::object exception = py::module_::import("helve.errors").attr(maker)(argument);
    PyErr_SetObject(py::type::handle_of(exception).ptr(), exception.ptr());
  } catch (py::error_already_set& error) {
    error.restore();
  }
}

void translate(std::exception_ptr thrown) {
  try {
    if (thrown) std::rethrow_exception(thrown);
  } catch (const UserError& error) {
    raise("from_diagnostic", py::cast(error.diagnostic()));
  } catch (const py::cast_error& error) {
    PyErr_SetString(PyExc_TypeError, error.what());
  } catch (const InternalError& error) {
    raise("from_internal", py::str(error.what()));
  }
}

void bind_span(py::module_& module) {
  py::class_<Span>(module, "Span",
                   "A range of source text; lines and columns count from 1, the end column is exclusive.")
      .def(py::init<>())
      .def(py::init([](const std::string& file, int line, int column, int end_line, int end_column) {
             return Span{intern_file(file), line, column, end_line, end_column};
           }),
           py::arg("file"), py::arg("line"), py::arg("column"), py::arg("end_line"), py::arg("end_column"))
      .def_property_readonly("file", [](const Span& s) { return s.file ? *s.file : std::string(); })
      .def_readonly("line", &Span::line)
      .def_readonly("column", &Span::column)
      .def_readonly("end_line", &Span::end_line)
      .def_readonly("end_column", &Span::end_column)
      .def_property_readonly("known", method(&Span::known))
      .def_property_readonly("caller",
                             [](const Span& s) { return s.caller ? std::optional(*s.caller) : std::nullopt; })
      .def("__eq__", [](const Span& a, const Span& b) { return a == b; }, py::is_operator())
      .def("__repr__", [](const Span& s) {
        return s.known() ? fmt::format("{}:{}:{}-{}:{}", *s.file, s.line, s.column, s.end_line, s.end_column)
                         : "unknown";
      });
}

void bind_diagnostic(py::module_& module) {
  module.def("called_from", &called_from, py::arg("inner"), py::arg("call"),
             "The place `inner`, in the text of a function, in the call of that function at `call`.");
  py::class_<Note>(module, "Note", "A remark of a diagnostic; its span may be unknown.")
      .def(py::init([](std::string text, Span span) { return Note{span, std::move(text)}; }), py::arg("text"),
           py::arg("span") = Span{})
      .def_readonly("span", &Note::span)
      .def_readonly("text", &Note::text);
  py::class_<Diagnostic>(module, "Diagnostic", "One error or warning as data, by the name of its row.")
      .def(py::init([](const std::string& name, Span span, DiagnosticArgs args, std::vector<Note> notes,
                       std::vector<std::string> fixes) {
             return Diagnostic{row_named(name).code, span, std::move(args), std::move(notes), std::move(fixes)};
           }),
           py::arg("name"), py::arg("span"), py::arg("args") = DiagnosticArgs{}, py::arg("notes") = std::vector<Note>{},
           py::arg("fixes") = std::vector<std::string>{})
      .def_property_readonly("name", [](const Diagnostic& d) { return diagnostic_row(d.code).name; })
      .def_property_readonly("number", [](const Diagnostic& d) { return static_cast<int>(d.code); })
      .def_property_readonly("code", method(&Diagnostic::code_text))
      .def_property_readonly("severity",
                             [](const Diagnostic& d) { return d.severity() == Severity::Error ? "error" : "warning"; })
      .def_property_readonly("message", method(&Diagnostic::message))
      .def_property_readonly("help", method(&Diagnostic::help))
      .def_readonly("span", &Diagnostic::span)
      .def_readonly("args", &Diagnostic::args)
      .def_property_readonly("notes", method(&Diagnostic::notes_and_calls));
}

}  // namespace

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
  module.def("with_article", &with_article, py::arg("noun"),
             "The noun with its indefinite article, \"a list\" or \"an int\", by the sound of its beginning.");
  bind_span(module);
  bind_diagnostic(module);
  py::register_exception_translator(translate);
}

}  // namespace helve::python
