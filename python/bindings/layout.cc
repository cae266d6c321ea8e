// Axes and the Axe layout in Python.
// Values are immutable and hashed; operators build them as the printed notation reads, `S[...] + R[...] + 5@warpid`.
#include <pybind11/operators.h>

#include <fmt/format.h>

#include <unordered_map>

#include "bindings.h"
#include "helve/layout/notation.h"
#include "layout_casters.h"

namespace helve::python {

namespace py = pybind11;

py::handle axis_object(Axis axis) {
  // Never freed: Python objects may outlive every static.
  static auto& all = *new std::unordered_map<Axis, py::object>;
  py::object& one = all[axis];
  if (!one) {
    const auto* shared = new Axis(axis);
    const auto policy = py::return_value_policy::reference;
    one = py::reinterpret_steal<py::object>(py::detail::type_caster_base<Axis>::cast(shared, policy, {}));
  }
  return one;
}

namespace {

/// The argument of `R[...]`.
struct Replicas {
  Iters iters;
};

std::string to_text(const Displacement& d) {
  return d.axis == axes::m() ? std::to_string(d.value) : fmt::format("{}@{}", d.value, d.axis.name());
}

AxisKind kind_named(const std::string& name) {
  for (AxisKind kind : {AxisKind::Device, AxisKind::Thread, AxisKind::Memory}) {
    if (to_string(kind) == name) return kind;
  }
  refuse_argument(py::str(name), "kind of axis", "an axis is of kind 'device', 'thread' or 'memory'");
}

Layout with_offset(const Layout& layout, const Displacement& added, int64_t sign) {
  if (!layout.swizzle().identity()) {
    throw_layout_error(Code::SwizzledOperand,
                       {{"operation", "+"}, {"operand", "left"}, {"layout", to_string(layout)}});
  }
  Point offset = layout.offset();
  auto sum = static_cast<__int128>(offset[added.axis]) + static_cast<__int128>(added.value) * sign;
  if (sum != static_cast<int64_t>(sum)) throw_layout_error(Code::LayoutOverflow, {{"what", "an offset"}});
  offset[added.axis] = static_cast<int64_t>(sum);
  return Layout(layout.shard(), layout.replica(), std::move(offset));
}

Layout with_replicas(const Layout& layout, const Replicas& added) {
  Iters replica = layout.replica();
  replica.append(added.iters.begin(), added.iters.end());
  return Layout(layout.shard(), std::move(replica), layout.offset(), layout.swizzle());
}

void bind_axis(py::module_& module) {
  py::class_<Axis, std::unique_ptr<Axis, py::nodelete>>(module, "Axis",
                   "A named axis of places: of devices, of threads or of memory.\n\n"
                   "`4@laneid` is a step of 4 along it. Axes compare by identity; `helve.axis` makes them.")
      .def_property_readonly("name", [](const Axis& a) { return a.name(); })
      .def_property_readonly("kind", [](const Axis& a) { return std::string(to_string(a.kind())); },
                             "\"device\", \"thread\" or \"memory\".")
      .def("__rmatmul__",
           [](const Axis& axis, py::handle value) -> py::object {
             auto number = read_integer(value);
             if (!number) return py::reinterpret_borrow<py::object>(Py_NotImplemented);
             return py::cast(Displacement{*number, axis});
           })
      .def_property_readonly_static("__array_ufunc__", [](const py::object&) { return py::none(); },
                                    "None: `array @ axis` is the axis's to refuse, not NumPy's.")
      .def("__lt__", [](const Axis& a, const Axis& b) { return a < b; }, py::is_operator())
      .def("__repr__", [](const Axis& a) { return a.name(); })
      .def("__reduce__", [module](const Axis& a) {
        return py::make_tuple(module.attr("axis"), py::make_tuple(a.name(), std::string(to_string(a.kind()))));
      });
  module.def(
      "axis", [](const std::string& name, const std::string& kind) { return Axis::make(name, kind_named(kind)); },
      py::arg("name"), py::arg("kind"),
      "The axis called `name`, made at the first call.\n\n"
      "Args:\n    name: an identifier.\n    kind: \"device\", \"thread\" or \"memory\".\n\n"
      "Raises:\n    helve.LayoutError: `name` is no identifier or an axis of another kind; another kind than these.");
  module.def("builtin_axes", [] {
    py::list all;
#define HELVE_AXIS(name, kind) all.append(axes::name());
#include "helve/layout/axis_table.inc"
#undef HELVE_AXIS
    return all;
  }, "The axes that always exist, in the order of their table.");
}

void bind_literals(py::module_& module) {
  py::class_<Displacement>(module, "Displacement", "A step along an axis, `4@laneid`: a stride or an offset.")
      .def(py::init([](Whole value, Axis axis) { return Displacement{value, axis}; }), py::arg("value"),
           py::arg("axis"))
      .def_readonly("value", &Displacement::value)
      .def_readonly("axis", &Displacement::axis)
      .def("__neg__",
           [](const Displacement& d) {
             if (d.value == std::numeric_limits<int64_t>::min())
               throw_layout_error(Code::LayoutOverflow, {{"what", "an offset"}});
             return Displacement{-d.value, d.axis};
           })
      .def(
          "__eq__", [](const Displacement& a, const Displacement& b) { return a.value == b.value && a.axis == b.axis; },
          py::is_operator())
      .def("__hash__", [](const Displacement& d) { return py::hash(py::make_tuple(d.value, d.axis)); })
      .def("__reduce__",
           [](const Displacement& d) {
             return py::make_tuple(py::type::of<Displacement>(), py::make_tuple(d.value, d.axis));
           })
      .def("__repr__", &to_text);
  py::class_<Replicas>(module, "Replicas",
                       "The replica iters of a layout, `R[2 : 4@warpid]`, to be added to its shard.")
      .def(py::init([](Iters iters) { return Replicas{std::move(iters)}; }), py::arg("iters"))
      .def_readonly("iters", &Replicas::iters)
      .def("__eq__", [](const Replicas& a, const Replicas& b) { return a.iters == b.iters; }, py::is_operator())
      .def("__hash__", [](const Replicas& self) { return py::hash(py::str(replica_text(self.iters))); })
      .def("__repr__", [](const Replicas& self) { return replica_text(self.iters); })
      .def("__reduce__", [](const Replicas& self) {
        return py::make_tuple(py::type::of<Replicas>(), py::make_tuple(self.iters));
      });
}

void bind_operators(py::class_<Layout>& layout) {
  layout
      .def("__add__",
           [](const Layout& self, py::handle other) -> py::object {
             if (py::isinstance<Replicas>(other)) return py::cast(with_replicas(self, other.cast<Replicas>()));
             if (auto added = read_displacement(other)) return py::cast(with_offset(self, *added, 1));
             return py::reinterpret_borrow<py::object>(Py_NotImplemented);
           },
           "With replicas `R[...]`, or an offset `5@warpid` (an integer is on `m`), added.")
      .def("__sub__",
           [](const Layout& self, py::handle other) -> py::object {
             if (auto added = read_displacement(other)) return py::cast(with_offset(self, *added, -1));
             return py::reinterpret_borrow<py::object>(Py_NotImplemented);
           })
      .def("__xor__",
           [](const Layout& self, const Swizzle& swizzle) {
             if (!self.swizzle().identity()) {
               throw_layout_error(Code::SwizzledOperand,
                                  {{"operation", "^"}, {"operand", "left"}, {"layout", to_string(self)}});
             }
             return Layout(self.shard(), self.replica(), self.offset(), swizzle);
           },
           py::is_operator(), "With a swizzle of the memory axis.")
      .def("__eq__", [](const Layout& a, const Layout& b) { return a == b; }, py::is_operator(),
           "Whether both are spelled alike; `equivalent` compares maps.")
      .def("__hash__", [](const Layout& self) { return self.hash(); })
      .def("__str__", [](const Layout& self) { return to_string(self); })
      .def("__repr__", [](const Layout& self) { return to_string(self); })
      .def("__reduce__", [](const Layout& self) {
        return py::make_tuple(py::type::of<Layout>(),
                              py::make_tuple(self.shard(), self.replica(), self.offset(), self.swizzle()));
      });
}

void bind_parts(py::class_<Layout>& layout) {
  layout
      .def(py::init(
               [](Iters shard, Iters replica, Point offset, std::optional<Swizzle> swizzle) {
                 return Layout(std::move(shard), std::move(replica), std::move(offset), swizzle.value_or(Swizzle{}));
               }),
           py::arg("shard") = Iters{}, py::arg("replica") = Iters{},
           py::arg("offset") = Point{}, py::arg("swizzle") = py::none())
      .def_static("parse", &parse_layout, py::arg("text"),
                  "The layout that `text` spells, as `str` prints it.\n\n"
                  "Raises:\n    helve.LayoutError: with the column and what was expected there.")
      .def_property_readonly(
          "shard", [](const Layout& self) { return py::tuple(py::cast(self.shard())); },
          "The iters of the domain, slowest first: (extent, stride, axis).")
      .def_property_readonly(
          "replica", [](const Layout& self) { return py::tuple(py::cast(self.replica())); },
          "The iters of the copies: (extent, stride, axis).")
      .def_property_readonly(
          "offset", [](const Layout& self) { return self.offset(); }, "{axis: n}, in units of the axis.")
      .def_property_readonly(
          "swizzle",
          [](const Layout& self) { return self.swizzle().identity() ? std::nullopt : std::optional(self.swizzle()); },
          "The swizzle of the memory axis, or None.")
      .def_property_readonly(
          "axes", [](const Layout& self) { return py::tuple(py::cast(self.axes())); },
          "Every axis that shard, replica or offset name, by kind and name.");
}

constexpr const char* kLayoutText =
    "Where every element lives, on all axes at once: L(x) = { D(x) + r + O : r in R } (Axe, arXiv 2601.19092).\n\n"
    "The domain is [0, size()): the flat, row-major index, whose digits are the shard's iters, the last the fastest. "
    "A\n"
    "layout has no rank; every shape with size() elements is admitted. All answers are exact, or refused by a\n"
    "`helve.LayoutError` that names the numbers.\n\n"
    "Args:\n"
    "    shard: the iters of D, slowest first: (extent, stride, axis), or (extent, stride) and (extent, stride@axis).\n"
    "    replica: the iters of R.\n"
    "    offset: O as {axis: n}.\n"
    "    swizzle: a `Swizzle` of the addresses on `m`, after D + R + O, in elements.\n\n"
    "Raises:\n"
    "    helve.ShapeError: an extent below 1.\n"
    "    helve.UnsupportedError: a coordinate, span or size beyond 64 bits.";

}  // namespace

void bind_axe(py::module_& module) {
  bind_axis(module);
  bind_literals(module);
  py::class_<Layout> layout(module, "Layout", kLayoutText);
  bind_parts(layout);
  bind_operators(layout);
  bind_axe_algebra(module, layout);
  bind_axe_bridges(module, layout);
  for (const char* name : {"Axis", "Layout"}) module.attr(name).attr("__module__") = "helve.layout";
}

}  // namespace helve::python
