// Products of matrices that stand in registers.
// A layout serves the instruction when its fastest digits are those of one operand of one instruction; the digits above
// number instructions of a warp, on registers, and warps, on threads. Both are listed and compared place by place.
#include "helve/ir/tensor/matrix_product.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "helve/layout/notation.h"
#include "helve/layout/warp.h"
#include "helve/support/diagnostic.h"

namespace helve {

namespace {

constexpr int64_t kThreadsOfRow = 4;  ///< of 8 elements, each with two
constexpr int64_t kLines = 8;  ///< rows of 8 x 8 elements
constexpr int64_t kRegistersC = 4;
int64_t registers_a(const ProductShape& s) { return 4 * s.packed(); }
int64_t registers_b(const ProductShape& s) { return 2 * s.packed(); }

/// Where an operand's part of one instruction stands, of those along one dimension.
struct Place {
  int64_t thread;  ///< the first of its warp
  int64_t reg;
};

/// One dimension of an operand: the digits of one instruction, which are given, below those that number instructions.
struct Dimension {
  int64_t count;  ///< of instructions
  std::vector<Iter> digits;  ///< of one, slowest first
};

const Axis kThread = axes::tx(), kRegister = axes::reg();

/// Rows of 16: halves of 8 lines, on registers `step` apart.
Dimension lines(int64_t extent, int64_t step) {
  return {extent / 16, {{2, step, kRegister}, {kLines, kThreadsOfRow, kThread}}};
}
/// 8 lines.
Dimension eight_lines(int64_t extent) { return {extent / 8, {{kLines, kThreadsOfRow, kThread}}}; }
/// The depth of an instruction: halves, on registers `step` apart, of which each thread of a row has one word.
Dimension depth(const ProductShape& s, int64_t step) {
  Dimension out{s.k / s.depth(), {{2, step, kRegister}, {kThreadsOfRow, 1, kThread}}};
  if (s.packed() > 1) out.digits.push_back({s.packed(), 1, kRegister});
  return out;
}
/// Columns of 8: pairs.
Dimension pairs(int64_t extent) { return {extent / 8, {{kThreadsOfRow, 1, kThread}, {2, 1, kRegister}}}; }

/// The two dimensions of an operand, as it stands in memory.
struct Form {
  Dimension first, second;
  bool turned = false;  ///< the first is the operand's second

  std::vector<int64_t> shape() const {
    std::vector<int64_t> out;
    for (const Dimension* each : {&first, &second}) {
      out.push_back(each->count);
      for (const Iter& digit : each->digits) out.push_back(digit.extent);
    }
    return out;
  }
};

Form form_of(Dimension rows, Dimension columns, bool transposed) {
  return transposed ? Form{std::move(columns), std::move(rows), true}
                    : Form{std::move(rows), std::move(columns), false};
}

Form form_of_a(const ProductShape& s) {
  return form_of(lines(s.m, s.packed()), depth(s, 2 * s.packed()), s.transpose_a);
}
Form form_of_b(const ProductShape& s) { return form_of(depth(s, s.packed()), eight_lines(s.n), s.transpose_b); }
Form form_of_c(const ProductShape& s) { return form_of(lines(s.m, 2), pairs(s.n), false); }

/// Where the parts along a dimension begin; nothing where a digit moves other than by whole warps and instructions.
std::optional<std::vector<Place>> places_of(const Iters& iters, int64_t registers) {
  std::vector<Place> out = {{0, 0}};
  for (const Iter& iter : iters) {
    const bool on_threads = iter.axis == kThread;
    if (!on_threads && iter.axis != kRegister) return std::nullopt;
    if (iter.stride % (on_threads ? kWarp : registers) != 0) return std::nullopt;
    std::vector<Place> finer;
    for (const Place& place : out) {
      for (int64_t i = 0; i < iter.extent; ++i) {
        const int64_t step = i * iter.stride;
        finer.push_back(on_threads ? Place{place.thread + step, place.reg} : Place{place.thread, place.reg + step});
      }
    }
    out = std::move(finer);
  }
  return out;
}

/// The places of an operand's parts along its rows and its columns.
struct Parts {
  std::vector<Place> rows, columns;
};

std::optional<Parts> parts_of(const Layout& layout, const Form& form, int64_t registers) {
  std::optional<GroupedLayout> grouped;
  try {
    grouped = layout.group(form.shape());
  } catch (const LayoutError&) {
    return std::nullopt;
  }
  size_t block = 0;
  std::vector<std::vector<Place>> found;
  for (const Dimension* dimension : {&form.first, &form.second}) {
    std::optional<std::vector<Place>> places = places_of(grouped->block(block++), registers);
    if (!places) return std::nullopt;
    found.push_back(std::move(*places));
    for (const Iter& digit : dimension->digits) {
      const Iters iters = grouped->block(block++);
      if (iters.size() != 1 || !(iters[0] == digit)) return std::nullopt;
    }
  }
  for (const Iter& copy : layout.replica()) {
    if (copy.axis != kThread || copy.stride % kWarp != 0) return std::nullopt;
  }
  if (form.turned) std::swap(found[0], found[1]);
  return Parts{std::move(found[0]), std::move(found[1])};
}

std::set<int64_t> threads_of(const std::vector<Place>& places) {
  std::set<int64_t> out;
  for (const Place& place : places) out.insert(place.thread);
  return out;
}

/// The threads from which copies of the elements begin.
std::set<int64_t> copies_of(const Layout& layout) {
  const std::optional<std::vector<Place>> places = places_of(layout.replica(), 1);
  return threads_of(*places);
}

bool same_threads(const std::vector<Place>& a, const std::vector<Place>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Place& x, const Place& y) { return x.thread == y.thread; });
}

