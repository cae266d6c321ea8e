// Tile operations of block scope.
// One function a row: gather the operands, compute in the evaluation dtype of the result, scatter.
#include <fmt/format.h>

#include <unordered_map>

#include "helve/ir/tensor/combine.h"
#include "helve/ir/tensor/group_product.h"
#include "helve/ir/tensor/matrix_move.h"
#include "helve/ir/tensor/matrix_product.h"
#include "helve/ir/tensor/ring.h"
#include "helve/layout/warp.h"
#include "helve/support/diagnostic.h"
#include "helve/support/text.h"
#include "rings.h"
#include "tile_op_code.h"

namespace helve::interp {

Operands::Operands(const TileOp& n, Scope& scope)
    : node(&n), row(&n.row()), queue(scope.queue(copy_queue(n))), span(n.span) {
  scope.statement = &n;
  for (size_t i = 0; i < n.operands.size(); ++i) {
    const TileOperand& operand = n.operands[i];
    regions.emplace_back();
    values.emplace_back();
    coords.emplace_back();
    maps.emplace_back();
    if (const Region* r = std::get_if<Region>(&operand)) regions.back().emplace(*r, scope, n.place(i));
    if (const Expr* e = std::get_if<Expr>(&operand)) values.back() = prepare(*e, scope);
    if (const std::vector<Expr>* c = std::get_if<std::vector<Expr>>(&operand)) coords.back() = prepare(*c, scope);
    if (const IndexMap* map = std::get_if<IndexMap>(&operand)) maps.back().emplace(*map, scope);
  }
  scope.statement = nullptr;
}

void require_shape(bool equal, const Operands& op, const std::string& what, const std::vector<int64_t>& left,
                   const std::vector<int64_t>& right) {
  if (equal) return;
  throw UserError(Code::ShapeMismatch, op.span,
                  {{"what", what + " of " + op.operation()}, {"left", shape_text(left)}, {"right", shape_text(right)}});
}

size_t dimension_of(const Operands& op, size_t rank) {
  if (const std::optional<size_t> dim = op.node->dimension(rank)) return *dim;
  throw UserError(Code::BadArgument, op.span,
                  {{"function", op.operation()},
                   {"value", op.node->dim()},
                   {"parameter", "dim"},
                   {"reason", fmt::format("the region has {} dimension{}", rank, rank == 1 ? "" : "s")},
                   {"remedy", "dimensions count from 0, or from -1 backwards"}});
}

Fold fold_of(ReduceKind kind, DType dtype, const Span& span) {
  const DType t = evaluation_dtype(dtype);
  switch (kind) {
    case ReduceKind::Sum: return {Op::Add, t, span};
    case ReduceKind::Prod: return {Op::Mul, t, span};
    case ReduceKind::Max:
    case ReduceKind::AbsMax: return {Op::Max, t, span};
    case ReduceKind::Min: return {Op::Min, t, span};
    case ReduceKind::Any: return {Op::Max, t, span};
    case ReduceKind::All: return {Op::Min, t, span};
  }
  __builtin_unreachable();
}

Scalar identity_of(ReduceKind kind, DType dtype) {
  const Expr constant = identity_imm(kind, dtype);
  const FloatImm* number = as<FloatImm>(constant);
  return number ? of_float(number->value) : of_int(as<IntImm>(constant)->value);
}

namespace {

/// The asynchronous copy that reads, and that writes, or none.
void copy(const Operands& op, Frame& frame, const CopyNumber& reading, const CopyNumber& writing) {
  const auto view = [&](size_t i) {
    return op.node->may_pass_end(i) ? op.regions[i]->view(frame, PastEnd::Padded) : op.regions[i]->view(frame);
  };
  const bool fills = op.node->barriers() && is_ring(*op.node->barriers()->buffer);
  if (fills) fill_slot(op, frame);
  if (op.node->multicast() > 1) share_copy(op, frame);
  const View src = view(0), dst = view(1);
  require_shape(squeezed(src.shape()) == squeezed(dst.shape()), op, "src and dst", src.shape(), dst.shape());
  const std::optional<size_t> given = op.row->find("pad");
  const Scalar pad = given ? op.values[*given]->eval(frame) : dst.dtype().is_float() ? of_float(0) : of_int(0);
  const int64_t unit = op.node->is_by_tma() ? kTma : kNoThread;
  if (frame.trace) frame.trace->fly(reading, unit);
  const Elements elements = gather_for(op.region("dst").buffer(), src, dst.dtype(), op.span, pad);
  if (frame.trace) frame.trace->fly(writing, fills ? kRing : unit);
  scatter(dst, elements, dst.dtype(), op.span);
  if (frame.trace) frame.trace->fly({}, kNoThread);
}

void run_copy(const Operands& op, Frame& frame) { copy(op, frame, {}, {}); }

/// A copy that is waited for at once, until it is complete or has read its source.
void run_bulk_copy(const Operands& op, Frame& frame) {
  const bool arrives = op.node->waits_for_sources() && is_global(op.region("dst").buffer());
  copy(op, frame, {}, arrives ? frame.copies.begin_alone(op.queue) : CopyNumber());
}

/// It waits for its commit.
void begin_copy(const Operands& op, Frame& frame) {
  const CopyNumber number = frame.copies.begin(op.queue, op.span);
  copy(op, frame, number, number);
}

void run_copy_async(const Operands& op, Frame& frame) {
  begin_copy(op, frame);
  frame.copies.commit(op.queue, op.span);
}

void run_commit(const Operands& op, Frame& frame) { frame.copies.commit(op.queue, op.span); }
void run_wait(const Operands& op, Frame& frame) {
  frame.copies.wait(op.queue, op.node->pending(), op.node->waits_for_sources());
}

std::vector<Scalar> filled(const View& view, Scalar value) {
  return std::vector<Scalar>(static_cast<size_t>(view.size()), value);
}

/// The array counts nothing yet, which is how a queue begins. Other cores may use it from here on.
void run_mbarrier_init(const Operands& op, Frame& frame) {
  if (is_ring(op.region("barriers").buffer())) begin_ring(op, frame);
  const View array = op.region("barriers").view(frame);
  scatter(array, filled(array, of_int(0)), array.dtype(), op.span);
}

void fill(const Operands& op, Frame& frame, Scalar value) {
  const View dst = op.region("dst").view(frame);
  scatter(dst, filled(dst, value), dst.dtype(), op.span);
}

void run_fill(const Operands& op, Frame& frame) { fill(op, frame, op.value("value").eval(frame)); }

/// Statements of a block run one after the other, whichever threads execute them.
void run_sync_threads(const Operands&, Frame& frame) {
  if (frame.trace) frame.trace->synchronise_threads();
}

void run_sync_warpgroups(const Operands&, Frame& frame) {
  if (frame.trace) frame.trace->synchronise_warpgroups();
}

void run_fence_async(const Operands&, Frame& frame) {
  if (frame.trace) frame.trace->fence();
}

void run_wgmma_fence(const Operands&, Frame& frame) {
  if (frame.trace) frame.trace->fence_registers();
}

/// The register of an element: the position in a fragment of `registers` a thread.
int64_t register_position(const Point& place, int64_t registers) {
  return place.at(axes::tx()) * registers + place.at(axes::reg());
}

void run_load_matrix(const Operands& op, Frame& frame) {
  if (!matrix_operands(*op.node).divided()) return run_copy(op, frame);
  const View src = op.region("src").view(frame);
  const View dst = op.region("dst").view(frame);
  const Layout& layout = op.node->layout(2);
  const Elements from = gather_for(op.region("dst").buffer(), src, dst.dtype(), op.span);
  Elements to{std::vector<Scalar>(static_cast<size_t>(dst.size())), {}};
  for (int64_t element = 0; element < src.size(); ++element) {
    for (const Point& place : layout.apply(element)) {
      copy_block(from, element, 1, to, register_position(place, dst.dims[1].extent));
    }
  }
  scatter(dst, to, dst.dtype(), op.span);
}

void run_store_matrix(const Operands& op, Frame& frame) {
  if (!matrix_operands(*op.node).divided()) return run_copy(op, frame);
  const View src = op.region("src").view(frame);
  const View dst = op.region("dst").view(frame);
  const Layout& layout = op.node->layout(2);
  const Elements from = gather_for(op.region("dst").buffer(), src, dst.dtype(), op.span);
  Elements to{std::vector<Scalar>(static_cast<size_t>(dst.size())), {}};
  for (int64_t element = 0; element < dst.size(); ++element) {
    copy_block(from, register_position(layout.apply(element).front(), src.dims[1].extent), 1, to, element);
  }
  scatter(dst, to, dst.dtype(), op.span);
}

void run_clear(const Operands& op, Frame& frame) {
  fill(op, frame, op.region("dst").buffer().dtype.is_float() ? of_float(0) : of_int(0));
}

/// Products are taken and added in the evaluation dtype of C, k ascending, and rounded once to C.
void run_gemm(const Operands& op, Frame& frame) {
  const View a = op.region("A").view(frame);
  const View b = op.region("B").view(frame);
  const View c = op.region("C").view(frame);
  require_shape(a.dims.size() == 2 && b.dims.size() == 2, op, "A and B", a.shape(), b.shape());
  const bool ta = op.node->transposes(0);
  const bool tb = op.node->transposes(1);
  const int64_t m = a.dims[ta].extent;
  const int64_t k = a.dims[!ta].extent;
  const int64_t n = b.dims[!tb].extent;
  require_shape(b.dims[tb].extent == k, op, "A and B", a.shape(), b.shape());
  require_shape(c.shape() == std::vector<int64_t>{m, n}, op, "A @ B and C", {m, n}, c.shape());
  const DType t = evaluation_dtype(c.dtype());
  const std::vector<Scalar> left = gather(a, t, op.span);
  const std::vector<Scalar> right = gather(b, t, op.span);
  const Scalar zero = identity_of(ReduceKind::Sum, t);
  const bool clear = *op.node->clears();
  std::vector<Scalar> out = clear ? filled(c, zero) : gather(c, t, op.span);
  const Fold add(Op::Add, t, op.span);
  const Fold multiply(Op::Mul, t, op.span);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      Scalar& sum = out[static_cast<size_t>(i * n + j)];
      for (int64_t p = 0; p < k; ++p) {
        const Scalar x = left[static_cast<size_t>(ta ? p * m + i : i * k + p)];
        const Scalar y = right[static_cast<size_t>(tb ? j * k + p : p * n + j)];
        sum = add(sum, multiply(x, y));
      }
    }
  }
  scatter(c, out, t, op.span);
}

