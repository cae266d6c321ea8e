// Expression nodes in Python.
// Classes and properties come from the field declarations, builders are those of build.h; nothing is decided here.
#include <fmt/format.h>

#include "bindings.h"
#include "casters.h"
#include "helve/ir/expr/chain.h"
#include "helve/ir/expr/equal.h"
#include "helve/ir/expr/multiprocessors.h"
#include "helve/ir/expr/text.h"

namespace helve::python {

namespace py = pybind11;

namespace {

template <class C>
void bind_identity(C& node) {
  node.def("__eq__", [](const Node& self, const py::object& other) {
        return py::isinstance<Node>(other) && py::cast<const Node*>(other) == &self;
      })
      .def("__hash__", [](const Node& self) { return std::hash<const Node*>()(&self); });
}

/// Python's arithmetic on expressions, for extents that are computed outside a kernel.
template <class C>
void bind_arithmetic(C& expr) {
  const std::pair<const char*, Op> operators[] = {{"add", Op::Add},      {"sub", Op::Sub},
                                                  {"mul", Op::Mul},      {"floordiv", Op::FloorDiv},
                                                  {"mod", Op::FloorMod}, {"truediv", Op::Div}};
  for (const auto& [name, op] : operators) {
    expr.def(
        fmt::format("__{}__", name).c_str(),
        [op](const Expr& self, const Operand& other) { return apply_operands(op, {self, other}); }, py::is_operator());
    expr.def(
        fmt::format("__r{}__", name).c_str(),
        [op](const Expr& self, const Operand& other) { return apply_operands(op, {other, self}); }, py::is_operator());
  }
  expr.def("__neg__", [](const Expr& self) { return apply_operands(Op::Neg, {self}); });
}

void bind_nodes(py::module_& module) {
  py::class_<Node, Ref<Node>> node(module, "Node", "A node of the IR: immutable, compared by identity.");
  node.def_readonly("span", &Node::span);
  bind_identity(node);
  py::class_<Storage, Node, Ref<Storage>>(module, "Storage", "What a load or a store names.")
      .def_readonly("name", &Storage::name)
      .def_property_readonly("rank", method(&Storage::rank));
  py::class_<ExprNode, Node, Ref<ExprNode>> expr(module, "Expr", "A scalar expression.");
  bind_arithmetic(expr);
  expr.def_readonly("dtype", &ExprNode::dtype)
      .def("__str__", [](const Expr& self) { return to_text(self); })
      .def("__repr__", [](const Expr& self) { return to_text(self); });
  bind_node<IntImm, ExprNode>(module, "IntImm", "An integer or bool constant.");
  bind_node<FloatImm, ExprNode>(module, "FloatImm", "A float constant.");
  bind_node<Var, ExprNode>(module, "Var", "A scalar variable.").def_readonly("name", &Var::name);
  bind_node<Apply, ExprNode>(module, "Apply", "An operator applied to its operands.");
  bind_node<Cast, ExprNode>(module, "Cast", "A conversion to the node's dtype.");
  bind_node<Bitcast, ExprNode>(module, "Bitcast", "The bits of a value as the node's dtype.");
  bind_node<Load, ExprNode>(module, "Load", "One element of a buffer.");
  bind_node<TileLoad, ExprNode>(module, "TileLoad", "One tile of a buffer.");
  bind_node<Misalignment, ExprNode>(module, "Misalignment", "Where a tensor's first element lies.");
}

}  // namespace

void bind_expr(py::module_& module) {
  bind_nodes(module);
  const Span nowhere;
  module.def("int_imm", &int_imm, py::arg("value"), py::arg("dtype") = kIndex, py::arg("span") = nowhere);
  module.def("bool_imm", &bool_imm, py::arg("value"), py::arg("span") = nowhere);
  module.def("float_imm", &float_imm, py::arg("value"), py::arg("dtype"), py::arg("span") = nowhere);
  module.def("multiprocessors", &multiprocessors);
  module.def("make_var", &make_var, py::arg("name"), py::arg("dtype") = kIndex, py::arg("span") = nowhere);
  module.def("apply_operands", &apply_operands, py::arg("op"), py::arg("args"), py::arg("span") = nowhere,
             "An operator on expressions and plain numbers, under the type rules of the language.");
  module.def("chain_operands", &chain_operands, py::arg("op"), py::arg("conditions"), py::arg("span") = nowhere,
             "Conditions joined by `and` or `or`, in their order.");
  module.def("constant_of", &constant_of, py::arg("number"), py::arg("dtype"), py::arg("span") = nowhere);
  module.def("convert_for_store", &convert_for_store, py::arg("value"), py::arg("dtype"), py::arg("span") = nowhere);
  module.def("cast", py::overload_cast<Expr, DType, Span>(&cast), py::arg("value"), py::arg("dtype"),
             py::arg("span") = nowhere);
  module.def("bitcast", &bitcast, py::arg("value"), py::arg("dtype"), py::arg("span") = nowhere);
  module.def("ceil_div", &ceil_div, py::arg("a"), py::arg("b"), "The index expression (a + b - 1) // b.");
  module.def("load", &load, py::arg("buffer"), py::arg("indices"), py::arg("span") = nowhere);
  module.def("load_vector", &load_vector, py::arg("buffer"), py::arg("indices"), py::arg("width"),
             py::arg("span") = nowhere);
  module.def("tile_load", &tile_load, py::arg("buffer"), py::arg("indices"), py::arg("span") = nowhere);
  module.def("misalignment", &misalignment, py::arg("buffer"), py::arg("unit"), py::arg("span") = nowhere);
  module.def("extreme_imm", &extreme_imm, py::arg("dtype"), py::arg("lowest"), py::arg("span") = nowhere);
  module.def("expr_equal", py::overload_cast<const Expr&, const Expr&>(&structural_equal), py::arg("a"), py::arg("b"));
}

}  // namespace helve::python
