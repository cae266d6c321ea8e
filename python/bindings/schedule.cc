// Schedules in Python: versions, cursors, steps and the table of primitives.
// Nothing is decided here; helve.schedule makes of it what a user holds.
#include <pybind11/stl.h>

#include "bindings.h"
#include "helve/analysis/core_phases.h"
#include "casters.h"
#include "helve/print/printer.h"
#include "helve/schedule/schedule.h"
#include "waiting.h"

namespace helve::python {

namespace py = pybind11;

namespace {

FinderKind finder_kind(const std::string& text) {
  const std::optional<FinderKind> kind = parse_finder_kind(text);
  if (!kind) throw py::value_error("no finder of kind '" + text + "'");
  return *kind;
}

std::string_view text_of_kind(ArgumentKind kind) {
  switch (kind) {
    case ArgumentKind::Loop: return "loop";
    case ArgumentKind::Loops: return "loops";
    case ArgumentKind::Statement: return "statement";
    case ArgumentKind::Factor: return "factor";
    case ArgumentKind::Integer: return "integer";
    case ArgumentKind::Choice: return "choice";
    case ArgumentKind::BufferName: return "buffer";
    case ArgumentKind::Text: return "text";
    case ArgumentKind::Function: return "function";
  }
  __builtin_unreachable();
}

void bind_cursor(py::module_& module) {
  py::class_<Cursor>(module, "Cursor", "A path over the declared fields of statements.")
      .def_property_readonly("parent", [](const Cursor& at) -> std::optional<Cursor> {
        if (!at.has_parent()) return std::nullopt;
        return at.parent();
      })
      .def("__str__", [](const Cursor& at) { return to_string(at); })
      .def("__eq__", [](const Cursor& a, const Cursor& b) { return a == b; })
      .def("__hash__", [](const Cursor& at) { return std::hash<std::string>()(to_string(at)); });
  py::class_<Finder>(module, "Finder", "What a statement is found by.")
      .def(py::init([](const std::string& kind, std::string name, int64_t index) {
             return Finder{finder_kind(kind), std::move(name), index};
           }),
           py::arg("kind"), py::arg("name"), py::arg("index"))
      .def_property_readonly("kind", [](const Finder& f) { return to_string(f.kind); })
      .def_readonly("name", &Finder::name)
      .def_readonly("index", &Finder::index)
      .def("__eq__", [](const Finder& a, const Finder& b) { return a == b; });
  module.def(
      "find_all",
      [](const FunctionRef& f, const std::string& kind, const std::string& name, const std::optional<Cursor>& within) {
        return find_all(*f, finder_kind(kind), name, within);
      },
      py::arg("function"), py::arg("kind"), py::arg("name"), py::arg("within") = py::none(),
      "The statements that a name of a kind fits, in program order.");
  module.def(
      "names_of", [](const FunctionRef& f, const std::string& kind) { return names_of(*f, finder_kind(kind)); },
      py::arg("function"), py::arg("kind"), "What names of a kind there are, each once.");
  module.def(
      "statement_at", [](const FunctionRef& f, const Cursor& at) -> std::optional<Stmt> {
        Stmt s = statement_at(*f, at);
        if (!s) return std::nullopt;
        return s;
      },
      py::arg("function"), py::arg("cursor"), "The statement at a place, or None.");
  module.def("print_stmt", [](const Stmt& s) { return print(s); }, py::arg("stmt"), "The lines of one statement.");
}

void bind_steps(py::module_& module) {
  py::class_<TraceStep>(module, "TraceStep", "One step of a schedule, statements by finders.")
      .def(py::init([](std::string primitive, std::vector<TraceArgument> arguments, std::optional<std::string> unsafe) {
             if (!primitive_row(primitive)) throw py::value_error("no primitive '" + primitive + "'");
             return TraceStep{std::move(primitive), std::move(arguments), std::move(unsafe), StepEffect::Equal, {}};
           }),
           py::arg("primitive"), py::arg("arguments"), py::arg("unsafe") = py::none())
      .def_readonly("primitive", &TraceStep::primitive)
      .def_readonly("arguments", &TraceStep::arguments)
      .def_readonly("unsafe", &TraceStep::unsafe)
      .def_property_readonly("effect", [](const TraceStep& step) { return to_string(step.effect); })
      .def_readonly("reason", &TraceStep::reason)
      .def_readonly("needs", &TraceStep::needs)
      .def_readonly("place", &TraceStep::place);
  py::class_<ScheduleVersion, Ref<ScheduleVersion>>(module, "ScheduleVersion", "A function, and the step that made it.")
      .def_readonly("function", &ScheduleVersion::function)
      .def_property_readonly("before", [](const ScheduleVersion& version) -> std::optional<ScheduleVersionRef> {
        if (!version.before) return std::nullopt;
        return version.before;
      })
      .def_readonly("step", &ScheduleVersion::step)
      .def_readonly("results", &ScheduleVersion::results);
  module.def("primitive_rows", [] {
    py::list rows;
    for (const PrimitiveRow& row : primitive_rows()) {
      py::list parameters;
      for (const PrimitiveParameter& each : row.parameters) {
        parameters.append(py::make_tuple(each.name, text_of_kind(each.kind), each.choices));
      }
      rows.append(py::make_tuple(row.name, parameters));
    }
    return rows;
  }, "The primitives as (name, [(parameter, kind, words of a choice)]).");
}

}  // namespace

void bind_schedule(py::module_& module) {
  bind_cursor(module);
  bind_steps(module);
  module.def("start_schedule", [](const FunctionRef& f) {
    return wait_for([f] { return start_schedule(f); });
  }, py::arg("function"), "The schedule without steps.");
  module.def(
      "with_step",
      [](const ScheduleVersionRef& version, const std::string& primitive, std::vector<ScheduleArgument> values,
         std::optional<std::string> unsafe, Span place) {
        const PrimitiveRow* row = primitive_row(primitive);
        if (!row) throw py::value_error("no primitive '" + primitive + "'");
        return wait_for([version, row, values = std::move(values),
                              unsafe = std::move(unsafe), place] {
          return with_step(version, *row, values, unsafe, place);
        });
      },
      py::arg("version"), py::arg("primitive"), py::arg("arguments"), py::arg("unsafe"), py::arg("place"),
      "The version after one more step.");
  module.def(
      "unchecked_step",
      [](const ScheduleVersionRef& version, const std::string& primitive, std::vector<ScheduleArgument> values,
         Span place) {
        const PrimitiveRow* row = primitive_row(primitive);
        if (!row) throw py::value_error("no primitive '" + primitive + "'");
        return wait_for([version, row, values = std::move(values), place] {
          return unchecked_step(version, *row, values, place);
        });
      },
      py::arg("version"), py::arg("primitive"), py::arg("arguments"), py::arg("place"),
      "The function that a step would make, legal or not, for tests of what is refused.");
  module.def(
      "core_phases",
      [](const FunctionRef& f) {
        const Kernel* kernel = as<Kernel>(f->body);
        if (!kernel || !f->mesh) throw py::value_error("no kernel of a mesh");
        std::string reason;
        const std::optional<CorePhases> phases = core_phases(*kernel, *f->mesh, {}, reason);
        if (!phases) throw py::value_error(reason);
        Ref<Function> out = make_ref<Function>(*f);
        out->mesh = std::nullopt;
        out->body = phases->kernel;
        return FunctionRef(out);
      },
      py::arg("function"), "The plain loops that a kernel of a mesh means, for tests of the definition.");
  module.def(
      "replay_step",
      [](const ScheduleVersionRef& version, const TraceStep& step, Span place) {
        return wait_for([version, step, place] {
          return replay_step(version, step, place);
        });
      },
      py::arg("version"), py::arg("step"), py::arg("place"), "The version after the step of a trace.");
  module.def(
      "carry",
      [](const Cursor& at, const ScheduleVersionRef& from, const ScheduleVersionRef& to) {
        const Carried carried = carry(at, from, to);
        return py::make_tuple(carried.related, carried.cursor, carried.gone_by);
      },
      py::arg("cursor"), py::arg("from_version"), py::arg("to_version"),
      "(does the second version come from the first?, the cursor there or None, the primitive that took the "
      "statement away or made another loop of it).");
}

}  // namespace helve::python