/// Where the elements of an operand of a T.mma stand: positions in its fragment, for sums of warp `warp` those that the
/// warp itself holds. The layout is asked once for each element, as there are many products of it.
class ProductOperand {
 public:
  ProductOperand(const View& view, const Layout& layout, bool divided, bool turned, int64_t columns)
      : divided_(divided), turned_(turned), columns_(columns) {
    rows_ = (divided ? layout.size() : view.size()) / std::max<int64_t>(columns, 1);
    if (!divided) return;
    for (int64_t element = 0; element < layout.size(); ++element) {
      copies_.emplace_back();
      for (const Point& place : layout.apply(element)) {
        copies_.back().push_back({place.at(axes::tx()) / kWarp, register_position(place, view.dims[1].extent)});
      }
    }
  }
  int64_t at(int64_t row, int64_t column, int64_t warp) const {
    const int64_t element = turned_ ? column * rows_ + row : row * columns_ + column;
    if (!divided_) return element;
    for (const Copy& copy : copies_[static_cast<size_t>(element)]) {
      if (copy.warp == warp) return copy.position;
    }
    HELVE_FAIL("a warp multiplies by an element that it does not hold");
  }
  /// The warp that holds the element, which has no copies.
  int64_t warp_of(int64_t row, int64_t column) const {
    return divided_ ? copies_[static_cast<size_t>(row * columns_ + column)].front().warp : 0;
  }

