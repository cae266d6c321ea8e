// Layouts beside other descriptions in Python: banks of shared memory, meshes, bits, CuTe layouts.
// Reports are plain data, so that pictures are drawn from what was counted.
#include <fmt/format.h>

#include "bindings.h"
#include "cute_casters.h"
#include "helve/layout/banks.h"
#include "helve/layout/distribution.h"
#include "helve/layout/from_cute.h"
#include "helve/layout/linear.h"
#include "helve/layout/notation.h"
#include "helve/layout/to_relation.h"
#include "interpreter_lock.h"
#include "layout_casters.h"

namespace helve::python {

namespace py = pybind11;

namespace {

BankAccess read_access(const py::iterable& threads, int64_t width) {
  BankAccess access{{}, width};
  for (py::handle each : threads) {
    if (each.is_none()) {
      access.first.push_back(BankAccess::kInactive);
      continue;
    }
    auto index = read_integer(each);
    if (!index) throw py::type_error("an access lists a flat index, or None, for each thread");
    // -1 stands for None in the core; as an index it is outside like every other negative one.
    access.first.push_back(*index == BankAccess::kInactive ? std::numeric_limits<int64_t>::min() : *index);
  }
  return access;
}

std::string verdict_text(const SwizzleChoice& choice) {
  std::string name = choice.swizzle.identity() ? "no swizzle" : to_string(choice.swizzle);
  std::string text = fmt::format("{}: {}", name, to_string(choice.verdict));
  if (choice.verdict == SwizzleVerdict::Padding) text += fmt::format(", costs {} bytes", choice.padding_bytes);
  return text + fill_template(", depth {depth} (plain {plain}, {padding:element} of padding a row {padded})",
                              {{"depth", choice.depth},
                               {"plain", choice.plain_depth},
                               {"padding", choice.padding},
                               {"padded", choice.padded_depth}});
}

void bind_reports(py::module_& module) {
  py::class_<BankPhase>(module, "BankPhase", "The threads of a warp that are served together.")
      .def_readonly("first_thread", &BankPhase::first_thread)
      .def_readonly("words", &BankPhase::words,
                    "Of each thread, the 4-byte words that it touches; word w is in bank w % 32.")
      .def_readonly("depth", &BankPhase::depth, "Different words in the fullest bank: the steps that the phase takes.")
      .def("table", &bank_table,
           "The phase as text: a row for each 128 bytes, a column for each bank, the threads that touch the word, and "
           "the "
           "depth.")
      .def("__repr__",
           [](const BankPhase& self) {
             return fmt::format("BankPhase(threads {} to {}, depth {})", self.first_thread,
                                self.first_thread + static_cast<int64_t>(self.words.size()) - 1, self.depth);
           })
      .def(py::pickle(
          [](const BankPhase& self) { return py::make_tuple(self.first_thread, self.words, self.depth); },
          [](const py::tuple& state) {
            using Words = std::vector<std::vector<int64_t>>;
            return BankPhase{state[0].cast<int64_t>(), state[1].cast<Words>(), state[2].cast<int64_t>()};
          }));
  py::class_<BankReport>(module, "BankReport", "How an access falls on the banks of shared memory.")
      .def_readonly("phases", &BankReport::phases)
      .def_property_readonly("depth", method(&BankReport::depth),
                             "The depth of the worst phase; 1 is free of conflicts.")
      .def_property_readonly("extra_steps", method(&BankReport::extra_steps), "Steps beyond one a phase.")
      .def("__str__", [](const BankReport& self) {
        std::string text;
        for (const BankPhase& phase : self.phases) text += bank_table(phase);
        return text;
      })
      .def("__repr__",
           [](const BankReport& self) {
             return fill_template("BankReport({phases:phase}, depth {depth})",
                                  {{"phases", static_cast<int64_t>(self.phases.size())}, {"depth", self.depth()}});
           })
      .def(py::pickle([](const BankReport& self) { return py::make_tuple(self.phases); },
                      [](const py::tuple& state) { return BankReport{state[0].cast<std::vector<BankPhase>>()}; }));
  py::class_<SwizzleChoice>(module, "SwizzleChoice",
                            "A swizzle, how it is known to be right, and what padding would give.")
      .def_property_readonly(
          "swizzle",
          [](const SwizzleChoice& self) {
            return self.swizzle.identity() ? std::nullopt : std::optional(self.swizzle);
          },
          "None where none is needed or helps.")
      .def_property_readonly(
          "verdict", [](const SwizzleChoice& self) { return std::string(to_string(self.verdict)); },
          "\"proved\", \"searched\" or \"padding is better\".")
      .def_readonly("depth", &SwizzleChoice::depth, "Of the worst phase, swizzled.")
      .def_readonly("plain_depth", &SwizzleChoice::plain_depth, "The same without a swizzle.")
      .def_readonly("padding", &SwizzleChoice::padding, "Elements a row by which the best padding lengthens rows.")
      .def_readonly("padded_depth", &SwizzleChoice::padded_depth, "The depth with that padding.")
      .def_readonly("padding_bytes", &SwizzleChoice::padding_bytes, "What that padding costs.")
      .def("__str__", &verdict_text)
      .def("__repr__", &verdict_text)
      .def(py::pickle(
          [](const SwizzleChoice& self) {
            return py::make_tuple(self.swizzle, static_cast<int>(self.verdict), self.depth, self.plain_depth,
                                  self.padding, self.padded_depth, self.padding_bytes);
          },
          [](const py::tuple& state) {
            SwizzleChoice choice;
            choice.swizzle = state[0].cast<Swizzle>();
            choice.verdict = static_cast<SwizzleVerdict>(state[1].cast<int>());
            choice.depth = state[2].cast<int64_t>();
            choice.plain_depth = state[3].cast<int64_t>();
            choice.padding = state[4].cast<int64_t>();
            choice.padded_depth = state[5].cast<int64_t>();
            choice.padding_bytes = state[6].cast<int64_t>();
            return choice;
          }));
}

void bind_banks(py::module_& module) {
  bind_reports(module);
  module.def(
      "bank_conflicts",
      [](const Layout& layout, const py::iterable& access, Whole element_bytes, Whole width) {
        return bank_conflicts(layout, read_access(access, width), element_bytes);
      },
      py::arg("layout"), py::arg("access"), py::arg("element_bytes"), py::arg("width") = Whole{1},
      "How an access of a warp falls on the 32 banks of shared memory, 4 bytes each.\n\n"
      "A phase serves 32 threads of 4 bytes or less, 16 of 8, 8 of 16 (ldmatrix: 8 rows of 16 bytes); a word that "
      "several\n"
      "threads touch counts once, for reads and writes (CUDA C++ Programming Guide, shared memory).\n\n"
      "Args:\n"
      "    layout: elements to addresses on `m`, in elements.\n"
      "    access: for each thread the flat index of its first element, or None; beyond 32 threads, further warps.\n"
      "    element_bytes: bytes of an element.\n"
      "    width: elements that a thread moves; `width * element_bytes` is 1, 2, 4, 8 or 16.\n\n"
      "Raises:\n"
      "    helve.ShapeError: a vector that does not lie together or is not aligned, or another number of bytes.\n"
      "    helve.BoundsError: an index outside the layout.");
  module.def(
      "choose_swizzle",
      [](Whole rows, Whole row_stride, Whole element_bytes, Whole width,
         const std::vector<std::pair<py::iterable, Whole>>& others) {
        std::vector<BankAccess> accesses;
        for (const auto& [access, each] : others) accesses.push_back(read_access(access, each));
        const Unlocked unlocked;
        return choose_swizzle(rows, row_stride, element_bytes, width, accesses);
      },
      py::arg("rows"), py::arg("row_stride"), py::arg("element_bytes"), py::arg("width") = Whole{1},
      py::arg("others") = std::vector<std::pair<py::iterable, Whole>>{},
      "A swizzle for a row-major tile of which warps move columns: thread t the `width` elements at row t, from any\n"
      "column that is a multiple of `width`.\n\n"
      "Without `others`, for vectors of 4 bytes or more, the answer is a closed form that is free of conflicts for "
      "every\n"
      "row stride, aligned group of rows and column (\"proved\"). Else every swizzle that keeps vectors together and "
      "the\n"
      "tile in its place is tried (\"searched\"), and compared with longer rows (\"padding is better\").\n\n"
      "Args:\n"
      "    rows, row_stride: the tile, in elements.\n"
      "    element_bytes, width: as for `bank_conflicts`.\n"
      "    others: further accesses of the tile: (flat indices row * row_stride + column, width).\n\n"
      "Raises:\n"
      "    helve.ShapeError: rows that do not keep vectors aligned, a tile beyond the limit, what bank_conflicts "
      "refuses.\n"
      "    helve.BoundsError: no rows, or rows or vectors of no elements.");
}

std::vector<MeshAxis> mesh_axes(const std::vector<std::string>& names, const Integers& extents) {
  std::vector<MeshAxis> mesh;
  for (size_t a = 0; a < names.size(); ++a) mesh.push_back({Axis::make(names[a], AxisKind::Device), extents.at(a)});
  return mesh;
}

void bind_distribution(py::module_& module) {
  module.def("flatten_index", [](const Integers& coordinate, const Integers& shape) {
    return flatten(coordinate, shape);
  }, py::arg("coordinate"), py::arg("shape"),
             "The row-major flat index of a coordinate. Raises helve.ShapeError, helve.BoundsError.");
  py::class_<Distribution>(module, "Distribution", "Where the elements of a tensor live on a mesh; see helve.dist.")
      .def(py::init([](const std::vector<std::string>& levels, const Integers& shape,
                       const std::vector<std::string>& names, const Integers& extents) {
             return distribute(levels, shape, mesh_axes(names, extents));
           }),
           py::arg("levels"), py::arg("shape"), py::arg("names"), py::arg("extents"))
      .def_property_readonly("notation", [](const Distribution& self) { return notation_of(self); })
      .def_static("of_layout", [](const Layout& layout, const Integers& shape, const std::vector<std::string>& names,
                                  const Integers& extents) {
        return distribution_of(layout, shape, mesh_axes(names, extents));
      }, py::arg("layout"), py::arg("shape"), py::arg("names"), py::arg("extents"))
      .def_readonly("domain", &Distribution::domain)
      .def_readonly("block", &Distribution::block)
      .def_readonly("layout", &Distribution::layout)
      .def_property_readonly("partial",
                             [](const Distribution& self) {
                               py::dict operators;
                               for (const Partial& each : self.partial) {
                                 operators[axis_object(each.axis)] = std::string(to_string(each.op));
                               }
                               return operators;
                             })
      .def_property_readonly("cut",
                             [](const Distribution& self) {
                               std::vector<std::vector<Axis>> axes(self.cut.size());
                               for (size_t d = 0; d < axes.size(); ++d) {
                                 for (const MeshAxis& each : self.cut[d]) axes[d].push_back(each.axis);
                               }
                               return axes;
                             })
      .def(
          "part",
          [](const Distribution& self, const Integers& device) -> py::object {
            auto part = self.part(device);
            return part ? py::object(py::make_tuple(part->begin, part->extents)) : py::none();
          },
          py::arg("device"));
}

void bind_bits(py::class_<Layout>& layout) {
  layout
      .def(
          "to_bases",
          [](const Layout& self, const Integers& shape) {
            py::dict result;
            for (const auto& [axis, columns] : to_bases(self, shape)) {
              py::list bits;
              for (const auto& column : columns) bits.append(py::tuple(py::cast(column)));
              result[py::cast(axis)] = bits;
            }
            return result;
          },
          py::arg("shape"),
          "The layout as a linear map over bits, as Triton states it (arXiv 2505.23819): for each axis and each bit of "
          "its\ncoordinate, lowest first, the coordinate in `shape` that it contributes by XOR; zeros are replicas.\n\n"
          "Raises:\n    helve.UnsupportedError: extents that are no powers of two, sums that carry, an offset, places "
          "without\n        an element or with two.\n    helve.ShapeError: a shape that is not admitted.")
      .def_static("from_bases", [](const std::map<Axis, IntegerLists>& bases, const Integers& shape) {
                    LinearBases columns;
                    for (const auto& [axis, bits] : bases) columns[axis].assign(bits.begin(), bits.end());
                    return from_bases(columns, shape);
                  }, py::arg("bases"), py::arg("shape"),
                  "The layout over `shape` that `to_bases` would give as `bases`, swizzled where it must be.\n\n"
                  "Args:\n    bases: {axis: coordinates, one for each bit}.\n    shape: extents, powers of two.\n\n"
                  "Raises:\n    helve.UnsupportedError: bits that are no layout; the message names them.")
      .def(
          "to_linear",
          [](const Layout& self) {
            LinearLayout linear = to_linear(self);
            return py::make_tuple(linear.index, linear.replica, linear.offset);
          },
          "(index, replica, offset): the points of x are the XOR of `offset`, of `index[k]` over the bits k of x, and "
          "of "
          "any\nsubset of `replica`; each a {axis: coordinate}.\n\n"
          "Raises:\n    helve.UnsupportedError: extents that are no powers of two, or sums that carry.")
      .def_static(
          "from_linear",
          [](std::vector<Point> index, std::vector<Point> replica, Point offset) {
            return from_linear({std::move(index), std::move(replica), std::move(offset)});
          },
          py::arg("index"), py::arg("replica") = std::vector<Point>{}, py::arg("offset") = Point{},
          "The layout with these bits, the inverse of `to_linear`.\n\n"
          "Raises:\n    helve.UnsupportedError: bits that are no layout under any swizzle.");
}

void bind_cute_forms(py::class_<Layout>& layout) {
  layout
      .def(
          "to_relation", [](const Layout& self, const Integers& shape) { return relation_text(self, shape); },
          py::arg("shape"),
          "The layout over `shape` as a relation in isl's notation, a line of text for other exact tools: coordinates\n"
          "x0, x1, ... to the coordinates on its axes, which have the axes' names; one image for each replica.\n\n"
          "Raises:\n    helve.ShapeError: a shape that is not admitted.\n"
          "    helve.UnsupportedError: more operations of isl than the limit.")
      .def_static(
          "from_cute",
          [](const py::object& given) {
            if (py::isinstance<cute::ComposedLayout>(given)) return from_cute(given.cast<cute::ComposedLayout&>());
            if (!py::isinstance<LayoutObject>(given)) throw py::type_error("from_cute takes a helve.cute layout");
            return from_cute(given.cast<LayoutObject&>().layout);
          },
          py::arg("layout"),
          "The layout over the sizes of the top modes with the same address on `m` at every coordinate.\n\n"
          "Raises:\n    helve.UnsupportedError: a composed layout whose outside is no swizzle.")
      .def(
          "to_cute",
          [](const Layout& self, const std::optional<Integers>& shape) {
            auto made = to_cute(self, shape.value_or(Integers{{self.size()}}));
            if (auto* plain = std::get_if<cute::Layout>(&made)) return py::cast(*plain);
            return py::cast(std::get<cute::ComposedLayout>(made));
          },
          py::arg("shape") = py::none(),
          "The helve.cute layout with one mode for each dimension of `shape` (one for all of them when None), equal at "
          "every\ncoordinate; composed when swizzled. CuTe's flat index runs from the left, this one's from the "
          "right.\n\n"
          "Raises:\n    helve.UnsupportedError: replicas, other axes than `m`, an offset without a swizzle.\n"
          "    helve.DivisibilityError: the shape does not group the layout.");
}

}  // namespace

void bind_axe_bridges(py::module_& module, py::class_<Layout>& layout) {
  bind_banks(module);
  bind_distribution(module);
  bind_bits(layout);
  bind_cute_forms(layout);
}

}  // namespace helve::python
