// TMA tensor copies between a tensor of the call and shared memory (cp.async.bulk.tensor).
// A box is a dense row-major array in shared memory, so dimensions are merged from the last one on while the memory is
// dense; the remaining ones become loops over boxes. Memory in slabs, some columns of all rows one after the other, is
// dense slab by slab.
#include "helve/analysis/box_copy.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>

#include "helve/analysis/copy_dimensions.h"
#include "helve/analysis/element_address.h"
#include "helve/analysis/multiple.h"
#include "helve/arith/simplify.h"
#include "helve/ir/expr/number.h"
#include "helve/ir/tensor/buffer_layout.h"
#include "helve/ir/tensor/visit.h"
#include "helve/support/diagnostic.h"

namespace helve {

namespace {

constexpr int64_t kUnitBits = 4;      // of kBulkUnit, the bytes that a swizzle permutes
constexpr int kSwizzleShift = 3;      // from the bits that a map's swizzle changes to those that it reads
constexpr int kMaxSwizzleBits = 3;

/// Why no map serves the copy; `tensor` is the side of the call.
std::string box_refusal(const Buffer& tensor, const Buffer& memory) {
  if (tensor.scope != MemoryScope::Param || memory.scope != MemoryScope::Shared) {
    return fmt::format("'{}' and '{}' are not a tensor of the call and shared memory", tensor.name, memory.name);
  }
  if (tensor.dtype != memory.dtype) {
    return fmt::format("'{}' and '{}' have different dtypes", tensor.name, memory.name);
  }
  if (tensor.dtype.bits < 8) return fmt::format("elements of {} share a byte", to_string(tensor.dtype));
  if (tensor.rank() == 0 || tensor.rank() > kMaxBoxRank) {
    return fmt::format("'{}' has {} dimensions, and a map 1 to {}", tensor.name, tensor.rank(), kMaxBoxRank);
  }
  return "";
}

/// The largest extent of a box along a dimension: all elements, or a divisor. 0 if no divisor is a multiple of `unit`.
int64_t box_extent(int64_t extent, int64_t unit) {
  for (int64_t box = std::min(extent, kMaxBoxExtent); box > 0; --box) {
    if (extent % box == 0 && box % unit == 0) return box;
  }
  return 0;
}

/// How memory is dense: the distance of indices of each dimension, and the columns of a slab, all of them where it is
/// row-major. Is `of_map` false, it is neither, and the distances are those of rows.
struct Density {
  std::vector<int64_t> strides;
  int64_t columns = 0;
  bool of_map = true;
};

Density density_of(const Buffer& memory) {
  const std::vector<int64_t> shape = *constant_shape(memory.shape);
  const size_t rank = shape.size();
  Density out{std::vector<int64_t>(rank, 1), shape.back()};
  for (size_t d = rank - 1; d-- > 0;) out.strides[d] = out.strides[d + 1] * shape[d + 1];
  if (!memory.layout) return out;
  if (layout_domain(memory) != shape) {
    out.of_map = false;
    return out;
  }
  const Layout plain(memory.layout->shard(), memory.layout->replica(), memory.layout->offset());
  if (plain.equivalent(Layout({{plain.size(), 1, axes::m()}}))) return out;
  out.of_map = false;
  if (rank < 2) return out;
  const GroupedLayout grouped = plain.group(shape);
  const Iters columns = grouped.block(rank - 1), rows = grouped.block(rank - 2);
  if (columns.size() != 2 || columns[1].stride != 1) return out;
  const int64_t width = columns[1].extent, count = shape[rank - 2];
  const bool together = rows.empty() || (rows.size() == 1 && rows[0].stride == width);
  if (!together || columns[0].stride != width * count) return out;
  out = {std::vector<int64_t>(rank, 0), width};  // tiles do not join
  out.strides[rank - 1] = 1;
  out.strides[rank - 2] = width;
  return out;
}

/// The swizzle of a map, in bytes, that equals the layout of memory whose boxes have rows of `row` bytes; 0 without a
/// swizzle, nothing if no map writes such memory.
std::optional<int64_t> swizzle_of(const Buffer& memory, int64_t row) {
  if (!memory.layout) return 0;
  const Layout& layout = *memory.layout;
  const Swizzle& swizzle = layout.swizzle();
  if (swizzle.identity()) return 0;
  const int64_t base = swizzle.base + std::countr_zero(static_cast<uint64_t>(memory.dtype.bytes()));
  const int64_t bytes = kBulkUnit << swizzle.bits;
  const bool is_of_map = base == kUnitBits && swizzle.shift == kSwizzleShift && swizzle.bits <= kMaxSwizzleBits;
  return is_of_map && bytes == row ? std::optional(bytes) : std::nullopt;
}

/// The alignment of a box in shared memory: a swizzle's period, so that TMA's swizzle is the layout's.
int64_t alignment_of(int64_t swizzle) { return std::max(kBoxAlignment, swizzle << kSwizzleShift); }

/// Is the byte address that `place` gives for the beginning of a box a multiple of `alignment` for all boxes?
bool are_aligned(const CopyBoxes& boxes, const Region& region, int64_t alignment, Facts facts,
                 const std::function<Expr(const std::vector<Expr>& begin)>& place) {
  std::vector<Expr> at;
  for (const CopyBoxes::Loop& loop : boxes.loops) {
    const VarRef var = make_var("box");
    facts.bind_loop(var, int_imm(0), int_imm(loop.count));
    at.push_back(Expr(var));
  }
  const Expr first = place(boxes.begin(region, is_global(*region.buffer), at));
  return is_multiple(first * int_imm(region.buffer->dtype.bytes()), alignment, facts);
}

bool begin_aligned_in_memory(const CopyBoxes& boxes, const Region& memory, int64_t alignment, const Facts& facts) {
  return are_aligned(boxes, memory, alignment, facts, [&](const std::vector<Expr>& begin) {
    return memory.buffer->layout ? layout_address(*memory.buffer, begin) : flat_address(*memory.buffer, begin);
  });
}

}  // namespace

int64_t CopyBoxes::elements() const {
  int64_t count = 1;
  for (const int64_t extent : box) count *= extent;
  return count;
}

std::vector<Expr> CopyBoxes::begin(const Region& region, bool of_tensor, const std::vector<Expr>& at) const {
  std::vector<Expr> out;
  for (const Range& range : region.ranges) out.push_back(range.begin);
  for (size_t k = 0; k < loops.size(); ++k) {
    Expr& index = out[of_tensor ? loops[k].tensor : loops[k].memory];
    index = simplify(index + at[k] * int_imm(loops[k].step));
  }
  return out;
}

std::optional<CopyBoxes> copy_boxes(const Region& src, const Region& dst, std::string* reason) {
  CopyBoxes out;
  out.tensor = is_global(*src.buffer) ? 0 : 1;
  const Region &tensor = out.tensor == 0 ? src : dst, &memory = out.tensor == 0 ? dst : src;
  *reason = box_refusal(*tensor.buffer, *memory.buffer);
  if (!reason->empty()) return std::nullopt;
  const std::vector<size_t> of_tensor = open_dimensions(tensor), of_memory = open_dimensions(memory);
  const std::optional<std::vector<int64_t>> extents = constant_shape(memory.shape());
  const auto declined = [&](std::string why) {
    *reason = std::move(why);
    return std::nullopt;
  };
  if (!extents || of_tensor.size() != of_memory.size()) return declined("its extents are not constants");
  if (std::count(extents->begin(), extents->end(), 0) > 0) return declined("it has no elements");
  const int64_t bytes = tensor.buffer->dtype.bytes(), unit = std::max<int64_t>(1, kBulkUnit / bytes);
  const Density density = density_of(*memory.buffer);
  out.box.assign(tensor.ranges.size(), 1);
  int64_t dense = 1;
  for (size_t k = extents->size(); k-- > 0;) {
    const size_t d = of_tensor[k];
    const bool last = d + 1 == tensor.ranges.size();
    const int64_t extent = (*extents)[k];
    if (extent == 1 && !last) continue;
    const size_t of = of_memory[k];
    const bool in_slabs = of + 1 == memory.ranges.size() && density.columns < *int_value(memory.buffer->shape[of]);
    if (in_slabs && !memory.covers(of)) {
      return declined(fmt::format("it takes a part of the columns of '{}', which is in slabs", memory.buffer->name));
    }
    const bool joins = density.strides[of] == dense;
    const int64_t box = joins ? box_extent(in_slabs ? density.columns : extent, last ? unit : 1) : 1;
    if (last && box == 0) {
      return declined(fmt::format("a row of its boxes is not a multiple of {} bytes", kBulkUnit));
    }
    out.box[d] = box;
    dense *= box;
    if (box == extent) continue;
    out.loops.insert(out.loops.begin(), {d, of_memory[k], extent / box, box});
  }
  if (out.box.back() * bytes % kBulkUnit != 0) {
    return declined(fmt::format("a row of its boxes is not a multiple of {} bytes", kBulkUnit));
  }
  const std::optional<int64_t> swizzle = swizzle_of(*memory.buffer, out.box.back() * bytes);
  if (!swizzle || !density.of_map) {
    const int64_t row = out.box.back() * bytes;
    const bool can = row == 32 || row == 64 || row == 128;
    const int bits = std::countr_zero(static_cast<uint64_t>(row / kBulkUnit));
    return declined(fmt::format("no map has the layout of '{}', but row-major order{}", memory.buffer->name,
                                can ? fmt::format(", and that with Swizzle({}, {}, {})", bits,
                                                  std::countr_zero(static_cast<uint64_t>(unit)), kSwizzleShift)
                                    : ""));
  }
  out.swizzle = *swizzle;
  return out;
}

CopyBoxes boxes_of(const TileOp& copy) {
  std::string reason;
  std::optional<CopyBoxes> boxes = copy_boxes(copy.region(0), copy.region(1), &reason);
  HELVE_CHECK(boxes, "a copy by a tensor map is none: " + reason);
  if (copy.multicast() == 1) return *std::move(boxes);
  boxes = shared_boxes(copy, copy.multicast());
  HELVE_CHECK(boxes, "a copy by several blocks has no boxes for each");
  return *std::move(boxes);
}

std::optional<CopyBoxes> shared_boxes(const TileOp& copy, int64_t blocks) {
  std::string reason;
  std::optional<CopyBoxes> out = copy_boxes(copy.region(0), copy.region(1), &reason);
  if (!out || out->tensor != 0) return std::nullopt;
  out->blocks = blocks;
  for (size_t k = 0; k < out->loops.size(); ++k) {
    if (out->loops[k].count % blocks != 0) continue;
    std::rotate(out->loops.begin(), out->loops.begin() + static_cast<std::ptrdiff_t>(k),
                out->loops.begin() + static_cast<std::ptrdiff_t>(k) + 1);
    return out;
  }
  const Region &tensor = copy.region(0), &memory = copy.region(1);
  const std::vector<size_t> of_tensor = open_dimensions(tensor), of_memory = open_dimensions(memory);
  for (size_t k = 0; k + 1 < of_tensor.size(); ++k) {
    const size_t d = of_tensor[k];
    if (out->box[d] == 1) continue;
    if (out->box[d] % blocks != 0) return std::nullopt;  // what is inside of it is dense only as a whole
    out->box[d] /= blocks;
    out->loops.insert(out->loops.begin(), {d, of_memory[k], blocks, out->box[d]});
    if (!begin_aligned_in_memory(*out, memory, alignment_of(out->swizzle), {})) return std::nullopt;
    return out;
  }
  return std::nullopt;
}

std::vector<BoxMap> box_maps(const Stmt& body, std::vector<const TileOp*>* first) {
  std::vector<BoxMap> out;
  walk(body, [&](const Stmt& s) {
    const TileOp* op = as<TileOp>(s);
    if (!op || op->op != TileOpcode::CpAsyncBulkTensor) return;
    CopyBoxes boxes = boxes_of(*op);
    const BufferRef& tensor = op->region(boxes.tensor).buffer;
    if (std::any_of(out.begin(), out.end(), [&](const BoxMap& map) { return map.serves(tensor.get(), boxes); })) return;
    out.push_back({tensor, std::move(boxes.box), boxes.swizzle});
    if (first) first->push_back(op);
  });
  return out;
}

bool is_box_copy(const TileOp& op, const Expr& pad, const Facts& facts, std::string* reason) {
  const std::optional<CopyBoxes> boxes = copy_boxes(op.region(0), op.region(1), reason);
  if (!boxes) return false;
  const Region &tensor = op.region(boxes->tensor), &memory = op.region(1 - boxes->tensor);
  const int64_t bytes = tensor.buffer->dtype.bytes();
  std::vector<Expr> strides = strides_of(*tensor.buffer);
  const int64_t* last = int_value(strides.back());
  if (!last || *last != 1) {
    *reason = fmt::format("neighbours along the last dimension of '{}' are not side by side", tensor.buffer->name);
    return false;
  }
  strides.pop_back();
  for (const Expr& stride : strides) {
    if (is_multiple(stride * int_imm(bytes), kBulkUnit, facts)) continue;
    *reason =
        fmt::format("rows of '{}' are not known to begin at multiples of {} bytes", tensor.buffer->name, kBulkUnit);
    return false;
  }
  if (!are_aligned(*boxes, tensor, kBulkUnit, facts, [](const auto& begin) { return begin.back(); })) {
    *reason = fmt::format("a box is not known to begin at a multiple of {} bytes along the last dimension of '{}'",
                          kBulkUnit, tensor.buffer->name);
    return false;
  }
  const int64_t alignment = alignment_of(boxes->swizzle);
  if (!begin_aligned_in_memory(*boxes, memory, alignment, facts)) {
    *reason =
        fmt::format("a box is not known to begin at a multiple of {} bytes in '{}'", alignment, memory.buffer->name);
    return false;
  }
  if (boxes->tensor == 1 || is_zero_bits(pad)) return true;
  for (size_t d = 0; d < tensor.ranges.size(); ++d) {
    const Range& range = tensor.ranges[d];
    if (can_prove(apply(Op::Le, {range.begin + range.extent, tensor.buffer->shape[d]}), facts)) continue;
    *reason = "it pads with another value than 0";
    return false;
  }
  return true;
}

std::optional<Swizzle> box_swizzle(const TileOp& op) {
  std::string reason;
  const std::optional<CopyBoxes> boxes = copy_boxes(op.region(0), op.region(1), &reason);
  if (!boxes) return std::nullopt;
  const Region& memory = op.region(1 - boxes->tensor);
  const int64_t bytes = memory.buffer->dtype.bytes();
  for (int bits = 1; bits <= kMaxSwizzleBits; ++bits) {
    const int64_t row = kBulkUnit << bits;
    if (boxes->box.back() * bytes != row || !begin_aligned_in_memory(*boxes, memory, alignment_of(row), {})) {
      continue;
    }
    return Swizzle{bits, std::countr_zero(static_cast<uint64_t>(kBulkUnit / bytes)), kSwizzleShift};
  }
  return std::nullopt;
}

}  // namespace helve
