// The loop over moves of boxes.
// Work is dealt in units of some rows or a piece of a long one, so that neither one row nor one move keeps a thread
// busy while the others wait; inside of a unit addresses are added up, and a row is one call.
#include "helve/runtime/box_moves.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "helve/runtime/thread_pool.h"
#include "helve/support/diagnostic.h"
#include "helve/support/inline_vector.h"
#include "reduce_row.h"

namespace helve::runtime {

namespace {

constexpr int64_t kUnitBytes = 1 << 16;      ///< of one source; a row longer than that is split
constexpr int64_t kWideElement = 16;         ///< bytes of a contiguous run that is copied as one element

bool is_one_element(int64_t bytes) { return bytes <= kWideElement && (bytes & (bytes - 1)) == 0; }

}  // namespace

std::vector<int64_t> compact_strides(std::span<const int64_t> extents) {
  std::vector<int64_t> out(extents.size(), 1);
  for (size_t d = out.size(); d-- > 1;) out[d - 1] = out[d] * extents[d];
  return out;
}

BoxMoves::BoxMoves(DLDataType dtype, std::optional<ReduceOp> op) : bytes_(element_bytes(dtype)) {
  if (!op) return;
  reduce_ = find_reduce_row(dtype, *op);
  if (reduce_ == nullptr)
    throw UserError(Code::ReductionDType, {}, {{"dtype", to_text(dtype)}, {"operation", std::string(name_of(*op))}});
}

size_t BoxMoves::add_box(std::span<const int64_t> extents, std::span<const int64_t> source_strides,
                         std::span<const int64_t> target_strides) {
  InlineVector<Dim, 8> dims;
  Rows rows;
  rows.element = rows.source_step = rows.target_step = bytes_;
  rows.first = dims_.size();
  bool is_empty = false;
  for (size_t d = 0; d < extents.size(); ++d) {
    is_empty |= extents[d] <= 0;
    if (extents[d] != 1) dims.push_back({extents[d], source_strides[d] * bytes_, target_strides[d] * bytes_});
  }
  if (is_empty) {
    rows.count = 0;
    rows_.push_back(rows);
    return rows_.size() - 1;
  }
  std::stable_sort(dims.begin(), dims.end(), [](const Dim& a, const Dim& b) {
    const int64_t x = std::abs(a.target), y = std::abs(b.target);
    return x != y ? x > y : std::abs(a.source) > std::abs(b.source);
  });
  for (const Dim& dim : dims) {
    if (dims_.size() > rows.first && dims_.back().source == dim.source * dim.extent &&
        dims_.back().target == dim.target * dim.extent) {
      dims_.back() = {dims_.back().extent * dim.extent, dim.source, dim.target};
    } else {
      dims_.push_back(dim);
    }
  }
  const auto take_row = [&] {
    rows.length = dims_.back().extent;
    rows.source_step = dims_.back().source;
    rows.target_step = dims_.back().target;
    dims_.pop_back();
  };
  if (dims_.size() > rows.first) take_row();
  const bool contiguous = rows.source_step == bytes_ && rows.target_step == bytes_;
  if (reduce_ == nullptr && contiguous && dims_.size() > rows.first && is_one_element(rows.length * bytes_)) {
    rows.element = rows.length * bytes_;
    take_row();
  }
  rows.rank = dims_.size() - rows.first;
  for (size_t d = rows.first; d < dims_.size(); ++d) rows.count *= dims_[d].extent;
  rows_.push_back(rows);
  return rows_.size() - 1;
}

int64_t BoxMoves::rows_of_unit(const Rows& rows) {
  return std::max<int64_t>(1, kUnitBytes / (rows.length * rows.element));
}

int64_t BoxMoves::pieces_of_row(const Rows& rows) { return (rows.length * rows.element + kUnitBytes - 1) / kUnitBytes; }

void BoxMoves::end_move(size_t box) {
  const bool is_first = moves_.empty();
  const size_t first_source = is_first ? 0 : moves_.back().first_source + moves_.back().sources;
  const size_t first_target = is_first ? 0 : moves_.back().first_target + moves_.back().targets;
  const size_t sources = sources_.size() - first_source, targets = targets_.size() - first_target;
  HELVE_CHECK(reduce_ != nullptr ? sources > 0 : sources == 1, fmt::format("a move of {} sources", sources));
  moves_.push_back({box, first_source, first_target, sources, targets});
}

int64_t BoxMoves::bytes_moved() const {
  int64_t out = 0;
  for (const Move& move : moves_) {
    const Rows& rows = rows_[move.box];
    out += rows.count * rows.length * rows.element * static_cast<int64_t>(std::max(move.sources, move.targets));
  }
  return out;
}

void BoxMoves::run(InterruptPoll* poll) {
  int64_t units = 0;
  for (Move& move : moves_) {
    HELVE_CHECK(move.box < rows_.size(), "a move without a box");
    const Rows& rows = rows_[move.box];
    move.first_unit = units;
    if (rows.count > 0) units += pieces_of_row(rows) * ((rows.count + rows_of_unit(rows) - 1) / rows_of_unit(rows));
  }
  if (units == 0) return;
  const auto task = [&](int64_t begin, int64_t end, int) {
    auto move = std::upper_bound(moves_.begin(), moves_.end(), begin,
                                 [](int64_t unit, const Move& each) { return unit < each.first_unit; }) -
                1;
    for (int64_t unit = begin; unit < end; ++unit) {
      while (move + 1 != moves_.end() && unit >= (move + 1)->first_unit) ++move;
      run_unit(*move, unit - move->first_unit);
    }
  };
  const int64_t moved = bytes_moved();
  if (moved < kParallelBytes) return task(0, units, 0);
  parallel_for(units, std::max<int64_t>(1, units / (moved / (kParallelBytes / 4))), task, poll);
}

void BoxMoves::run_unit(const Move& move, int64_t unit) const {
  const Rows& rows = rows_[move.box];
  const int64_t pieces = pieces_of_row(rows);
  const int64_t of_row = (rows.length + pieces - 1) / pieces;  // elements of a piece
  const int64_t begin = unit % pieces * of_row, count = std::min(of_row, rows.length - begin);
  int64_t row = unit / pieces * rows_of_unit(rows);
  const int64_t last = std::min(rows.count, row + rows_of_unit(rows));
  const Dim* dims = dims_.data() + rows.first;
  InlineVector<int64_t, 8> index(rows.rank, 0);
  int64_t source = begin * rows.source_step, target = begin * rows.target_step;
  for (size_t d = rows.rank, rest = static_cast<size_t>(row); d-- > 0;) {
    const auto extent = static_cast<size_t>(dims[d].extent);
    index[d] = static_cast<int64_t>(rest % extent);
    rest /= extent;
    source += index[d] * dims[d].source;
    target += index[d] * dims[d].target;
  }
  for (;; ++row) {
    run_piece(move, rows, source, target, count);
    if (row + 1 == last) return;
    for (size_t d = rows.rank; d-- > 0;) {
      source += dims[d].source;
      target += dims[d].target;
      if (++index[d] < dims[d].extent) break;
      source -= dims[d].extent * dims[d].source;
      target -= dims[d].extent * dims[d].target;
      index[d] = 0;
    }
  }
}

void BoxMoves::run_piece(const Move& move, const Rows& rows, int64_t source, int64_t target, int64_t count) const {
  const SourceRows from{{sources_.data() + move.first_source, move.sources}, source, rows.source_step};
  const TargetRows to{{targets_.data() + move.first_target, move.targets}, target, rows.target_step};
  if (reduce_ != nullptr) {
    reduce_(from, to, count);
  } else {
    copy_row(from, to, count, rows.element);
  }
}

}  // namespace helve::runtime
