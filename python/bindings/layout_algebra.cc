// The map, the algebra and the recognisers of layouts in Python.
// Thin calls into the core; batches of indices are NumPy arrays and run without the interpreter lock.
#include <pybind11/numpy.h>

#include <fmt/format.h>

#include "bindings.h"
#include "helve/layout/apply_many.h"
#include "helve/layout/recognise.h"
#include "helve/support/text.h"
#include "interpreter_lock.h"
#include "layout_casters.h"

namespace helve::python {

namespace py = pybind11;

namespace {

using Indices = py::array_t<int64_t, py::array::c_style | py::array::forcecast>;

py::list point_list(const Points& points) {
  py::list all(points.size());
  for (size_t i = 0; i < points.size(); ++i) {
    py::dict point;
    for (size_t a = 0; a < points.axes().size(); ++a) point[axis_object(points.axes()[a])] = py::int_(points.row(i)[a]);
    PyList_SET_ITEM(all.ptr(), static_cast<py::ssize_t>(i), point.release().ptr());
  }
  return all;
}

py::list apply(const Layout& layout, py::handle coordinate, const std::optional<Integers>& shape) {
  if (shape) {
    Integers digits;
    if (!load_integers(digits, coordinate)) throw py::type_error("a coordinate is a list of integers");
    return point_list(layout.apply(digits, *shape));
  }
  if (PyTuple_Check(coordinate.ptr()) || PyList_Check(coordinate.ptr())) {
    refuse_argument(coordinate, "flat index", "give the shape of a coordinate as well: apply(coord, shape)");
  }
  auto index = read_integer(coordinate);
  if (!index) throw py::type_error("apply takes a flat index, or a coordinate and its shape");
  return point_list(layout.apply(*index));
}

IndexRegion read_region(const IntegerLists& ranges) {
  IndexRegion region;
  for (const Integers& range : ranges) {
    if (range.size() != 2) {
      refuse_argument(py::tuple(py::cast(std::vector<int64_t>(range))), "range",
                      "a region has one (begin, end) for each dimension");
    }
    region.emplace_back(range[0], range[1]);
  }
  return region;
}

py::object inverse(const Layout& layout, const Point& point, const std::optional<Integers>& shape) {
  if (!shape) return py::cast(layout.inverse(point));
  auto coordinate = layout.inverse(point, *shape);
  return coordinate ? py::object(py::tuple(py::cast(*coordinate))) : py::none();
}

constexpr const char* kOut =
    "out is {axis: array} for every axis of the layout: int64, writeable, C-contiguous, of the indices' shape and, "
    "where the layout has replicas, one dimension more";

/// The array to fill for `axis`: a new one, or the caller's when it fits exactly.
Indices output_array(const std::optional<py::dict>& out, Axis axis, const std::vector<py::ssize_t>& shape) {
  if (!out) return Indices(shape);
  const std::string what = fmt::format("out[{}]", axis.name());
  const py::object key = py::cast(axis);
  if (!out->contains(key)) refuse_argument("out without axis " + axis.name(), "place for the coordinates", kOut);
  const py::object given = (*out)[key];
  if (!py::isinstance<py::array_t<int64_t>>(given)) refuse_argument(what, "NumPy array of int64", kOut);
  auto array = py::reinterpret_borrow<py::array>(given);
  if (!array.writeable() || (array.flags() & py::array::c_style) == 0) {
    refuse_argument(what, "writeable C-contiguous array", kOut);
  }
  if (!std::equal(shape.begin(), shape.end(), array.shape(), array.shape() + array.ndim())) {
    const std::vector<py::ssize_t> has(array.shape(), array.shape() + array.ndim());
    refuse_argument(fmt::format("{} of shape {}", what, shape_text(has)), "array of shape " + shape_text(shape), kOut);
  }
  return py::reinterpret_borrow<Indices>(given);
}

bool overlap(const Indices& a, const Indices& b) {
  return std::less<>()(a.data(), b.data() + b.size()) && std::less<>()(b.data(), a.data() + a.size());
}

py::dict apply_many(const Layout& layout, const py::object& given, const std::optional<py::dict>& out) {
  py::array raw = py::array::ensure(given);
  if (!raw || std::string_view("iu").find(raw.dtype().kind()) == std::string_view::npos) {
    constexpr const char* remedy = "indices are whole numbers below 2^63";
    if (written_with_numbers(given)) refuse_argument(given, "array of integers", remedy);
    throw py::type_error("apply_many takes an array of integers");
  }
  Indices indices(raw);
  BatchMap map(layout);
  std::vector<py::ssize_t> shape(indices.shape(), indices.shape() + indices.ndim());
  if (!layout.replica().empty()) shape.push_back(map.replicas());
  std::vector<Indices> arrays;
  for (Axis axis : map.axes()) {
    arrays.push_back(output_array(out, axis, shape));
    for (size_t a = 0; a + 1 < arrays.size(); ++a) {
      if (!out || !overlap(arrays[a], arrays.back())) continue;
      refuse_argument(fmt::format("out[{}], which overlaps out[{}],", axis.name(), map.axes()[a].name()),
                      "array of its own", kOut);
    }
  }
  bool aliased = std::any_of(arrays.begin(), arrays.end(), [&](const Indices& a) { return overlap(a, indices); });
  if (aliased) indices = Indices(indices.attr("copy")());
  std::vector<int64_t*> data;
  for (Indices& array : arrays) data.push_back(array.mutable_data());
  {
    std::span<const int64_t> all(indices.data(), static_cast<size_t>(indices.size()));
    const Unlocked unlocked;
    map.apply(all, data);
  }
  if (out) return *out;
  py::dict result;
  for (size_t a = 0; a < arrays.size(); ++a) result[py::cast(map.axes()[a])] = arrays[a];
  return result;
}

void bind_map(py::class_<Layout>& layout) {
  layout
      .def(
          "size", [](const Layout& self, std::optional<Axis> axis) { return axis ? self.size(*axis) : self.size(); },
          py::arg("axis") = py::none(),
          "The number of indices; with an axis, the product of the extents of the shard's iters on it.")
      .def("span", method(&Layout::span), py::arg("axis"),
           "max - min + 1 of the coordinates on `axis`, swizzled and with replicas; 1 for an axis not used.")
      .def("apply", &apply, py::arg("coord"), py::arg("shape") = py::none(),
           "Every point of an element: one {axis: coordinate} a replica, sorted, without duplicates.\n\n"
           "Args:\n    coord: the flat index; with `shape`, a coordinate in it.\n    shape: extents, size() "
           "elements.\n\n"
           "Raises:\n    helve.BoundsError: outside the domain.\n    helve.ShapeError: a shape that is not admitted.")
      .def("apply_many", &apply_many, py::arg("indices"), py::arg("out") = py::none(),
           "The coordinates of many flat indices.\n\n"
           "Args:\n    indices: an array of integers, any shape.\n"
           "    out: {axis: int64 array} to fill, C-contiguous; None makes new ones.\n\n"
           "Returns:\n    {axis: int64 array} of the shape of `indices`; with replica iters one more, last dimension: "
           "the replicas\n    that differ, in the order of their displacements.\n\n"
           "Raises:\n    helve.BoundsError: an index outside the domain.\n"
           "    helve.LayoutError: indices that are no integers, or an `out` that does not fit.\n\n"
           "Other threads run meanwhile.")
      .def("inverse", &inverse, py::arg("point"), py::arg("shape") = py::none(),
           "The index (with `shape` the coordinate) that has `point` among its points; None outside the image.\n\n"
           "Args:\n    point: {axis: coordinate}; an axis not named is at 0.\n\n"
           "Raises:\n    helve.InjectivityError: two indices share a point; the message names them.")
      .def("is_injective", method(&Layout::is_injective), "Whether two indices never share a point. Exact.")
      .def(
          "find_collision",
          [](const Layout& self) -> py::object {
            auto c = self.find_collision();
            return c ? py::object(py::make_tuple(c->first, c->second, c->point)) : py::none();
          },
          "(first, second, point): two indices that share a point; None for an injective layout.")
      .def(
          "canonicalize", method(&Layout::canonicalize),
          "An equal map: no unit extents, neighbours merged, replica strides positive, merged and sorted. The shard is "
          "unique.\nRules D0, D1, C0 to C2 of the Axe paper, appendix A.")
      .def("equivalent", method(&Layout::equivalent), py::arg("other"),
           "Whether both are the same map. Exact, also where canonical replicas differ.\n\n"
           "Raises:\n    helve.UnsupportedError: two different swizzles, or replica sets without a unique form, too "
           "large "
           "to list.");
}

void bind_parts_of(py::class_<Layout>& layout) {
  layout
      .def(
          "group",
          [](const Layout& self, const Integers& shape) {
            GroupedLayout grouped = self.group(shape);
            return py::make_tuple(grouped.layout, py::tuple(py::cast(grouped.separators)));
          },
          py::arg("shape"),
          "(layout, separators): an equal layout whose iters [separators[d], separators[d + 1]) are those of dimension "
          "d,"
          "\nas few as possible.\n\n"
          "Raises:\n    helve.ShapeError: a shape that is not admitted.\n"
          "    helve.DivisibilityError: no equal layout has these blocks.")
      .def(
          "group_many",
          [](const Layout& self, const IntegerLists& shapes) {
            GroupedMany grouped = self.group_many({shapes.begin(), shapes.end()});
            py::list separators;
            for (const auto& each : grouped.separators) separators.append(py::tuple(py::cast(each)));
            return py::make_tuple(grouped.layout, separators);
          },
          py::arg("shapes"), "(layout, separators of each shape): the coarsest iters that group by every shape.")
      .def("slice", [](const Layout& self, const IntegerLists& region, const Integers& shape) {
             return slice(self, read_region(region), shape);
           }, py::arg("region"), py::arg("shape"),
           "The layout of a region: over the extents end - begin, coordinate t is where begin + t was.\n\n"
           "Args:\n    region: one (begin, end) a dimension, end excluded.\n    shape: the extents of the whole.\n\n"
           "Raises:\n    helve.BoundsError: a region that is empty or outside.\n"
           "    helve.UnsupportedError: no layout with that swizzle is the map; with the coordinate that shows it.")
      .def("permute", [](const Layout& self, const Integers& shape, const Integers& order) {
             return permute(self, shape, order);
           }, py::arg("shape"), py::arg("order"),
           "The layout with the dimensions of `shape` in another order: dimension d of the result is order[d].")
      .def("pack", [](const Layout& self, Whole factor) { return pack(self, factor); }, py::arg("factor"),
           "The layout of packs of `factor` neighbours, in units of packs on `m`.\n\n"
           "Raises:\n    helve.DivisibilityError: packs would be torn.\n    helve.BoundsError: a factor below 1.\n"
           "    helve.UnsupportedError: the swizzle divides a pack.")
      .def("unpack", [](const Layout& self, Whole factor) { return unpack(self, factor); }, py::arg("factor"),
           "The layout of the `factor` parts of each element, neighbours on `m`: the inverse of `pack`.")
      .def("storage", &storage, "The layout inside one executor's memory: the iters on memory axes.")
      .def("project", &project, py::arg("axes"), "The layout on `axes` only; the digits of others leave the domain.")
      .def("fuse_axes", &fuse_axes, py::arg("target"),
           "Thread axes counted together on `target` (tx, tid_in_wg or warpid); the map is the same, renumbered.\n\n"
           "Raises:\n    helve.UnsupportedError: another target, axes that count the same threads, or with a gap "
           "between "
           "them.")
      .def(
          "execution_scopes",
          [](const Layout& self) -> py::object {
            auto scopes = execution_scopes(self);
            return scopes ? py::object(py::make_tuple(std::string(scopes->unit), std::string(scopes->scope)))
                          : py::none();
          },
          "(unit, scope) of the thread axes: (\"thread\", \"warp\") for laneid; None without thread axes.\n\n"
          "Raises:\n    helve.UnsupportedError: axes that form no chain, as laneid with wgid.");
}

}  // namespace

void bind_axe_algebra(py::module_& module, py::class_<Layout>& layout) {
  bind_map(layout);
  bind_parts_of(layout);
  const auto on_shapes = [](auto operation) {
    return [operation](const Layout& a, const Integers& a_shape, const Layout& b, const Integers& b_shape) {
      return operation(a, a_shape, b, b_shape);
    };
  };
  module.def(
      "tile", on_shapes(&tile), py::arg("outer"), py::arg("outer_shape"), py::arg("inner"), py::arg("inner_shape"),
      "The Kronecker product: (x, y) goes to outer(x) * span(inner) + inner(y), axis by axis.\n\n"
      "The domain is interleaved, (outer_shape[0], inner_shape[0], outer_shape[1], ...); shapes have equal rank "
      "(Axe, 2.4).\n\n"
      "Raises:\n    helve.ShapeError, helve.DivisibilityError: shapes that do not group their layouts.\n"
      "    helve.UnsupportedError: a swizzled outer, or a swizzled inner whose span is no multiple of its period.");
  module.def("direct_sum", on_shapes(&direct_sum), py::arg("left"), py::arg("left_shape"), py::arg("right"),
             py::arg("right_shape"),
             "(x, y) goes to left(x) + right(y) on the interleaved domain (Axe, appendix F).\n\n"
             "Raises:\n    like `tile`; helve.UnsupportedError for any swizzle.");
  const std::tuple<const char*, decltype(&outer_of), const char*> recognisers[] = {
      {"outer_of", &outer_of, "X with tile(X, whole_shape / known_shape, known, known_shape) equal to `whole`"},
      {"inner_of", &inner_of, "X with tile(known, known_shape, X, whole_shape / known_shape) equal to `whole`"},
      {"left_of", &left_of, "X with direct_sum(X, whole_shape / known_shape, known, known_shape) equal to `whole`"},
      {"right_of", &right_of, "X with direct_sum(known, known_shape, X, whole_shape / known_shape) equal to `whole`"}};
  for (const auto& [name, function, law] : recognisers) {
    std::string text = fmt::format(
        "{}, or None when there is none. Exact.\n\nRaises:\n    helve.ShapeError: shapes that "
        "are not admitted.\n    helve.UnsupportedError: swizzles that would have to be compared.",
        law);
    module.def(name, on_shapes(function), py::arg("whole"), py::arg("whole_shape"), py::arg("known"),
               py::arg("known_shape"), text.c_str());
  }
}

}  // namespace helve::python