 private:
  struct Copy {
    int64_t warp, position;
  };
  std::vector<std::vector<Copy>> copies_;
  int64_t rows_ = 0;
  bool divided_, turned_;
  int64_t columns_;
};

/// As T.gemm: what the tensor cores do with the order of the terms is not the language's.
void run_mma(const Operands& op, Frame& frame) {
  const ProductOperands product = product_operands(*op.node);
  const ProductShape& shape = product.shape;
  const View a = op.region("A").view(frame), b = op.region("B").view(frame), c = op.region("C").view(frame);
  const ProductOperand left(a, product.layouts.a, product.divided(), shape.transpose_a, shape.k);
  const ProductOperand right(b, product.layouts.b, product.divided(), shape.transpose_b, shape.n);
  const ProductOperand sums(c, product.layouts.c, product.divided(), false, shape.n);
  const DType t = c.dtype();
  const std::vector<Scalar> x = gather(a, t, op.span), y = gather(b, t, op.span);
  std::vector<Scalar> out = gather(c, t, op.span);
  const Fold add(Op::Add, t, op.span), multiply(Op::Mul, t, op.span);
  for (int64_t i = 0; i < shape.m; ++i) {
    for (int64_t j = 0; j < shape.n; ++j) {
      const int64_t warp = sums.warp_of(i, j);
      Scalar& sum = out[static_cast<size_t>(sums.at(i, j, warp))];
      for (int64_t k = 0; k < shape.k; ++k) {
        const Scalar factor = x[static_cast<size_t>(left.at(i, k, warp))];
        sum = add(sum, multiply(factor, y[static_cast<size_t>(right.at(k, j, warp))]));
      }
    }
  }
  scatter(c, out, t, op.span);
}

