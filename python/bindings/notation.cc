// Index notation in Python.
// Expressions and statements are values that the core makes; operators on them are Python's, in helve.notation.
#include <pybind11/stl.h>

#include "bindings.h"
#include "casters.h"
#include "helve/notation/index_notation.h"

namespace pybind11::detail {

/// An expression of index notation, or a number that is what it is (as helve::Operand).
template <>
struct type_caster<helve::notation::IndexOperand> : variant_caster<helve::notation::IndexOperand> {
  bool load(handle source, bool convert) {
    make_caster<helve::notation::IndexExpr> expression;
    if (expression.load(source, false)) {
      value = cast_op<helve::notation::IndexExpr&>(expression);
      return true;
    }
    make_caster<helve::Operand> operand;
    if (!operand.load(source, convert)) return false;
    std::visit([this](const auto& given) {
      if constexpr (std::is_same_v<std::decay_t<decltype(given)>, helve::Expr>) {
        value = helve::notation::IndexExpr{given};
      } else {
        value = given;
      }
    }, cast_op<const helve::Operand&>(operand));
    return true;
  }
};

}  // namespace pybind11::detail

namespace helve::python {

namespace py = pybind11;

namespace {

using notation::Assignment;
using notation::Index;
using notation::IndexExpr;
using notation::IndexOperand;

ReduceKind kind_of(const std::string& name) {
  if (name == "any") return ReduceKind::Any;
  if (name == "all") return ReduceKind::All;
  const std::optional<ReduceKind> kind = parse_reduce_kind(name);
  if (!kind) throw py::value_error("no reduction is named '" + name + "'");
  return *kind;
}

notation::Form form_of(bool nest) { return nest ? notation::Form::Nest : notation::Form::Blocks; }

void bind_expressions(py::module_& module) {
  py::class_<Index>(module, "Index", "An index: its variable and, where it is given, its extent.")
      .def(py::init([](VarRef var, std::optional<Expr> extent) {
             return Index{std::move(var), extent ? *extent : Expr()};
           }),
           py::arg("var"), py::arg("extent") = py::none())
      .def_readonly("var", &Index::var);
  py::class_<IndexExpr>(module, "IndexExpr", "An expression of index notation.")
      .def(py::init([](Expr value) { return IndexExpr{std::move(value)}; }), py::arg("value"))
      .def_readonly("value", &IndexExpr::value)
      .def_static("apply", py::overload_cast<Op, const std::vector<IndexOperand>&, Span>(&notation::apply),
                  py::arg("op"), py::arg("args"), py::arg("span"))
      .def_static("load",
                  py::overload_cast<const BufferRef&, const std::vector<IndexOperand>&, Span>(&notation::load),
                  py::arg("buffer"), py::arg("subscripts"), py::arg("span"))
      .def("cast", [](const IndexExpr& self, DType dtype, Span span) { return notation::cast(self, dtype, span); },
           py::arg("dtype"), py::arg("span"))
      .def("reduce",
           [](const IndexExpr& self, const std::string& kind, const std::vector<Index>& indices, Span span) {
             return notation::reduce(kind_of(kind), indices, self, span);
           },
           py::arg("kind"), py::arg("indices"), py::arg("span"));
}

}  // namespace

void bind_notation(py::module_& module) {
  bind_expressions(module);
  py::class_<Assignment>(module, "Assignment", "A statement of index notation.")
      .def(py::init([](BufferRef target, const std::vector<IndexOperand>& subscripts, IndexExpr value,
                       std::vector<Index> indices, const std::optional<std::string>& update, Span span) {
             return notation::assign(std::move(target), subscripts, std::move(value), std::move(indices),
                                     update ? std::optional(kind_of(*update)) : std::nullopt, span);
           }),
           py::arg("target"), py::arg("subscripts"), py::arg("value"), py::arg("indices"), py::arg("update"),
           py::arg("span"));
  module.def(
      "notation_function",
      [](std::string name, const std::vector<Param>& listed, const std::vector<Assignment>& assignments, Span span,
         bool nest) {
        return notation::function(std::move(name), listed, assignments, span, form_of(nest));
      },
      py::arg("name"), py::arg("listed"), py::arg("assignments"), py::arg("span"), py::arg("nest") = false,
      "The function of statements in program order; with `nest` of serial loops in one block.");
  module.def(
      "einsum",
      [](const std::string& spec, const std::vector<DType>& dtypes, const std::vector<std::vector<int64_t>>& shapes,
         const std::vector<std::vector<int64_t>>& strides, Span span, bool nest) {
        notation::Einsum out = notation::einsum(spec, dtypes, shapes, strides, span, form_of(nest));
        return py::make_tuple(out.function, out.shape, out.dtype);
      },
      py::arg("spec"), py::arg("dtypes"), py::arg("shapes"), py::arg("strides"), py::arg("span"),
      py::arg("nest") = false, "(function, shape of the result, dtype of the result) of a contraction.");
}

}  // namespace helve::python
