// The functions of helve.cute.
// Each is bound once for layouts and, where it acts on the domain alone, once for composed layouts.
#include "bindings.h"
#include "cute_casters.h"
#include "helve/layout/cute/coordinates.h"
#include "helve/ir/expr/dtype.h"
#include "helve/support/diagnostic.h"

namespace helve::python {

namespace py = pybind11;

namespace {

using cute::ComposedLayout;
using cute::IntTuple;
using cute::Layout;
using cute::Tiler;

/// A shape, or the shape of a layout.
IntTuple shape_of(py::handle source) {
  if (py::isinstance<LayoutObject>(source)) return source.cast<const LayoutObject&>().layout.shape();
  if (py::isinstance<ComposedLayout>(source)) return source.cast<const ComposedLayout&>().inner().shape();
  if (py::isinstance<cute::CoordinateLayout>(source)) return source.cast<const cute::CoordinateLayout&>().shape();
  IntTuple shape;
  if (append_tuple(shape, source, false)) return shape;
  throw py::type_error("expected a layout, an integer or a nested tuple of integers");
}

py::list modes_of(const py::args& args) {
  if (args.size() == 1 && !py::isinstance<LayoutObject>(args[0])) return py::list(args[0]);
  return py::list(args);
}

constexpr const char* kMakeLayout = "make_layout takes layouts, or a shape and strides";

bool is_shape(py::handle source) { return PyNumber_Check(source.ptr()) || PyTuple_Check(source.ptr()); }

/// make_layout(L0, L1, ...), make_layout(iterable of layouts), make_layout(shape[, stride]).
Layout make_layout(const py::args& args) {
  bool layouts = args.size() == 0 || py::isinstance<LayoutObject>(args[0]) || !is_shape(args[0]);
  if (!layouts && args.size() == 1 && PyTuple_Check(args[0].ptr()) && py::len(args[0]) > 0) {
    layouts = py::isinstance<LayoutObject>(args[0].cast<py::tuple>()[0]);
  }
  if (layouts) {
    std::vector<Layout> modes;
    for (py::handle mode : modes_of(args)) {
      if (written_with_numbers(mode)) refuse_argument(mode, "layout", kMakeLayout);
      if (!py::isinstance<LayoutObject>(mode)) throw py::type_error(kMakeLayout);
      modes.push_back(mode.cast<const LayoutObject&>().layout);
    }
    return cute::make_layout(modes);
  }
  if (args.size() > 2) throw py::type_error(kMakeLayout);
  const auto tuple_of = [](py::handle source) {
    IntTuple tuple;
    if (!append_tuple(tuple, source, false)) throw py::type_error(kMakeLayout);
    return tuple;
  };
  if (args.size() == 1 || args[1].is_none()) return Layout(tuple_of(args[0]));
  return Layout(tuple_of(args[0]), tuple_of(args[1]));
}

/// A warning when modes that were repeated each for itself overlap.
void warn_of_overlap(const char* operation, const Layout& block, const Tiler& tiler, const Layout& result) {
  if (!std::holds_alternative<cute::TilerTuple>(tiler.value)) return;
  std::optional<cute::Collision> found;
  try {
    if (cute::find_collision(cute::filter(block))) return;
    found = cute::find_collision(cute::filter(result));
  } catch (const UnsupportedError&) {  // too many steps to know
    return;
  }
  if (!found) return;
  Diagnostic diagnostic{Code::CuteProductOverlap, {}, {{"operation", operation},
                                                       {"result", cute::to_string(cute::filter(result))},
                                                       {"first", found->first},
                                                       {"second", found->second},
                                                       {"offset", found->offset}}, {}, {}};
  py::object warning = py::module_::import("helve.errors").attr("warning_from")(diagnostic);
  py::module_::import("warnings").attr("warn")(warning);
}

/// A function of a layout and a tiler, also for composed layouts.
template <Layout (*apply)(const Layout&, const Tiler&)>
void bind_tiling(py::module_& m, const char* name, const char* documentation) {
  m.def(name, [](const Layout& a, const Tiler& tiler) { return apply(a, tiler); }, py::arg("layout"),
        py::arg("tiler"), documentation);
  m.def(name, [](const ComposedLayout& a, const Tiler& tiler) { return a.with_inner(apply(a.inner(), tiler)); },
        py::arg("layout"), py::arg("tiler"));
}

template <Layout (*apply)(const Layout&, const Tiler&)>
void bind_product(py::module_& m, const char* name, const char* documentation) {
  auto multiply = [name](const Layout& a, const Tiler& tiler) {
    Layout result = apply(a, tiler);
    warn_of_overlap(name, a, tiler, result);
    return result;
  };
  m.def(name, multiply, py::arg("block"), py::arg("tiler"), documentation);
  m.def(name, [multiply](const ComposedLayout& a, const Tiler& tiler) {
    return a.with_inner(multiply(a.inner(), tiler));
  }, py::arg("block"), py::arg("tiler"));
}

template <Layout (*apply)(const Layout&, const Layout&)>
void bind_blocks(py::module_& m, const char* name, const char* documentation) {
  m.def(name, [](const Layout& a, const Layout& b) { return apply(a, b); }, py::arg("block"), py::arg("tiler"),
        documentation);
  m.def(name, [](const ComposedLayout& a, const Layout& b) { return a.with_inner(apply(a.inner(), b)); },
        py::arg("block"), py::arg("tiler"));
}

/// A function of a layout alone, also for the inside of composed layouts.
template <Layout (*apply)(const Layout&)>
void bind_unary(py::module_& m, const char* name, const char* documentation, bool composed) {
  m.def(name, [](const Layout& layout) { return apply(layout); }, py::arg("layout"), documentation);
  if (composed) {
    m.def(name, [](const ComposedLayout& layout) { return layout.with_inner(apply(layout.inner())); },
          py::arg("layout"));
  }
}

void bind_tuples(py::module_& m) {
  m.def("flatten", [](const IntTuple& tuple) {
    return tuple.is_leaf() ? IntTuple::flat(tuple.leaves.begin(), tuple.leaves.end()) : cute::flatten(tuple);
  }, py::arg("tuple"), "The leaves of a tuple, from left to right; of a layout, its leaves in one level.");
  bind_unary<cute::flatten>(m, "flatten", "", true);
  m.def("product", [](py::handle tuple) { return cute::product(shape_of(tuple)); }, py::arg("tuple"),
        "The product of all leaves. Raises UnsupportedError beyond 64 bits.");
  m.def("product_each", [](py::handle tuple) { return cute::product_each(shape_of(tuple)); }, py::arg("tuple"),
        "The products of the entries.");
  m.def("prefix_product", &cute::prefix_product, py::arg("shape"),
        "Exclusive products from the left, in the shape's profile: the strides of a compact layout.");
  m.def("inner_product", &cute::inner_product, py::arg("a"), py::arg("b"),
        "The sum of the products of leaves. Raises ShapeError unless the tuples are congruent.");
  m.def("shape_div", &cute::shape_div, py::arg("a"), py::arg("b"),
        "Division of shapes, entry by entry, or from the left by an integer: shape_div((4,5,6), 40) is (1,1,3).\n\n"
        "Raises DivisibilityError where of two integers neither divides the other.");
  m.def("ceil_div", [](py::handle shape, const Layout& tiler) { return cute::ceil_div(shape_of(shape), tiler); },
        py::arg("shape"), py::arg("tiler"), "How many tiles cover the shape: shape(complement(tiler, shape)).");
  m.def("ceil_div", [](const IntTuple& a, const IntTuple& b) { return cute::ceil_div(a, b); }, py::arg("a"),
        py::arg("b"));
  auto predicate = [&](const char* name, bool (*test)(const IntTuple&, const IntTuple&), const char* documentation) {
    m.def(name, [test](py::handle a, py::handle b) { return test(shape_of(a), shape_of(b)); }, py::arg("a"),
          py::arg("b"), documentation);
  };
  predicate("congruent", cute::congruent, "Whether two shapes have equal structure. Layouts count by their shapes.");
  predicate("weakly_congruent", cute::weakly_congruent,
            "Whether `b` refines the structure of `a`: where `a` has an integer, `b` has anything.");
  predicate("compatible", cute::compatible,
            "Whether every coordinate into `a` is one into `b`: at each leaf of `a`, `b` has as many elements.");
  predicate("weakly_compatible", cute::weakly_compatible,
            "Whether at each leaf of `a`, `b` has a multiple of as many elements.");
  m.def("evenly_divides", [](py::handle shape, const Tiler& tiler) {
    return cute::evenly_divides(shape_of(shape), tiler);
  }, py::arg("shape"), py::arg("tiler"), "Whether the tiler cuts the shape into equal tiles with nothing left over.");
}

void bind_coordinates(py::module_& m) {
  m.def("crd2idx", [](const Coordinate& coordinate, const IntTuple& shape, const std::optional<IntTuple>& stride) {
    return stride ? cute::crd2idx(coordinate.tuple, shape, *stride) : cute::crd2idx(coordinate.tuple, shape);
  }, py::arg("crd"), py::arg("shape"), py::arg("stride") = py::none(),
        "The colexicographic index of a coordinate, or its offset by strides; integers stand for whole tuples.\n\n"
        "Raises ShapeError, BoundsError outside the shape (only the last mode may be exceeded).");
  m.def("crd2idx", [](const Coordinate& coordinate, const Layout& layout) { return layout(coordinate.tuple); },
        py::arg("crd"), py::arg("layout"));
  m.def("idx2crd", [](const IntTuple& index, const IntTuple& shape, const std::optional<IntTuple>& stride) {
    return stride ? cute::idx2crd(index, shape, *stride) : cute::idx2crd(index, shape);
  }, py::arg("idx"), py::arg("shape"), py::arg("stride") = py::none(),
        "The natural coordinate of an index, inverse of crd2idx on [0, size); with strides, of an offset.\n\n"
        "Raises BoundsError; InjectivityError unless the strides are compact, in any order.");
  m.def("crd2crd", &cute::crd2crd, py::arg("crd"), py::arg("target"), py::arg("source"),
        "A coordinate of the shape `source` as one of `target`.");
  m.def("slice_", [](const Coordinate& crd, const Layout& layout) { return cute::slice(crd.tuple, layout); },
        py::arg("crd"), py::arg("layout"),
        "The modes at None, one level up: slice_((1, None), L). Raises ShapeError, BoundsError.");
  m.def("slice_", [](const Coordinate& crd, const ComposedLayout& layout) { return cute::slice(crd.tuple, layout); },
        py::arg("crd"), py::arg("layout"));
  m.def("slice_", [](const Coordinate& crd, const IntTuple& tuple) { return cute::slice(crd.tuple, tuple); },
        py::arg("crd"), py::arg("tuple"));
  m.def("dice", [](const Coordinate& crd, const Layout& layout) { return cute::dice(crd.tuple, layout); },
        py::arg("crd"), py::arg("layout"), "The modes that are not at None. Raises ShapeError.");
  m.def("dice", [](const Coordinate& crd, const IntTuple& tuple) { return cute::dice(crd.tuple, tuple); },
        py::arg("crd"), py::arg("tuple"));
  m.def("slice_and_offset", [](const Coordinate& crd, const Layout& layout) {
    return cute::slice_and_offset(crd.tuple, layout);
  }, py::arg("crd"), py::arg("layout"), "The slice, and the offset of the fixed entries.");
}

void bind_structure(py::module_& m) {
  m.def("make_layout", &make_layout,
        "make_layout(L0, L1, ...), make_layout(iterable of layouts): the modes side by side.\n"
        "make_layout(shape[, stride]): Layout(shape, stride).");
  m.def("make_right_layout", &cute::make_right_layout, py::arg("shape"), "Compact, right mode fastest.");
  m.def("make_ordered_layout", &cute::make_ordered_layout, py::arg("shape"), py::arg("order"),
        "Compact, in the order given: a smaller number is faster.\n\n"
        "Raises ShapeError, InjectivityError when two modes of extent above 1 have one place.");
  bind_unary<cute::make_layout_like>(m, "make_layout_like",
                                     "Compact, with the shape and the order of the strides; stride 0 stays.", false);
  bind_unary<cute::make_fragment_like>(m, "make_fragment_like",
                                       "Compact: mode 0 first, then the other modes in the order of their strides.",
                                       false);
  m.def("unflatten", &cute::unflatten, py::arg("layout"), py::arg("profile"),
        "The leaves in the structure of `profile`. Raises ShapeError.");
  m.def("group", [](const Layout& a, ModeNumber begin, ModeNumber end) { return cute::group(a, begin, end); },
        py::arg("layout"), py::arg("begin"), py::arg("end"),
        "Modes [begin, end) as one. Raises BoundsError.");
  m.def("group", [](const ComposedLayout& a, ModeNumber begin, ModeNumber end) {
    return a.with_inner(cute::group(a.inner(), begin, end));
  }, py::arg("layout"), py::arg("begin"), py::arg("end"));
  m.def("take", [](const Layout& a, ModeNumber begin, ModeNumber end) { return cute::take(a, begin, end); },
        py::arg("layout"), py::arg("begin"), py::arg("end"),
        "Modes [begin, end). Raises BoundsError.");
  m.def("select", [](const Layout& a, const ModeNumbers& modes) { return cute::select(a, modes); }, py::arg("layout"),
        py::arg("modes"), "The modes with these numbers.");
  m.def("append", [](const Layout& a, ModeNumber rank, const Layout& mode) { return cute::append(a, rank, mode); },
        py::arg("layout"), py::arg("rank"), py::arg("mode") = Layout(),
        "With `mode` at the right end, up to `rank` modes.");
  m.def("prepend", [](const Layout& a, ModeNumber rank, const Layout& mode) { return cute::prepend(a, rank, mode); },
        py::arg("layout"), py::arg("rank"), py::arg("mode") = Layout(),
        "With `mode` at the left end, up to `rank` modes.");
  m.def("replace", [](const Layout& a, ModeNumber i, const Layout& mode) { return cute::replace(a, i, mode); },
        py::arg("layout"), py::arg("i"), py::arg("mode"), "With mode i replaced.");
}

void bind_core(py::module_& m) {
  bind_unary<cute::coalesce>(m, "coalesce", "The shortest flat layout with the same values on [0, size); with a "
                                            "profile, for each of its entries apart. Raises ShapeError.", true);
  m.def("coalesce", [](const Layout& layout, const std::optional<IntTuple>& profile) {
    return profile ? cute::coalesce(layout, *profile) : cute::coalesce(layout);
  }, py::arg("layout"), py::arg("profile"));
  bind_unary<cute::filter_zeros>(m, "filter_zeros", "Modes of stride 0 get extent 1.", true);
  bind_unary<cute::filter>(m, "filter", "Neither modes of stride 0 nor of extent 1, coalesced; with a profile, for "
                                        "each of its entries apart.", false);
  m.def("filter", [](const Layout& layout, const std::optional<IntTuple>& profile) {
    return profile ? cute::filter(layout, *profile) : cute::filter(layout);
  }, py::arg("layout"), py::arg("profile"));
  m.def("composition", [](const Layout& a, const Layout& b) { return cute::composition(a, b); }, py::arg("a"),
        py::arg("b"),
        "R with R(c) = a(b(c)) for every coordinate c of b, of b's shape; a tuple composes mode by mode.\n\n"
        "Answers whenever such a layout exists. Raises DivisibilityError with a coordinate where none has the value.");
  m.def("composition", [](const Layout& a, const Tiler& b) { return cute::composition(a, b); }, py::arg("a"),
        py::arg("b"));
  m.def("composition", [](const ComposedLayout& a, const Tiler& b) { return cute::composition(a, b); }, py::arg("a"),
        py::arg("b"));
  m.def("composition", [](const Layout& a, const ComposedLayout& b) { return cute::composition(a, b); }, py::arg("a"),
        py::arg("b"));
  m.def("composition", [](const Swizzle& a, const Layout& b) { return cute::composition(a, b); }, py::arg("a"),
        py::arg("b"));
  m.def("composition", [](const Swizzle& a, const ComposedLayout& b) { return cute::composition(a, b); },
        py::arg("a"), py::arg("b"));
  m.def("composition", [](const Swizzle& a, const Swizzle& b) { return cute::composition(a, b); }, py::arg("a"),
        py::arg("b"));
  m.def("composition", [](const Layout& a, const Swizzle& b) { return cute::composition(a, b); }, py::arg("a"),
        py::arg("b"));
  m.def("complement", [](const Layout& layout, py::handle bound) {
    return cute::complement(layout, cute::product(shape_of(bound)));
  }, py::arg("layout"), py::arg("cosize_hi") = 1,
        "The ordered layout of what `layout` leaves out of [0, cosize_hi): together they are injective.\n\n"
        "Raises InjectivityError, DivisibilityError when modes interleave, UnsupportedError for negative strides.");
  bind_unary<cute::right_inverse>(m, "right_inverse",
                                  "R with layout(R(i)) = i for i < size(R): the longest chain of whole modes.", false);
  m.def("right_inverse", [](const ComposedLayout& layout) { return cute::right_inverse(layout); }, py::arg("layout"));
  bind_unary<cute::left_inverse>(m, "left_inverse",
                                 "R with layout(R(layout(i))) = layout(i), and R(layout(i)) = i where it is injective."
                                 "\n\nRaises DivisibilityError unless the sorted strides divide each other, "
                                 "InjectivityError, UnsupportedError.", false);
  m.def("left_inverse", [](const ComposedLayout& layout) { return cute::left_inverse(layout); }, py::arg("layout"));
  m.def("max_common_layout", [](const Layout& a, const Layout& b) { return cute::max_common_layout(a, b); },
        py::arg("a"), py::arg("b"), "R with a(R(i)) = b(R(i)) = i, the longest that begins right_inverse(b).");
  m.def("max_common_layout", [](const ComposedLayout& a, const Layout& b) { return cute::max_common_layout(a, b); },
        py::arg("a"), py::arg("b"));
  m.def("max_common_layout", [](const Layout& a, const ComposedLayout& b) { return cute::max_common_layout(b, a); },
        py::arg("a"), py::arg("b"));
  m.def("max_common_vector", [](const Layout& a, const Layout& b) { return cute::max_common_vector(a, b); },
        py::arg("a"), py::arg("b"), "size(max_common_layout(a, b)): the widest vector that both keep together.");
  m.def("max_common_vector", [](const ComposedLayout& a, const Layout& b) {
    return cute::max_common_layout(a, b).size();
  }, py::arg("a"), py::arg("b"));
  m.def("max_common_vector", [](const Layout& a, const ComposedLayout& b) {
    return cute::max_common_layout(b, a).size();
  }, py::arg("a"), py::arg("b"));
  bind_unary<cute::nullspace>(m, "nullspace", "K with layout(K(i)) = 0, of the broadcast modes.", false);
  m.def("domain_distribute", [](py::handle shape, Whole n) { return cute::domain_distribute(shape_of(shape), n); },
        py::arg("shape"), py::arg("n"),
        "An ordered layout whose size divides n and that divides the shape: gcd by gcd from the left.");
}

void bind_tilings(py::module_& m) {
  bind_tiling<cute::logical_divide>(m, "logical_divide",
                                    "(tile, rest): layout o (tiler, complement(tiler, size(layout))); a tuple divides "
                                    "mode by mode.\n\nRaises what composition and complement raise, and "
                                    "DivisibilityError when the tile has gaps.");
  bind_tiling<cute::zipped_divide>(m, "zipped_divide", "((tile modes), (rest modes)).");
  bind_tiling<cute::tiled_divide>(m, "tiled_divide", "((tile modes), rest modes...).");
  bind_tiling<cute::flat_divide>(m, "flat_divide", "(tile modes..., rest modes...).");
  bind_product<cute::logical_product>(m, "logical_product",
                                      "(block, copies): a copy of the block for every element of the tiler; a tuple "
                                      "multiplies mode by mode, with a warning when the results overlap.");
  bind_product<cute::zipped_product>(m, "zipped_product", "((block modes), (copy modes)).");
  bind_product<cute::tiled_product>(m, "tiled_product", "((block modes), copy modes...).");
  bind_product<cute::flat_product>(m, "flat_product", "(block modes..., copy modes...).");
  bind_blocks<cute::blocked_product>(m, "blocked_product",
                                     "Mode i is (mode i of the block, mode i of the copies): blocks side by side.");
  bind_blocks<cute::raked_product>(m, "raked_product",
                                   "Mode i is (mode i of the copies, mode i of the block): blocks interleaved.");
  m.def("tile_to_shape", &cute::tile_to_shape, py::arg("block"), py::arg("shape"), py::arg("order") = py::none(),
        "Copies of the block up to a shape, left mode first or in `order`. Raises DivisibilityError, ShapeError.");
  m.def("tile_to_shape", [](const ComposedLayout& a, const IntTuple& shape, const std::optional<IntTuple>& order) {
    return a.with_inner(cute::tile_to_shape(a.inner(), shape, order));
  }, py::arg("block"), py::arg("shape"), py::arg("order") = py::none());
  m.def("local_tile", [](const Layout& layout, const Tiler& tiler, const Coordinate& coordinate) {
    return cute::local_tile(layout, tiler, coordinate.tuple);
  }, py::arg("layout"), py::arg("tiler"), py::arg("coord"),
        "(tile, offset): the tile at a coordinate of the rest; rest modes at None follow those of the tile.");
  m.def("local_partition", [](const Layout& layout, const Layout& threads, Whole thread) {
    return cute::local_partition(layout, threads, thread);
  }, py::arg("layout"), py::arg("thr_layout"), py::arg("thr_idx"),
        "(layout, offset) of what one thread gets: one element of every tile of the threads' shape.\n\n"
        "Raises BoundsError for a thread that is not there, InjectivityError when the threads are not compact.");
  for (const char* name : {"make_tv_layout", "make_layout_tv"}) {
    m.def(name, &cute::make_tv_layout, py::arg("thr_layout"), py::arg("val_layout"),
          "(tiler_mn, layout_tv): the tile that threads and values cover, and (thread, value) -> index in it.\n\n"
          "Raises InjectivityError unless both layouts are compact.");
  }
}

int64_t bits_of(const std::string& dtype) {
  std::optional<DType> found = parse_dtype(dtype);
  constexpr const char* remedy = "give the name of a dtype, as \"float16\", or its width in bits";
  if (!found) refuse_argument(py::str(dtype), "dtype", remedy);
  return found->bits;
}

/// upcast, downcast and recast of one kind of map.
template <class Map>
void bind_units(py::module_& m, const char* up, const char* down, const char* both) {
  m.def("upcast", [](const Map& map, Whole n) { return cute::upcast(map, n); }, py::arg("layout"), py::arg("n"), up);
  m.def("downcast", [](const Map& map, Whole n) { return cute::downcast(map, n); }, py::arg("layout"), py::arg("n"),
        down);
  for (const char* name : {"recast", "recast_layout"}) {
    m.def(name, [](const Map& map, Whole from, Whole to) { return cute::recast(map, from, to); },
          py::arg("layout"), py::arg("old"), py::arg("new"), both);
    m.def(name, [](const Map& map, const std::string& from, const std::string& to) {
      return cute::recast(map, bits_of(from), bits_of(to));
    }, py::arg("layout"), py::arg("old"), py::arg("new"));
  }
}

void bind_display(py::module_& m) {
  using Path = ModeNumbers;
  m.def("get", [](const Layout& layout, const py::args& path) {
    Path modes;
    for (py::handle i : path) modes.push_back(read_mode(i));
    return layout.mode(modes);
  }, py::arg("layout"), "The mode at a path: get(L, i, j) is mode j of mode i. Raises BoundsError.");
  m.def("size", [](const Layout& layout) { return layout.size(); }, py::arg("layout"),
        "The number of elements, of the mode at the path `mode` when it is given. Raises BoundsError.");
  m.def("size", [](const ComposedLayout& layout) { return layout.size(); }, py::arg("layout"));
  m.def("size", [](const Swizzle& swizzle) { return cute::size(swizzle); }, py::arg("layout"));
  m.def("size", [](const IntTuple& shape) { return cute::product(shape); }, py::arg("shape"));
  m.def("size", [](py::handle layout, const Path& mode) { return Layout(shape_of(layout)).mode(mode).size(); },
        py::arg("layout"), py::arg("mode"));
  m.def("cosize", [](const Layout& layout) { return layout.cosize(); }, py::arg("layout"),
        "The span of the offsets, strides by their absolute values; of the mode at the path `mode` when it is given.");
  m.def("cosize", [](const ComposedLayout& layout) { return layout.cosize(); }, py::arg("layout"));
  m.def("cosize", [](const Swizzle& swizzle) { return cute::size(swizzle); }, py::arg("layout"));
  m.def("cosize", [](const Layout& layout, const Path& mode) { return layout.mode(mode).cosize(); },
        py::arg("layout"), py::arg("mode"));
  m.def("rank", [](py::handle layout, const Path& mode) { return Layout(shape_of(layout)).mode(mode).rank(); },
        py::arg("layout"), py::arg("mode") = Path(), "The number of modes at the top, or at a path; 1 for an integer.");
  m.def("depth", [](py::handle layout, const Path& mode) { return Layout(shape_of(layout)).mode(mode).depth(); },
        py::arg("layout"), py::arg("mode") = Path(), "The levels of nesting; 0 for an integer.");
  m.def("affine", [](const ComposedLayout& layout) { return cute::affine(layout); }, py::arg("layout"),
        "(layout, offset) with the same values, when there are such, else None. Raises UnsupportedError when the "
        "domain is too large to look at.");
  m.def("format_layout", [](const Layout& layout) { return cute::print_layout(layout); }, py::arg("layout"),
        "The text that print_layout prints.");
  m.def("format_layout", [](const ComposedLayout& layout) { return cute::print_layout(layout); }, py::arg("layout"));
  auto print = [](const std::string& text) { py::print(text, py::arg("end") = ""); };
  m.def("print_layout", [print](const Layout& layout) { print(cute::print_layout(layout)); }, py::arg("layout"),
        "Prints the table of a layout of rank 2. Raises ShapeError for another rank.");
  m.def("print_layout", [print](const ComposedLayout& layout) { print(cute::print_layout(layout)); },
        py::arg("layout"));
}

}  // namespace

void bind_cute_algebra(py::module_& module) {
  py::module_ m = module.def_submodule("cute", "The functions of helve.cute.");
  bind_tuples(m);
  bind_coordinates(m);
  bind_structure(m);
  bind_core(m);
  bind_tilings(m);
  bind_units<Layout>(m, "Offsets in units of n elements. Raises DivisibilityError.",
                     "Offsets in units of 1 / n element: the mode of stride 1 grows n-fold. Raises DivisibilityError.",
                     "The same memory as elements of another width: bits, or names of dtypes.");
  bind_units<Swizzle>(m, "", "", "");
  bind_units<ComposedLayout>(m, "", "", "");
  bind_display(m);
}

}  // namespace helve::python
