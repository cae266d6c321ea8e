// Matrices between memory and registers.
// A layout serves the instructions when its fastest digits are those of one matrix; the others number the matrices of a
// warp, on registers, and the warps, on threads.
#include "helve/ir/tensor/matrix_move.h"

#include <fmt/format.h>

#include "helve/ir/tensor/buffer_layout.h"
#include "helve/layout/notation.h"
#include "helve/layout/rearrange.h"
#include "helve/layout/warp.h"
#include "helve/support/diagnostic.h"

namespace helve {

namespace {

constexpr int64_t kPairs = 4;  ///< of elements in a row of a matrix, one a thread

bool is_digit(const Iters& iters, const Iter& digit) { return iters.size() == 1 && iters[0] == digit; }

/// `shape` with the digits of a matrix cut off.
std::vector<int64_t> cut_shape(const std::vector<int64_t>& shape, bool transposed) {
  const int64_t rows = shape[0] / kMatrixRows, columns = shape[1] / kMatrixRows;
  if (transposed) return {rows, kPairs, 2, columns, kMatrixRows};
  return {rows, kMatrixRows, columns, kPairs, 2};
}

/// The digits that number matrices and warps; false for one that does neither.
bool add_digits(const Iters& iters, size_t dim, MatrixMove* move) {
  int64_t step = kMatrixRows;
  for (size_t k = iters.size(); k-- > 0;) {
    const Iter& iter = iters[k];
    const bool on_threads = iter.axis == axes::tx();
    if (iter.stride % (on_threads ? kWarp : 2) != 0) return false;
    (on_threads ? move->warps : move->registers)
        .push_back({dim, step, on_threads ? iter.stride : iter.stride / 2, iter.extent});
    step *= iter.extent;
  }
  return true;
}

std::optional<MatrixMove> move_of(const Layout& layout, const std::vector<int64_t>& shape, bool transposed) {
  std::optional<GroupedLayout> grouped;
  try {
    grouped = layout.group(cut_shape(shape, transposed));
  } catch (const LayoutError&) {
    return std::nullopt;
  }
  const size_t pairs = transposed ? 1 : 3;
  const size_t rows = transposed ? 4 : 1;
  if (!is_digit(grouped->block(rows), {kMatrixRows, kPairs, axes::tx()})) return std::nullopt;
  if (!is_digit(grouped->block(pairs), {kPairs, 1, axes::tx()})) return std::nullopt;
  if (!is_digit(grouped->block(pairs + 1), {2, 1, axes::reg()})) return std::nullopt;
  MatrixMove move;
  move.transposed = transposed;
  if (!add_digits(grouped->block(0), 0, &move) || !add_digits(grouped->block(transposed ? 3 : 2), 1, &move)) {
    return std::nullopt;
  }
  move.matrices = 1;
  for (const MatrixMove::Digit& digit : move.registers) move.matrices *= digit.extent;
  if (layout.span(axes::reg()) != 2 * move.matrices) return std::nullopt;
  for (const Iter& iter : layout.replica()) {
    if (iter.axis != axes::tx() || iter.stride % kWarp != 0) return std::nullopt;
  }
  move.at_once = move.matrices % 4 == 0 ? 4 : move.matrices % 2 == 0 ? 2 : 1;
  return move;
}

}  // namespace

std::optional<MatrixMove> matrix_move(const Layout& layout, const std::vector<int64_t>& shape, std::string* reason) {
  if (shape.size() != 2 || shape[0] % kMatrixRows != 0 || shape[1] % kMatrixRows != 0) {
    *reason = "the region is no tile of 8 x 8 matrices";
    return std::nullopt;
  }
  for (const bool transposed : {false, true}) {
    if (std::optional<MatrixMove> move = move_of(layout, shape, transposed)) return move;
  }
  *reason = fmt::format("{} does not give each thread of a warp the pair t % 4 of row t / 4 of each matrix",
                        to_string(layout));
  return std::nullopt;
}

std::vector<Expr> matrix_row(const MatrixMove& move, const Expr& tx, int64_t first) {
  const Expr lane = floor_mod(tx, int_imm(kWarp));
  std::vector<Expr> at = {floor_mod(lane, int_imm(kMatrixRows)), int_imm(0)};
  const auto add = [&](const MatrixMove::Digit& digit, const Expr& number) {
    const Expr value = floor_mod(floor_div(number, int_imm(digit.divisor)), int_imm(digit.extent));
    at[digit.dim] = at[digit.dim] + value * int_imm(digit.step);
  };
  const Expr own = floor_mod(floor_div(lane, int_imm(kMatrixRows)), int_imm(move.at_once));
  for (const MatrixMove::Digit& digit : move.registers) add(digit, own + int_imm(first));
  for (const MatrixMove::Digit& digit : move.warps) add(digit, tx);
  return at;
}

std::optional<FragmentPart> fragment_part(const Region& region, std::string* reason) {
  const Buffer& fragment = *region.buffer;
  const auto fails = [&](std::string why) -> std::optional<FragmentPart> {
    *reason = std::move(why);
    return std::nullopt;
  };
  const Layout layout = thread_layout_of(fragment);
  if (region.whole()) return FragmentPart{layout, 0};
  const std::optional<std::vector<int64_t>> shape = constant_shape(fragment.shape);
  IndexRegion box;
  for (const Range& range : region.ranges) {
    const int64_t *begin = int_value(range.begin), *extent = int_value(range.extent);
    if (!begin || !extent || *extent < 1) return fails("the part of the fragment has no constant bounds");
    box.emplace_back(*begin, *begin + *extent);
  }
  std::optional<Layout> part;
  try {
    part = slice(layout, box, *shape);
  } catch (const LayoutError& error) {
    return fails(error.diagnostic().message());
  }
  if (part->span(axes::tx()) != layout.span(axes::tx()) || part->offset(axes::tx()) != layout.offset(axes::tx())) {
    return fails("some threads hold nothing of the part");
  }
  const int64_t first = part->offset(axes::reg());
  return FragmentPart{Layout(part->shard(), part->replica()), first};
}

MatrixOperands matrix_operands(const TileOp& op) {
  HELVE_CHECK(moves_matrices(op), "an operation that moves no matrices");
  const bool loads = op.op == TileOpcode::LoadMatrix;
  return {&op.region(loads ? 0 : 1), &op.region(loads ? 1 : 0), op.layout(2)};
}

}  // namespace helve
