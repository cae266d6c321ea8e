// The classes of helve.cute: Layout, Swizzle, ComposedLayout.
// They behave like pycute's where that is sound: tuples in and out, calls with coordinates or slices, modes by index.
#include <fmt/format.h>

#include "bindings.h"
#include "cute_casters.h"
#include "cute_coordinates.h"

namespace helve::python {

namespace py = pybind11;

namespace {

/// A leaf of a tuple; kAll stands for `None`.
int64_t leaf(int64_t value) {
  if (value == cute::kAll) throw_layout_error(Code::LayoutOverflow, {{"what", std::to_string(value)}});
  return value;
}

}  // namespace

bool append_tuple(cute::IntTuple& result, py::handle source, bool none_allowed, size_t level) {
  PyObject* object = source.ptr();
  if (PyTuple_Check(object) || PyList_Check(object)) {
    if (level == cute::kMaxDepth) cute::refuse_depth();
    Py_ssize_t count = PySequence_Fast_GET_SIZE(object);
    cute::check_entries(static_cast<size_t>(count));
    result.profile.push_back(static_cast<uint16_t>(count));
    for (Py_ssize_t i = 0; i < count; ++i) {
      if (!append_tuple(result, PySequence_Fast_GET_ITEM(object, i), none_allowed, level + 1)) return false;
    }
    return true;
  }
  if (source.is_none()) {
    if (none_allowed) result.append_leaf(cute::kAll);
    return none_allowed;
  }
  if (is_basis(source)) refuse_argument(source, "integer", "cute.CoordinateLayout(shape, stride) takes such strides");
  const auto value = read_integer(source);
  if (!value) return false;
  result.append_leaf(leaf(*value));
  return true;
}

py::object tuple_object(cute::IntCursor tuple) {
  if (tuple.is_leaf()) {
    if (*tuple.leaves == cute::kAll) return py::none();
    return py::int_(*tuple.leaves);
  }
  py::tuple result(tuple.rank());
  cute::IntCursor entry = tuple.front();
  for (size_t i = 0; i < tuple.rank(); ++i, entry = entry.next()) result[i] = tuple_object(entry);
  return result;
}

size_t mode_index(int64_t index, size_t rank) {
  if (index < 0) index += static_cast<int64_t>(rank);
  return index < 0 ? rank : static_cast<size_t>(index);
}

bool load_tiler(cute::Tiler& result, py::handle source, size_t level) {
  if (py::detail::make_caster<LayoutObject> object; object.load(source, false)) {
    result = cute::Tiler(static_cast<LayoutObject&>(object).layout);
    return true;
  }
  if (source.is_none()) return true;
  if (PyTuple_Check(source.ptr()) || PyList_Check(source.ptr())) {
    if (level == cute::kMaxDepth) cute::refuse_depth();
    cute::TilerTuple modes;
    for (py::handle item : py::reinterpret_borrow<py::sequence>(source)) {
      if (!load_tiler(modes.emplace_back(), item, level + 1)) return false;
    }
    result = cute::Tiler(std::move(modes));
    return true;
  }
  cute::IntTuple extent;
  if (!append_tuple(extent, source, false)) return false;
  result = cute::Tiler(cute::Layout(extent.leaves[0], 1));
  return true;
}

namespace {

/// The arguments of a call as one coordinate: `L(i)`, `L((i, j))` and `L(i, j)`.
cute::IntTuple coordinate_of(const py::args& args) {
  cute::IntTuple result;
  py::handle source = args.size() == 1 ? py::handle(args[0]) : py::handle(args);
  if (!append_tuple(result, source, true)) {
    throw py::type_error("a coordinate is an integer, None, or a nested tuple of these");
  }
  return result;
}

template <class L>
py::object call(const L& layout, const py::args& args) {
  if (args.size() == 1 && PyLong_CheckExact(args[0].ptr())) return py::int_(layout(leaf(*read_integer(args[0]))));
  cute::IntTuple coordinate = coordinate_of(args);
  if (cute::has_all(coordinate)) return py::cast(cute::slice(coordinate, layout));
  return py::int_(layout(coordinate));
}

/// What Layout and ComposedLayout share; `get` gives the value of the bound object.
template <class Class, class Get>
void bind_queries(Class& bound, Get get) {
  using Object = typename Class::type;
  bound.def("size", [get](const Object& self) { return get(self).size(); }, "The number of elements of the domain.")
      .def("cosize", [get](const Object& self) { return get(self).cosize(); },
           "The span of the offsets: 1 + the sum of (extent - 1) * |stride|; of a composed layout, its maximum + 1.")
      .def("rank", [get](const Object& self) { return get(self).rank(); }, "The number of modes at the top.")
      .def("depth", [get](const Object& self) { return get(self).depth(); },
           "The levels of nesting; 0 for an integer shape.")
      .def("__len__", [get](const Object& self) { return get(self).rank(); })
      .def("__call__", [get](const Object& self, const py::args& args) { return call(get(self), args); },
           "The offset of an index or a coordinate; with None in it, the layout of what None stands for.")
      .def("__getitem__",
           [get](const Object& self, Whole index) { return get(self).mode(mode_index(index, get(self).rank())); })
      .def("__iter__", [get](const Object& self) {
        py::list modes;
        for (size_t i = 0; i < get(self).rank(); ++i) modes.append(get(self).mode(i));
        return py::iter(modes);
      });
}

std::string repr(const cute::Layout& layout) {
  return fmt::format("Layout({},{})", cute::to_string(layout.shape()), cute::to_string(layout.stride()));
}

std::string repr(const Swizzle& s) { return fmt::format("Swizzle({},{},{})", s.bits, s.base, s.shift); }

void bind_layout(py::module_& module) {
  auto value = [](const LayoutObject& self) -> const cute::Layout& { return self.layout; };
  py::class_<LayoutObject> bound(
      module, "CuteLayout",
      "A nested shape and congruent strides: a function from coordinates, left mode fastest, to offsets.\n\n"
      "Layout(shape) is compact, Layout(shape, stride) as given. Shapes and strides are integers or nested tuples.\n"
      "An index past the size continues the last mode. Raises ShapeError, BoundsError, and UnsupportedError beyond\n"
      "64 bits.");
  bound
      .def(py::init([](const cute::IntTuple& shape, const std::optional<cute::IntTuple>& stride) {
             return LayoutObject{stride ? cute::Layout(shape, *stride) : cute::Layout(shape), {}, {}, {}};
           }),
           py::arg("shape"), py::arg("stride") = py::none())
      .def_static("parse", &cute::parse, py::arg("text"), "The layout that its text spells, '(4,(2,3)):(1,(4,8))'.")
      .def_property_readonly("shape",
                             [](LayoutObject& self) {
                               if (!self.shape) self.shape = tuple_object(self.layout.shape().root());
                               return self.shape;
                             })
      .def_property_readonly("stride",
                             [](LayoutObject& self) {
                               if (!self.stride) self.stride = tuple_object(self.layout.stride().root());
                               return self.stride;
                             })
      .def("__eq__", [](const LayoutObject& a, const LayoutObject& b) { return a.layout == b.layout; },
           py::is_operator())
      .def("__hash__", [](const LayoutObject& self) { return self.layout.hash(); })
      .def("__str__",
           [](LayoutObject& self) {
             if (!self.text) self.text = py::str(cute::to_string(self.layout));
             return self.text;
           })
      .def("__repr__", [](const LayoutObject& self) { return repr(self.layout); })
      .def("__reduce__", [](py::object self) {
        return py::make_tuple(py::type::of(self), py::make_tuple(self.attr("shape"), self.attr("stride")));
      });
  bind_queries(bound, value);
}

void bind_swizzle(py::module_& module) {
  py::class_<Swizzle>(module, "CuteSwizzle",
                      "XORs `bits` bits at `base` with those `shift` above (below when it is negative).\n\n"
                      "0 <= bits <= |shift|, 0 <= base. A permutation of every aligned block of size() offsets, and "
                      "its own inverse. Raises UnsupportedError.")
      .def(py::init([](Whole bits, Whole base, Whole shift) { return cute::make_swizzle(bits, base, shift); }),
           py::arg("bits"), py::arg("base"), py::arg("shift"))
      .def_readonly("bits", &Swizzle::bits)
      .def_readonly("base", &Swizzle::base)
      .def_readonly("shift", &Swizzle::shift)
      .def("size", [](const Swizzle& self) { return cute::size(self); }, "2^(bits + base + |shift|).")
      .def("cosize", [](const Swizzle& self) { return cute::size(self); }, "The same as size().")
      .def("__call__", [](const Swizzle& self, Whole offset) { return self.apply(offset); }, py::arg("offset"))
      .def("__eq__", [](const Swizzle& a, const Swizzle& b) { return a == b; }, py::is_operator())
      .def("__hash__", [](const Swizzle& s) { return py::hash(py::make_tuple(s.bits, s.base, s.shift)); })
      .def("__str__", [](const Swizzle& self) { return cute::to_string(self); })
      .def("__repr__", [](const Swizzle& self) { return repr(self); })
      .def("__reduce__", [](py::object self) {
        return py::make_tuple(py::type::of(self),
                              py::make_tuple(self.attr("bits"), self.attr("base"), self.attr("shift")));
      });
}

/// The inside of the outermost stage.
py::object inside(const cute::ComposedLayout& layout) {
  std::vector<cute::Stage> stages = layout.stages();
  stages.pop_back();
  if (stages.empty()) return py::cast(layout.inner());
  return py::cast(cute::ComposedLayout(layout.inner(), std::move(stages)));
}

py::object map_object(const cute::Stage& stage) {
  if (const auto* swizzle = std::get_if<Swizzle>(&stage.map)) return py::cast(*swizzle);
  return py::cast(std::get<cute::Layout>(stage.map));
}

/// A plain layout, or the integer n for n:1; else a TypeError.
cute::Layout layout_of(py::handle source, const char* needed) {
  py::detail::make_caster<cute::Layout> layout;
  if (!layout.load(source, false)) throw py::type_error(needed);
  return layout;
}

/// outer(offset + inner(c)); stages of either operand become stages of the result.
cute::ComposedLayout compose(const py::object& outer, Whole offset, const py::object& inner) {
  std::vector<cute::Stage> stages;
  cute::Layout base;
  if (py::isinstance<cute::ComposedLayout>(inner)) {
    const auto& composed = inner.cast<const cute::ComposedLayout&>();
    base = composed.inner();
    stages = composed.stages();
  } else {
    base = layout_of(inner, "the inside of a ComposedLayout is a layout");
  }
  if (py::isinstance<Swizzle>(outer)) {
    stages.push_back({offset, outer.cast<Swizzle>()});
  } else if (py::isinstance<cute::ComposedLayout>(outer)) {
    const auto& composed = outer.cast<const cute::ComposedLayout&>();
    stages.push_back({offset, composed.inner()});
    stages.insert(stages.end(), composed.stages().begin(), composed.stages().end());
  } else {
    stages.push_back({offset, layout_of(outer, "the outside of a ComposedLayout is a layout or a swizzle")});
  }
  return cute::ComposedLayout(std::move(base), std::move(stages));
}

void bind_composed(py::module_& module) {
  auto value = [](const cute::ComposedLayout& self) -> const cute::ComposedLayout& { return self; };
  py::class_<cute::ComposedLayout> bound(
      module, "CuteComposedLayout",
      "c -> outer(offset + inner(c)): a layout followed by a swizzle, a layout, or several of these.\n\n"
      "It has the shape of `inner` and no strides; operations on the domain (slices, modes, division) act on `inner`.");
  bound.def(py::init(&compose), py::arg("outer"), py::arg("offset"), py::arg("inner"))
      .def_property_readonly("outer", [](const cute::ComposedLayout& self) { return map_object(self.stages().back()); })
      .def_property_readonly("offset", [](const cute::ComposedLayout& self) { return self.stages().back().offset; })
      .def_property_readonly("inner", &inside)
      .def_property_readonly("layout", [](const cute::ComposedLayout& self) { return self.inner(); },
                             "The innermost layout, before all stages.")
      .def_property_readonly("stages",
                             [](const cute::ComposedLayout& self) {
                               py::list result;
                               for (const cute::Stage& stage : self.stages()) {
                                 result.append(py::make_tuple(stage.offset, map_object(stage)));
                               }
                               return py::tuple(result);
                             },
                             "(offset, map) of each stage, the innermost first.")
      .def_property_readonly("shape", [](const cute::ComposedLayout& self) { return self.inner().shape(); })
      .def("__eq__", [](const cute::ComposedLayout& a, const cute::ComposedLayout& b) { return a == b; },
           py::is_operator())
      .def("__hash__", [](const cute::ComposedLayout& self) { return py::hash(py::str(cute::to_string(self))); })
      .def("__str__", [](const cute::ComposedLayout& self) { return cute::to_string(self); })
      .def("__repr__",
           [](py::object self) {
             return py::str("ComposedLayout({!r},{!r},{!r})")
                 .format(self.attr("outer"), self.attr("offset"), self.attr("inner"));
           })
      .def("__reduce__", [](py::object self) {
        return py::make_tuple(py::type::of(self),
                              py::make_tuple(self.attr("outer"), self.attr("offset"), self.attr("inner")));
      });
  bind_queries(bound, value);
}

}  // namespace

void bind_cute(py::module_& module) {
  bind_layout(module);
  bind_swizzle(module);
  bind_composed(module);
  for (const char* name : {"Layout", "Swizzle", "ComposedLayout"}) {  // the public names, as `repr` and help show them
    py::object type = module.attr((std::string("Cute") + name).c_str());
    type.attr("__module__") = "helve.cute";
    type.attr("__name__") = name;
    type.attr("__qualname__") = name;
  }
  bind_cute_algebra(module);
  bind_cute_coordinates(module);
}

}  // namespace helve::python
