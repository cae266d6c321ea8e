// Runs of elements that cp.async copies from global to shared memory without registers.
// Alignment is that of addresses relative to the buffer's base, in elements; the alignment of the base is the caller's
// responsibility.
#include "helve/analysis/async_run.h"

#include <fmt/format.h>

#include "helve/analysis/element_address.h"
#include "helve/analysis/multiple.h"
#include "helve/arith/simplify.h"
#include "helve/ir/expr/number.h"
#include "helve/ir/tensor/buffer_layout.h"
#include "helve/ir/tensor/region.h"

namespace helve {

namespace {

/// Are the elements of a run contiguous, and does it begin at a multiple of its length?
bool is_aligned(const Region& region, int64_t run, const Facts& facts, std::string* reason) {
  const Buffer& buffer = *region.buffer;
  if (run == 1) return true;
  if (buffer.layout) {
    if (keeps_runs(buffer, run) && is_multiple(region.ranges.back().begin, run, facts)) return true;
    *reason = fmt::format("the layout of '{}' is not known to keep {} bytes together", buffer.name,
                          run * buffer.dtype.bytes());
    return false;
  }
  const int64_t* step = buffer.strides.empty() ? nullptr : int_value(buffer.strides.back());
  if (!buffer.strides.empty() && !(step && *step == 1)) {
    *reason = fmt::format("neighbours along the last dimension of '{}' are not side by side", buffer.name);
    return false;
  }
  if (is_multiple(flat_address(buffer, region_begin(region)), run, facts)) return true;
  *reason = fmt::format("an address in '{}' is not known to be a multiple of {} bytes", buffer.name,
                        run * buffer.dtype.bytes());
  return false;
}

/// Is the run past the end either with all of its elements or with none?
bool ends_together(const Region& region, int64_t run, const Facts& facts) {
  if (run == 1) return true;
  const Range& last = region.ranges.back();
  const Expr end = region.buffer->shape.back();
  if (can_prove(apply(Op::Le, {last.begin + int_imm(run), end}), facts)) return true;
  return is_multiple(last.begin, run, facts) && is_multiple(end, run, facts);
}

}  // namespace

int64_t run_length(const TileOp& op) {
  const std::vector<Range>& ranges = op.region(0).ranges;
  return ranges.empty() ? 1 : *int_value(ranges.back().extent);
}

bool is_async_run(const TileOp& op, const Expr& pad, const Facts& facts, std::string* reason) {
  const Region &src = op.region(0), &dst = op.region(1);
  const auto declined = [&](std::string why) {
    *reason = std::move(why);
    return false;
  };
  const DType dtype = src.buffer->dtype;
  if (!is_global(*src.buffer)) return declined(fmt::format("'{}' is no global tensor", src.buffer->name));
  if (dst.buffer->scope != MemoryScope::Shared) {
    return declined(fmt::format("'{}' is no shared memory", dst.buffer->name));
  }
  if (dtype != dst.buffer->dtype) {
    return declined(fmt::format("it converts {} to {}", to_string(dtype), to_string(dst.buffer->dtype)));
  }
  if (dtype.bits < 8) return declined(fmt::format("elements of {} share a byte", to_string(dtype)));
  const int64_t run = run_length(op);
  const int64_t bytes = run * dtype.bytes();
  if (bytes != 4 && bytes != 8 && bytes != 16) {
    return declined(fmt::format("4, 8 or 16 bytes move at once, not {}", bytes));
  }
  if (!is_aligned(src, run, facts, reason) || !is_aligned(dst, run, facts, reason)) return false;
  if (!ends_together(src, run, facts)) {
    return declined(fmt::format("{} bytes may cross the end of '{}'", bytes, src.buffer->name));
  }
  if (begins_inside(src, facts) && !is_zero_bits(pad)) {
    return declined(fmt::format("elements past the end of '{}' are not filled with 0", src.buffer->name));
  }
  return true;
}

Expr begins_inside(const Region& region, const Facts& facts) {
  Expr all;
  for (size_t d = 0; d < region.ranges.size(); ++d) {
    const Expr one = simplify(less(region.ranges[d].begin, region.buffer->shape[d]), facts);
    if (can_prove(one, facts)) continue;
    all = all ? logical_and(all, one) : one;
  }
  return all;
}

}  // namespace helve