/// The elements of a byte of int4, times a scale: in float32, as loops over them compute.
void run_unpack_int4(const Operands& op, Frame& frame) {
  const View src = op.region("src").view(frame), dst = op.region("dst").view(frame);
  const int64_t byte = gather(src, src.dtype(), op.span)[0].i;
  std::vector<Scalar> out;
  for (const int64_t code : {byte & 15, byte >> 4 & 15}) out.push_back(of_float(code < 8 ? code : code - 16));
  if (op.row->find("scale")) {
    const Scalar scale = gather(op.region("scale").view(frame), kFloat32, op.span)[0];
    const Fold multiply(Op::Mul, kFloat32, op.span);
    for (Scalar& value : out) value = multiply(value, scale);
  }
  scatter(dst, out, kFloat32, op.span);
}

/// A factor of T.wgmma as the instructions read it: for each of the lines and each k the element, found in memory where
/// the descriptor says that it is. `part`: lines of one instruction.
std::vector<Scalar> described_factor(const View& view, const Region& region, const MatrixDescriptor& descriptor,
                                     const FactorTile& tile, int64_t part, DType sums, const Span& span) {
  std::string reason;
  const std::optional<Layout> layout = tile_layout(region, &reason);
  HELVE_CHECK(layout, reason);
  std::unordered_map<int64_t, int64_t> element_at;
  for (int64_t element = 0; element < layout->size(); ++element) {
    element_at.emplace(layout->apply(element).front().at(axes::m()), element);
  }
  const std::vector<Scalar> elements = gather(view, sums, span);
  std::vector<Scalar> out(elements.size());
  const int64_t step = 256 / tile.bits;
  for (int64_t line = 0; line < tile.lines(); line += part) {
    for (int64_t k = 0; k < tile.depth(); k += step) {
      const int64_t start = descriptor_start(*layout, tile, line, k);
      for (int64_t i = 0; i < part * step; ++i) {
        const int64_t own = i / step, depth = i % step;
        const int64_t address = described_address(descriptor, tile, start, own, depth);
        const auto found = element_at.find(address);
        HELVE_CHECK(found != element_at.end(), "a descriptor that leads out of its tile");
        out[static_cast<size_t>((line + own) * tile.depth() + k + depth)] =
            elements[static_cast<size_t>(found->second)];
      }
    }
  }
  return out;
}

