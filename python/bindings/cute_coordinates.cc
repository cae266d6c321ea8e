// Layouts whose values are coordinates in Python: `E(0)`, CoordinateLayout and what acts on them.
// Operations on the domain are those of the layout of numbers inside; only sums past the end need a check.
#include "cute_coordinates.h"

#include "bindings.h"
#include "cute_casters.h"
#include "helve/layout/cute/coordinates.h"

namespace helve::python {

namespace py = pybind11;

namespace {

using cute::CoordinateLayout;
using cute::IntTuple;
using cute::Layout;
using cute::Tiler;

/// What Python holds: a class of its own, so that a list of terms is never taken for one.
struct BasisObject {
  cute::Basis terms;
};

constexpr const char* kStrides =
    "the strides of a CoordinateLayout are E(...), their multiples and sums, 0, or nested tuples";

/// The strides of a nested tuple of basis elements (0 for a mode that does not move), leaf by leaf.
void append_strides(std::vector<cute::Basis>& strides, cute::Profile& profile, py::handle source, size_t level) {
  if (py::isinstance<BasisObject>(source)) {
    profile.push_back(cute::kLeaf);
    strides.push_back(source.cast<const BasisObject&>().terms);
    return;
  }
  if (!py::isinstance<py::tuple>(source) && !py::isinstance<py::list>(source)) {
    const auto number = read_integer(source);
    if (!number) throw py::type_error(kStrides);
    if (*number != 0) refuse_argument(source, "step along a coordinate", kStrides);
    profile.push_back(cute::kLeaf);
    strides.emplace_back();
    return;
  }
  if (level == cute::kMaxDepth) cute::refuse_depth();
  auto items = py::reinterpret_borrow<py::sequence>(source);
  cute::check_entries(items.size());
  profile.push_back(static_cast<uint16_t>(items.size()));
  for (py::handle item : items) append_strides(strides, profile, item, level + 1);
}

CoordinateLayout coordinate_layout(const IntTuple& shape, py::handle stride) {
  std::vector<cute::Basis> strides;
  cute::Profile profile;
  append_strides(strides, profile, stride, 0);
  if (profile != shape.profile) {
    throw_layout_error(Code::CuteProfile, {{"operation", "CoordinateLayout"},
                                           {"operand", py::str(stride).cast<std::string>()},
                                           {"target", cute::to_string(shape)}});
  }
  return CoordinateLayout(shape, strides);
}

py::object stride_object(cute::IntCursor at, const std::vector<cute::Basis>& strides, size_t& leaf) {
  if (at.is_leaf()) return py::cast(BasisObject{strides[leaf++]});
  py::tuple result(at.rank());
  cute::IntCursor entry = at.front();
  for (size_t i = 0; i < at.rank(); ++i, entry = entry.next()) result[i] = stride_object(entry, strides, leaf);
  return result;
}

void bind_basis(py::module_& module) {
  py::class_<BasisObject>(module, "CuteBasis",
                          "A stride that is a step along entries of a coordinate: `2*E(0) + E(1, 0)` is 2 steps along "
                          "entry 0 and one along entry 0 of entry 1.")
      .def("__mul__", [](const BasisObject& self, Whole n) { return BasisObject{cute::multiply(self.terms, n)}; },
           py::is_operator())
      .def("__rmul__", [](const BasisObject& self, Whole n) { return BasisObject{cute::multiply(self.terms, n)}; },
           py::is_operator())
      .def_property_readonly_static("__array_ufunc__", [](const py::object&) { return py::none(); },
                                    "None: `array * E(0)` is the basis element's to refuse, not NumPy's.")
      .def("__neg__", [](const BasisObject& self) { return BasisObject{cute::multiply(self.terms, -1)}; })
      .def("__add__",
           [](const BasisObject& a, const BasisObject& b) { return BasisObject{cute::add(a.terms, b.terms)}; },
           py::is_operator())
      .def("__eq__", [](const BasisObject& a, const BasisObject& b) { return a.terms == b.terms; }, py::is_operator())
      .def("__hash__", [](const BasisObject& self) { return py::hash(py::str(cute::to_string(self.terms))); })
      .def("__repr__", [](const BasisObject& self) { return cute::to_string(self.terms); })
      .def("__reduce__", [module](const BasisObject& self) {
        py::list terms;
        for (const cute::BasisTerm& term : self.terms) terms.append(py::make_tuple(term.path, term.value));
        return py::make_tuple(module.attr("cute").attr("_basis"), py::make_tuple(terms));
      });
  module.attr("cute").cast<py::module_>().def(
      "_basis", [](const std::vector<std::pair<std::vector<size_t>, int64_t>>& terms) {
        cute::Basis basis;
        for (const auto& [path, value] : terms) basis = cute::add(basis, {{path, value}});
        return BasisObject{basis};
      });
}

py::object coordinate_at(const CoordinateLayout& self, const py::args& args) {
  py::detail::make_caster<Coordinate> coordinate;
  if (!coordinate.load(args.size() == 1 ? py::handle(args[0]) : py::handle(args), false)) {
    throw py::type_error("a coordinate is an integer, None, or a nested tuple of these");
  }
  const IntTuple& at = static_cast<Coordinate&>(coordinate).tuple;
  if (cute::has_all(at)) return py::cast(cute::slice(at, self));
  return tuple_object(self(at).root());
}

void bind_class(py::module_& module) {
  py::class_<CoordinateLayout>(
      module, "CuteCoordinateLayout",
      "A layout whose values are coordinates: its strides are E(0), E(1), ..., their multiples and sums (CuTe's\n"
      "ScaledBasis). Divided, composed and sliced like any layout, it tells where in a tensor each piece lies.\n\n"
      "Args:\n    shape: an integer or a nested tuple.\n    stride: basis elements, or 0, in the shape's structure.\n\n"
      "Raises ShapeError, BoundsError, and UnsupportedError beyond 64 bits for all entries together.")
      .def(py::init(&coordinate_layout), py::arg("shape"), py::arg("stride"))
      .def_property_readonly("shape", method(&CoordinateLayout::shape))
      .def_property_readonly("stride",
                             [](const CoordinateLayout& self) {
                               const IntTuple shape = self.shape();
                               size_t leaf = 0;
                               return stride_object(shape.root(), self.strides(), leaf);
                             })
      .def("size", method(&CoordinateLayout::size), "The number of elements of the domain.")
      .def("rank", method(&CoordinateLayout::rank), "The number of modes at the top.")
      .def("depth", method(&CoordinateLayout::depth), "The levels of nesting; 0 for an integer shape.")
      .def("__len__", method(&CoordinateLayout::rank))
      .def("__call__", &coordinate_at,
           "The coordinate at an index or a coordinate; with None in it, the layout of what None stands for.")
      .def("__getitem__",
           [](const CoordinateLayout& self, Whole index) { return self.mode(mode_index(index, self.rank())); })
      .def("__iter__",
           [](const CoordinateLayout& self) {
             py::list modes;
             for (size_t i = 0; i < self.rank(); ++i) modes.append(self.mode(i));
             return py::iter(modes);
           })
      .def("__eq__", [](const CoordinateLayout& a, const CoordinateLayout& b) { return a == b; }, py::is_operator())
      .def("__hash__", [](const CoordinateLayout& self) { return py::hash(py::str(cute::to_string(self))); })
      .def("__str__", [](const CoordinateLayout& self) { return cute::to_string(self); })
      .def("__repr__", [](const CoordinateLayout& self) { return "CoordinateLayout(" + cute::to_string(self) + ")"; })
      .def("__reduce__", [](py::object self) {
        return py::make_tuple(py::type::of(self), py::make_tuple(self.attr("shape"), self.attr("stride")));
      });
}

template <Layout (*apply)(const Layout&)>
void bind_unary(py::module_& m, const char* name) {
  m.def(name, [](const CoordinateLayout& layout) { return layout.with_inner(apply(layout.inner())); },
        py::arg("layout"));
}

template <Layout (*apply)(const Layout&, const Tiler&)>
void bind_tiling(py::module_& m, const char* name) {
  m.def(name, [](const CoordinateLayout& layout, const Tiler& tiler) {
    layout.check_reach(tiler);
    return layout.with_inner(apply(layout.inner(), tiler));
  }, py::arg("layout"), py::arg("tiler"));
}

void bind_functions(py::module_& m) {
  m.def("E", [](const py::args& path) {
    std::vector<size_t> entries;
    for (py::handle each : path) entries.push_back(read_mode(each));
    return BasisObject{{{std::move(entries), 1}}};
  }, "The basis element of the entry at a path of a coordinate: E(1) steps along entry 1, E(1, 0) along its entry 0.");
  m.def("make_identity_layout", &cute::make_identity_layout, py::arg("shape"),
        "The CoordinateLayout that maps every coordinate of the shape to itself.");
  m.def("composition", py::overload_cast<const CoordinateLayout&, const Tiler&>(&cute::composition), py::arg("a"),
        py::arg("b"));
  m.def("composition", py::overload_cast<const Layout&, const CoordinateLayout&>(&cute::composition), py::arg("a"),
        py::arg("b"));
  bind_tiling<cute::logical_divide>(m, "logical_divide");
  bind_tiling<cute::zipped_divide>(m, "zipped_divide");
  bind_tiling<cute::tiled_divide>(m, "tiled_divide");
  bind_tiling<cute::flat_divide>(m, "flat_divide");
  bind_unary<cute::coalesce>(m, "coalesce");
  bind_unary<cute::flatten>(m, "flatten");
  m.def("group", [](const CoordinateLayout& layout, ModeNumber begin, ModeNumber end) {
    return layout.with_inner(cute::group(layout.inner(), begin, end));
  }, py::arg("layout"), py::arg("begin"), py::arg("end"));
  m.def("size", [](const CoordinateLayout& layout) { return layout.size(); }, py::arg("layout"));
  m.def("slice_", [](const Coordinate& crd, const CoordinateLayout& layout) { return cute::slice(crd.tuple, layout); },
        py::arg("crd"), py::arg("layout"));
  m.def("slice_and_offset", [](const Coordinate& crd, const CoordinateLayout& layout) {
    return cute::slice_and_offset(crd.tuple, layout);
  }, py::arg("crd"), py::arg("layout"));
  m.def("local_tile", [](const CoordinateLayout& layout, const Tiler& tiler, const Coordinate& coordinate) {
    layout.check_reach(tiler);
    auto [tile, number] = cute::local_tile(layout.inner(), tiler, coordinate.tuple);
    return std::pair(layout.with_inner(tile), layout.value(number));
  }, py::arg("layout"), py::arg("tiler"), py::arg("coord"));
  m.def("local_partition", [](const CoordinateLayout& layout, const Layout& threads, Whole thread) {
    auto [part, number] = cute::local_partition(layout.inner(), threads, thread);
    return std::pair(layout.with_inner(part), layout.value(number));
  }, py::arg("layout"), py::arg("thr_layout"), py::arg("thr_idx"));
}

}  // namespace

bool is_basis(py::handle source) { return py::isinstance<BasisObject>(source); }

void bind_cute_coordinates(py::module_& module) {
  bind_basis(module);
  bind_class(module);
  auto m = module.attr("cute").cast<py::module_>();
  bind_functions(m);
  for (const auto& [bound, name] : {std::pair("CuteBasis", "Basis"), {"CuteCoordinateLayout", "CoordinateLayout"}}) {
    py::object type = module.attr(bound);
    type.attr("__module__") = "helve.cute";
    type.attr("__name__") = name;
    type.attr("__qualname__") = name;
  }
}

}  // namespace helve::python