/// The registers of the parts that one warp has, in order, which must be those of every warp; empty where they are not.
std::vector<int64_t> registers_of(const std::vector<Place>& places) {
  std::vector<int64_t> out;
  for (const int64_t thread : threads_of(places)) {
    std::vector<int64_t> own;
    for (const Place& place : places) {
      if (place.thread == thread) own.push_back(place.reg);
    }
    if (out.empty()) out = own;
    if (out != own) return {};
  }
  return out;
}

/// Rows and columns of registers, added up.
std::vector<int64_t> sums(const std::vector<int64_t>& rows, const std::vector<int64_t>& columns) {
  std::vector<int64_t> out;
  for (const int64_t row : rows) {
    for (const int64_t column : columns) out.push_back(row + column);
  }
  return out;
}

/// Iters that number `count` instructions: those of a warp on registers, `step` apart, above the warps.
void number(Iters* out, int64_t count, int64_t warps, int64_t step, int64_t warp_step) {
  if (count / warps > 1) out->push_back({count / warps, step, kRegister});
  if (warps > 1) out->push_back({warps, warp_step, kThread});
}

}  // namespace

std::optional<std::string> uneven(const ProductShape& shape) {
  if (shape.m % kProductRows == 0 && shape.n % kProductColumns == 0 && shape.k % shape.depth() == 0) return {};
  return fmt::format("M, N, K of {} x {} x {} are no multiples of {}, {}, {}", shape.m, shape.n, shape.k, kProductRows,
                     kProductColumns, shape.depth());
}

ProductLayouts product_layouts(const ProductShape& shape, const WarpGrid& warps) {
  HELVE_CHECK(shape.m % (kProductRows * warps.rows) == 0 && shape.n % (kProductColumns * warps.columns) == 0 &&
                  shape.k % shape.depth() == 0,
              "warps with equal parts of a product");
  const int64_t row_step = warps.columns * kWarp, column_step = kWarp;
  const int64_t own_columns = shape.n / kProductColumns / warps.columns, depths = shape.k / shape.depth();
  const int64_t own_a = registers_a(shape), own_b = registers_b(shape);
  const auto layout = [&](const Form& form, const Iters& first, const Iters& second, const Iters& copies) {
    Iters iters;
    for (const Iter& iter : first) iters.push_back(iter);
    for (const Iter& digit : form.first.digits) iters.push_back(digit);
    for (const Iter& iter : second) iters.push_back(iter);
    for (const Iter& digit : form.second.digits) iters.push_back(digit);
    return Layout(iters, copies);
  };
  const auto turned = [&](const Form& form, const Iters& rows, const Iters& columns, const Iters& copies) {
    return form.turned ? layout(form, columns, rows, copies) : layout(form, rows, columns, copies);
  };
  Iters rows_a, depth_a, depth_b, columns_b, rows_c, columns_c, copies_a, copies_b;
  number(&rows_a, shape.m / kProductRows, warps.rows, depths * own_a, row_step);
  number(&depth_a, depths, 1, own_a, 0);
  number(&depth_b, depths, 1, own_columns * own_b, 0);
  number(&columns_b, shape.n / kProductColumns, warps.columns, own_b, column_step);
  number(&rows_c, shape.m / kProductRows, warps.rows, own_columns * kRegistersC, row_step);
  number(&columns_c, shape.n / kProductColumns, warps.columns, kRegistersC, column_step);
  if (warps.columns > 1) copies_a.push_back({warps.columns, column_step, kThread});
  if (warps.rows > 1) copies_b.push_back({warps.rows, row_step, kThread});
  return {turned(form_of_a(shape), rows_a, depth_a, copies_a), turned(form_of_b(shape), depth_b, columns_b, copies_b),
          turned(form_of_c(shape), rows_c, columns_c, {})};
}