/// A of T.wgmma in registers: for each row and each k the element that the warp of the row's sums has, of group
/// `column` along N.
std::vector<Scalar> factor_in_registers(const View& view, const GroupOperands& operands, int64_t column, DType sums,
                                        const Span& span) {
  const std::vector<Scalar> elements = gather(view, sums, span);
  if (!operands.divided()) return elements;
  const GroupProduct product = operands.product();
  const Layout layout = group_factor(product, operands.shape);
  std::vector<Scalar> out(static_cast<size_t>(layout.size()));
  for (int64_t element = 0; element < layout.size(); ++element) {
    for (const Point& place : layout.apply(element)) {
      if (place.at(axes::tx()) / kWarpgroup % product.groups.columns != column) continue;
      out[static_cast<size_t>(element)] = elements[static_cast<size_t>(register_position(place, view.dims[1].extent))];
    }
  }
  return out;
}

/// As T.gemm, on what the descriptors describe. It waits for its commit.
void run_wgmma(const Operands& op, Frame& frame) {
  const GroupOperands operands = group_operands(*op.node);
  const ProductShape& shape = operands.shape;
  const GroupProduct product = operands.product();
  const View a = op.region("A").view(frame), b = op.region("B").view(frame), c = op.region("C").view(frame);
  const DType t = c.dtype();
  const CopyNumber number = frame.copies.begin(op.queue, op.span);
  if (frame.trace) frame.trace->fly(number, kTensorCores);
  std::vector<std::vector<Scalar>> x;  // of each group along N
  for (int64_t column = 0; column < product.groups.columns; ++column) {
    x.push_back(operands.in_registers()
                    ? factor_in_registers(a, operands, column, t, op.span)
                    : described_factor(a, operands.a, operands.descriptor_a, tile_of_a(shape), kGroupRows, t, op.span));
  }
  const std::vector<Scalar> y =
      described_factor(b, operands.b, operands.descriptor_b, tile_of_b(shape), product.n, t, op.span);
  if (frame.trace) frame.trace->add_in_order(number);
  const bool clear = *op.node->clears();
  const Scalar zero = identity_of(ReduceKind::Sum, t);
  std::vector<Scalar> out = clear ? filled(c, zero) : gather(c, t, op.span);
  const Fold add(Op::Add, t, op.span), multiply(Op::Mul, t, op.span);
  for (int64_t i = 0; i < shape.m; ++i) {
    for (int64_t j = 0; j < shape.n; ++j) {
      const int64_t element = i * shape.n + j;
      const int64_t place =
          operands.divided() ? register_position(operands.sums.apply(element).front(), c.dims[1].extent) : element;
      const std::vector<Scalar>& row = x[static_cast<size_t>(j / product.own_columns())];
      Scalar& sum = out[static_cast<size_t>(place)];
      for (int64_t k = 0; k < shape.k; ++k) {
        sum = add(sum, multiply(row[static_cast<size_t>(i * shape.k + k)], y[static_cast<size_t>(j * shape.k + k)]));
      }
    }
  }
  scatter(c, out, t, op.span);
  if (frame.trace) frame.trace->fly({}, kNoThread);
}

/// Elements are converted to the evaluation dtype of dst and folded in ascending order; the result is rounded once.
void reduce(const Operands& op, Frame& frame, ReduceKind kind) {
  const View src = op.region("src").view(frame);
  const View dst = op.region("dst").view(frame);
  const size_t dim = dimension_of(op, src.dims.size());
  std::vector<int64_t> kept = src.shape();
  const int64_t extent = kept[dim];
  kept[dim] = 1;
  std::vector<int64_t> dropped = kept;
  dropped.erase(dropped.begin() + static_cast<std::ptrdiff_t>(dim));
  require_shape(dst.shape() == dropped || dst.shape() == kept, op, "the reduced src and dst", dropped, dst.shape());
  int64_t inner = 1;
  for (size_t d = dim + 1; d < src.dims.size(); ++d) inner *= src.dims[d].extent;
  const DType t = evaluation_dtype(dst.dtype());
  const std::vector<Scalar> values = gather(src, t, op.span);
  const bool clear = *op.node->clears();
  std::vector<Scalar> out = clear ? filled(dst, identity_of(kind, dst.dtype())) : gather(dst, t, op.span);
  const Fold fold = fold_of(kind, t, op.span);
  const Fold magnitude = kind == ReduceKind::AbsMax ? Fold(Op::Abs, t, op.span) : fold;
  for (size_t at = 0; at < out.size(); ++at) {
    const int64_t o = static_cast<int64_t>(at) / inner;
    const int64_t i = static_cast<int64_t>(at) % inner;
    for (int64_t r = 0; r < extent; ++r) {
      const Scalar v = values[static_cast<size_t>((o * extent + r) * inner + i)];
      out[at] = fold(out[at], kind == ReduceKind::AbsMax ? magnitude(v) : v);
    }
  }
  scatter(dst, out, t, op.span);
}

