// Functions, meshes, equality and the verifier in Python.
// The last step of a front end: what it built becomes one immutable function, checked by the rules that every pass
// obeys.
#include <tuple>

#include "bindings.h"
#include "casters.h"
#include "helve/analysis/call.h"
#include "helve/analysis/effects.h"
#include "helve/analysis/first_access.h"
#include "helve/ir/tensor/equal.h"
#include "helve/ir/tensor/function.h"
#include "helve/ir/tensor/verify.h"
#include "helve/print/printer.h"
#include "waiting.h"

namespace helve::python {

namespace py = pybind11;

namespace {

FunctionRef make_function(std::string name, std::vector<VarRef> dims, std::vector<Param> params,
                          std::optional<MeshShape> mesh, std::vector<MeshTensor> mesh_tensors, Stmt body,
                          std::vector<MayAlias> may_alias, std::vector<Assumption> assumptions, Span span) {
  Ref<Function> function = make_ref<Function>();
  function->name = std::move(name);
  function->dims = std::move(dims);
  function->params = std::move(params);
  function->mesh = std::move(mesh);
  function->mesh_tensors = std::move(mesh_tensors);
  function->may_alias = std::move(may_alias);
  function->assumptions = std::move(assumptions);
  function->body = std::move(body);
  function->span = span;
  return FunctionRef(function);
}

void bind_mesh(py::module_& module) {
  py::class_<MeshShape>(module, "MeshShape", "A grid of cores; ranks are row-major.")
      .def(py::init([](std::vector<int64_t> extents, std::vector<std::string> names) {
             return MeshShape{std::move(extents), std::move(names)};
           }),
           py::arg("extents"), py::arg("names"))
      .def_readonly("extents", &MeshShape::extents)
      .def_readonly("names", &MeshShape::names)
      .def_property_readonly("size", method(&MeshShape::size))
      .def("__eq__", [](const MeshShape& a, const MeshShape& b) { return a == b; })
      .def("__str__", [](const MeshShape& mesh) { return to_string(mesh); });
  py::class_<MeshTensor>(module, "MeshTensor", "The placement of one tensor on the mesh.")
      .def(py::init(
               [](BufferRef buffer, std::vector<std::pair<std::string, int64_t>> sharding, std::vector<int64_t> tiling,
                  Span span) { return MeshTensor{std::move(buffer), std::move(sharding), std::move(tiling), span}; }),
           py::arg("buffer"), py::arg("sharding"), py::arg("tiling"), py::arg("span") = Span{})
      .def_readonly("buffer", &MeshTensor::buffer)
      .def_readonly("sharding", &MeshTensor::sharding)
      .def_readonly("tiling", &MeshTensor::tiling)
      .def_readonly("span", &MeshTensor::span);
  py::class_<MayAlias>(module, "MayAlias", "Parameters whose arguments may share memory.")
      .def(py::init([](std::vector<BufferRef> buffers, std::vector<Span> places, Span span) {
             return MayAlias{std::move(buffers), std::move(places), span};
           }),
           py::arg("buffers"), py::arg("places") = std::vector<Span>{}, py::arg("span") = Span{})
      .def_readonly("buffers", &MayAlias::buffers)
      .def_readonly("span", &MayAlias::span);
  py::class_<Assumption>(module, "Assumption", "A condition on extents and integer parameters that each call meets.")
      .def(py::init([](Expr condition, Span span) { return Assumption{std::move(condition), span}; }),
           py::arg("condition"), py::arg("span") = Span{})
      .def_readonly("condition", &Assumption::condition)
      .def_readonly("span", &Assumption::span);
  module.def("sharded_shape", &sharded_shape, py::arg("mesh"), py::arg("tensor"));
  module.def("local_shape", &local_shape, py::arg("mesh"), py::arg("tensor"), py::arg("core"));
}

using ArgumentValue = std::variant<BufferRef, Expr>;

Stmt make_call(const FunctionRef& function, std::vector<std::pair<ArgumentValue, Span>> arguments,
               std::optional<MeshShape> mesh, std::vector<MeshTensor> mesh_tensors, std::vector<MayAlias> may_alias,
               std::vector<Assumption> assumptions, Span span) {
  std::vector<CallArgument> values;
  for (auto& [value, place] : arguments) values.push_back({std::move(value), place});
  return call(function, values,
              {std::move(mesh), std::move(mesh_tensors), std::move(may_alias), std::move(assumptions)}, span);
}

template <class T>
py::tuple equality(const T& a, const T& b) {
  std::string path;
  const bool same = structural_equal(a, b, &path);
  return py::make_tuple(same, path);
}

}  // namespace

void bind_function(py::module_& module) {
  bind_mesh(module);
  py::class_<Function, Node, Ref<Function>>(module, "Function", "A host body over tensor and scalar parameters.")
      .def_readonly("name", &Function::name)
      .def_readonly("dims", &Function::dims)
      .def_readonly("params", &Function::params)
      .def_readonly("mesh", &Function::mesh)
      .def_readonly("mesh_tensors", &Function::mesh_tensors)
      .def_readonly("may_alias", &Function::may_alias)
      .def_readonly("assumptions", &Function::assumptions)
      .def_readonly("body", &Function::body);
  module.def("make_function", &make_function, py::arg("name"), py::arg("dims"), py::arg("params"), py::arg("mesh"),
             py::arg("mesh_tensors"), py::arg("body"), py::arg("may_alias") = std::vector<MayAlias>{},
             py::arg("assumptions") = std::vector<Assumption>{}, py::arg("span") = Span{});
  module.def("call", &make_call, py::arg("function"), py::arg("arguments"), py::arg("mesh"), py::arg("mesh_tensors"),
             py::arg("may_alias"), py::arg("assumptions"), py::arg("span"),
             "The statements that a call of the function means, with (buffer or scalar, place) for each parameter; the "
             "rest is what is known of the calling function.");
  module.def("print", [](const FunctionRef& function) { return print(function); }, py::arg("function"),
             "The function as Python text that parses back to an equal function.");
  module.def("structural_equal", &equality<FunctionRef>, py::arg("a"), py::arg("b"),
             "(equal?, path of the first difference) of two functions.");
  module.def("structural_hash", py::overload_cast<const FunctionRef&>(&structural_hash), py::arg("function"),
             "A number of 64 bits that equal functions share, in every process.");
  module.def("stmt_equal", &equality<Stmt>, py::arg("a"), py::arg("b"),
             "(equal?, path of the first difference) of two statements.");
  module.def(
      "tensor_effects",
      [](const FunctionRef& function) {
        std::vector<std::tuple<bool, bool, bool>> out;
        for (const BufferEffect& e : param_effects(*function))
          out.emplace_back(e.read, e.written, is_read_first(function->body, *e.buffer));
        return out;
      },
      py::arg("function"), "For each tensor parameter in order: is it read, is it written, is it read first?");
  module.def("verify", [](const FunctionRef& function) { wait_for([function] { verify(function); }); },
             py::arg("function"), "Raises the first fault of the function.");
}

}  // namespace helve::python
