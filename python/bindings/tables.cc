// The tables of the language as Python data.
// The names below `T`, their parameters and their documentation are made from these rows, never written twice.
#include "bindings.h"
#include "casters.h"

namespace helve::python {

namespace py = pybind11;

namespace {

const char* name_of(ParamKind kind) {
  switch (kind) {
    case ParamKind::In: return "In";
    case ParamKind::Out: return "Out";
    case ParamKind::InOut: return "InOut";
    case ParamKind::Source: return "Source";
    case ParamKind::Value: return "Value";
    case ParamKind::Coord: return "Coord";
    case ParamKind::Index: return "Index";
    case ParamKind::Map: return "Map";
    case ParamKind::Integer: return "Integer";
    case ParamKind::Flag: return "Flag";
    case ParamKind::Text: return "Text";
    case ParamKind::Axes: return "Axes";
    case ParamKind::Layout: return "Layout";
    case ParamKind::Barriers: return "Barriers";
  }
  __builtin_unreachable();
}

const char* name_of(OpForm form) {
  switch (form) {
    case OpForm::Infix: return "Infix";
    case OpForm::Prefix: return "Prefix";
    case OpForm::Call: return "Call";
  }
  __builtin_unreachable();
}

py::list operator_list() {
  py::list rows;
  for (const OpRow& row : operator_rows())
    rows.append(py::make_tuple(row.name, row.text, row.arity, name_of(row.form)));
  return rows;
}

py::list tile_op_list() {
  py::list rows;
  for (const TileOpRow& row : tile_op_rows()) {
    py::list params;
    for (const TileParam& param : row.params) {
      py::object fallback = py::none();
      if (!param.required() && param.kind != ParamKind::Map) {  // a map that is not given is None
        fallback = std::visit([](const auto& value) -> py::object {
          if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::monostate>) return py::none();
          else return py::cast(value);
        }, param.fallback);
      }
      params.append(py::make_tuple(name_of(param.kind), param.name, param.required(), fallback));
    }
    rows.append(py::make_tuple(row.name, row.python, row.is_collective(), params, row.documentation));
  }
  return rows;
}

}  // namespace

void bind_tables(py::module_& module) {
  module.def("operator_rows", &operator_list, "The scalar operators as (name, text, arity, form), in table order.");
  module.def(
      "tile_op_rows", &tile_op_list,
      "The tile operations as (name, python name, collective?, parameters, documentation); a parameter is (kind, "
      "name, required?, default).");
  module.def("dtype_names", &dtype_names, "The names of all element types.");
  module.def("dtype_aliases", &dtype_aliases, "Other names of element types, each with the name that is meant.");
  module.def("dtype_bits", [](DType dtype) { return static_cast<int>(dtype.bits); }, py::arg("dtype"));
  module.def("parse_dtype", [](const std::string& name) { return parse_dtype(name); }, py::arg("name"),
             "The full name of the element type called `name` (\"float\" is \"float32\"), or None.");
}

}  // namespace helve::python