void run_reduce_sum(const Operands& op, Frame& frame) { reduce(op, frame, ReduceKind::Sum); }
void run_reduce_prod(const Operands& op, Frame& frame) { reduce(op, frame, ReduceKind::Prod); }
void run_reduce_max(const Operands& op, Frame& frame) { reduce(op, frame, ReduceKind::Max); }
void run_reduce_min(const Operands& op, Frame& frame) { reduce(op, frame, ReduceKind::Min); }
void run_reduce_absmax(const Operands& op, Frame& frame) { reduce(op, frame, ReduceKind::AbsMax); }
void run_reduce_any(const Operands& op, Frame& frame) { reduce(op, frame, ReduceKind::Any); }
void run_reduce_all(const Operands& op, Frame& frame) { reduce(op, frame, ReduceKind::All); }

/// Running sums in the evaluation dtype of dst, each rounded once.
void run_cumsum(const Operands& op, Frame& frame) {
  const View src = op.region("src").view(frame);
  const View dst = op.region("dst").view(frame);
  require_shape(src.shape() == dst.shape(), op, "src and dst", src.shape(), dst.shape());
  const size_t dim = dimension_of(op, src.dims.size());
  const bool reverse = op.node->flag(op.row->index_of("reverse"));
  const int64_t extent = src.dims[dim].extent;
  int64_t inner = 1;
  for (size_t d = dim + 1; d < src.dims.size(); ++d) inner *= src.dims[d].extent;
  const DType t = evaluation_dtype(dst.dtype());
  std::vector<Scalar> values = gather(src, t, op.span);
  const Fold add(Op::Add, t, op.span);
  const int64_t lines = extent == 0 ? 0 : static_cast<int64_t>(values.size()) / extent;
  for (int64_t line = 0; line < lines; ++line) {
    const int64_t first = line / inner * extent * inner + line % inner;
    for (int64_t r = 1; r < extent; ++r) {
      const int64_t at = reverse ? extent - 1 - r : r;
      const int64_t before = reverse ? at + 1 : at - 1;
      Scalar& sum = values[static_cast<size_t>(first + at * inner)];
      sum = add(values[static_cast<size_t>(first + before * inner)], sum);
    }
  }
  scatter(dst, values, t, op.span);
}

void run_atomic(const Operands& op, Frame& frame) {
  const View dst = op.region("dst").view(frame);
  const StoreMode mode = atomic_mode(op.node->op);
  const size_t value = op.row->index_of("value");
  if (!op.regions[value]) return update(dst, filled(dst, op.values[value]->eval(frame)), mode, op.span);
  const View src = op.regions[value]->view(frame);
  require_shape(squeezed(src.shape()) == squeezed(dst.shape()), op, "dst and value", dst.shape(), src.shape());
  update(dst, gather(src, dst.dtype(), op.span), mode, op.span);
}

using TileFunction = void (*)(const Operands& op, Frame& frame);

class TileOpCode final : public PlainCode {
 public:
  TileOpCode(const TileOp& node, Scope& scope, TileFunction function) : operands_(node, scope), function_(function) {}
  void run(Frame& frame) const override { function_(operands_, frame); }

 private:
  Operands operands_;
  TileFunction function_;
};

}  // namespace