std::optional<MatrixProduct> matrix_product(const ProductShape& shape, const ProductLayouts& layouts,
                                            std::string* reason) {
  const auto fails = [&](std::string why) -> std::optional<MatrixProduct> {
    *reason = std::move(why);
    return std::nullopt;
  };
  if (const std::optional<std::string> why = uneven(shape)) return fails(*why);
  const auto other = [&](const char* name, const Layout& layout) {
    return fails(
        fmt::format("{} does not place {} where mma.m16n8k{} takes it", to_string(layout), name, shape.depth()));
  };
  const std::optional<Parts> a = parts_of(layouts.a, form_of_a(shape), registers_a(shape));
  if (!a) return other("A", layouts.a);
  const std::optional<Parts> b = parts_of(layouts.b, form_of_b(shape), registers_b(shape));
  if (!b) return other("B", layouts.b);
  const std::optional<Parts> c = parts_of(layouts.c, form_of_c(shape), kRegistersC);
  if (!c) return other("C", layouts.c);
  if (!layouts.c.replica().empty()) return fails("several threads hold one sum");
  const bool meet = same_threads(a->rows, c->rows) && same_threads(b->columns, c->columns) &&
                    threads_of(a->columns).size() == 1 && threads_of(b->rows).size() == 1 &&
                    copies_of(layouts.a) == threads_of(c->columns) && copies_of(layouts.b) == threads_of(c->rows);
  if (!meet) return fails("a warp does not hold the elements that its sums need");
  const std::vector<int64_t> rows_a = registers_of(a->rows), depth_a = registers_of(a->columns);
  const std::vector<int64_t> depth_b = registers_of(b->rows), columns_b = registers_of(b->columns);
  const std::vector<int64_t> rows_c = registers_of(c->rows), columns_c = registers_of(c->columns);
  for (const auto* each : {&rows_a, &depth_a, &depth_b, &columns_b, &rows_c, &columns_c}) {
    if (each->empty()) return fails("warps hold their parts in different registers");
  }
  return MatrixProduct{static_cast<int64_t>(rows_c.size()),
                       static_cast<int64_t>(columns_c.size()),
                       static_cast<int64_t>(depth_a.size()),
                       sums(rows_a, depth_a),
                       sums(depth_b, columns_b),
                       sums(rows_c, columns_c)};
}

ProductShape with_types(ProductShape shape, DType factor) {
  shape.bits = factor.bits;
  shape.integers = factor.is_data_int();
  return shape;
}

ProductOperands product_operands(const TileOp& op) {
  HELVE_CHECK(op.op == TileOpcode::Mma, "an operation that multiplies no fragments");
  const std::vector<Expr>& shape = op.exprs(op.row().index_of("shape"));
  const auto extent = [&](size_t d) { return *int_value(shape[d]); };
  const size_t first = *op.row().find("layout_A");
  return {
      op.region(0),
      op.region(1),
      op.region(2),
      {op.layout(first), op.layout(first + 1), op.layout(first + 2)},
      with_types({extent(0), extent(1), extent(2), op.transposes(0), op.transposes(1)}, op.region(0).buffer->dtype)};
}

}  // namespace helve