StmtCodeRef prepare_tile_op(const TileOp& s, Scope& scope) {
  const auto block = [&](TileFunction f) { return std::make_unique<TileOpCode>(s, scope, f); };
  switch (s.op) {
    case TileOpcode::Copy: return block(run_copy);
    case TileOpcode::CopyAsync: return block(scope.in_iteration ? begin_copy : run_copy_async);
    case TileOpcode::CpAsync: return block(begin_copy);
    case TileOpcode::CpAsyncBulk:
    case TileOpcode::CpAsyncBulkTensor:
      return block(is_group(s) ? run_copy_async : s.begins_copy() ? begin_copy : run_bulk_copy);
    case TileOpcode::CommitAsync:
    case TileOpcode::CommitBulk:
    case TileOpcode::MbarrierCommit:
    case TileOpcode::WgmmaCommit: return block(run_commit);
    case TileOpcode::WaitAsync:
    case TileOpcode::WaitBulk:
    case TileOpcode::MbarrierWait:
    case TileOpcode::WgmmaWait: return block(run_wait);
    case TileOpcode::MbarrierInit: return block(run_mbarrier_init);
    case TileOpcode::RingAcquire: return block(run_ring_acquire);
    case TileOpcode::RingCommit: return block(run_ring_commit);
    case TileOpcode::RingWait: return block(run_ring_wait);
    case TileOpcode::RingRelease: return block(run_ring_release);
    case TileOpcode::Fill: return block(run_fill);
    case TileOpcode::Clear: return block(run_clear);
    case TileOpcode::Gemm: return block(run_gemm);
    case TileOpcode::ReduceSum: return block(run_reduce_sum);
    case TileOpcode::ReduceProd: return block(run_reduce_prod);
    case TileOpcode::ReduceMax: return block(run_reduce_max);
    case TileOpcode::ReduceMin: return block(run_reduce_min);
    case TileOpcode::ReduceAbsMax: return block(run_reduce_absmax);
    case TileOpcode::ReduceAny: return block(run_reduce_any);
    case TileOpcode::ReduceAll: return block(run_reduce_all);
    case TileOpcode::Cumsum: return block(run_cumsum);
    case TileOpcode::AtomicAdd:
    case TileOpcode::AtomicMax:
    case TileOpcode::AtomicMin: return block(run_atomic);
    case TileOpcode::SyncWarpgroups: return block(run_sync_warpgroups);
    case TileOpcode::SyncThreads:
    case TileOpcode::SyncCluster: return block(run_sync_threads);
    case TileOpcode::FenceAsync: return block(run_fence_async);
    case TileOpcode::WgmmaFence: return block(run_wgmma_fence);
    case TileOpcode::LoadMatrix: return block(run_load_matrix);
    case TileOpcode::StoreMatrix: return block(run_store_matrix);
    case TileOpcode::UnpackInt4:
    case TileOpcode::UnpackScaledInt4: return block(run_unpack_int4);
    case TileOpcode::Mma: return block(run_mma);
    case TileOpcode::Wgmma: return block(run_wgmma);
    case TileOpcode::MeshTensorCopy: return prepare_mesh_tensor_copy(s, scope);
    case TileOpcode::CommBroadcast: return prepare_collective(s, scope, run_broadcast);
    case TileOpcode::CommPut: return prepare_collective(s, scope, run_put);
    case TileOpcode::CommScatter: return prepare_collective(s, scope, run_scatter);
    case TileOpcode::CommGather: return prepare_collective(s, scope, run_gather);
    case TileOpcode::CommReduce: return prepare_collective(s, scope, run_reduce);
    case TileOpcode::CommAllGather: return prepare_collective(s, scope, run_all_gather);
    case TileOpcode::CommReduceScatter: return prepare_collective(s, scope, run_reduce_scatter);
    case TileOpcode::CommAllReduce: return prepare_collective(s, scope, run_all_reduce);
    case TileOpcode::CommAllToAll: return prepare_collective(s, scope, run_all_to_all);
    case TileOpcode::CommPermute: return prepare_collective(s, scope, run_permute);
    case TileOpcode::StAsync: return prepare_st_async(s, scope);
    case TileOpcode::CommWaitBytes: return prepare_collective(s, scope, run_wait_bytes, false);
    case TileOpcode::CommBarrier: return prepare_collective(s, scope, run_barrier);
  }
  __builtin_unreachable();
}

}  // namespace helve::interp
