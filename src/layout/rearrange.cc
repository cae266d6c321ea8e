// Reordered dimensions, packed elements, fewer axes.
// All three read the blocks of a grouped layout; none moves an element that it keeps.
#include "helve/layout/rearrange.h"

#include <algorithm>
#include <bit>

#include "blocks.h"
#include "helve/layout/notation.h"
#include "helve/support/text.h"
#include "integers.h"
#include "operands.h"

namespace helve {

using layout_detail::checked_multiply;

Layout permute(const Layout& layout, const std::vector<int64_t>& shape, const std::vector<int64_t>& order) {
  std::vector<bool> named(shape.size(), false);
  bool valid = order.size() == shape.size();
  for (int64_t d : order) {
    valid = valid && d >= 0 && d < static_cast<int64_t>(shape.size()) && !named[d];
    if (valid) named[d] = true;
  }
  if (!valid) {
    throw_layout_error(Code::PermuteOrder,
                       {{"order", shape_text(order)}, {"rank", static_cast<int64_t>(shape.size())}});
  }
  GroupedLayout grouped = layout.group(shape);
  Iters shard;
  for (int64_t d : order) {
    for (const Iter& iter : grouped.block(static_cast<size_t>(d))) shard.push_back(iter);
  }
  return Layout(std::move(shard), layout.replica(), layout.offset(), layout.swizzle());
}

namespace {

void check_factor(const char* operation, int64_t factor) {
  if (factor < 1) throw_layout_error(Code::BelowOne, {{"operation", operation}, {"value", factor}});
}

/// The swizzle with `factor` times smaller (or larger) units. Exact only when packs are powers of two and stay
/// together.
Swizzle shift_base(const Layout& layout, int64_t factor, bool smaller) {
  Swizzle swizzle = layout_detail::moving_swizzle(layout);
  if (swizzle.identity() || factor == 1) return swizzle;
  int bits = std::bit_width(static_cast<uint64_t>(factor)) - 1;
  std::string reason;
  if (!std::has_single_bit(static_cast<uint64_t>(factor))) {
    reason = std::to_string(factor) + " is no power of two";
  } else if (!smaller && swizzle.base < bits) {
    reason = to_string(swizzle) +
             fill_template(" keeps only {size:element} together", {{"size", int64_t{1} << swizzle.base}});
  } else {
    swizzle.base += smaller ? bits : -bits;
    return swizzle;
  }
  throw_layout_error(Code::PackSwizzle, {{"layout", to_string(layout)},
                                         {"operation", smaller ? "unpacked" : "packed"},
                                         {"factor", factor},
                                         {"reason", reason}});
}

}  // namespace

Layout pack(const Layout& layout, int64_t factor) {
  check_factor("pack", factor);
  if (factor == 1) return layout;
  auto refuse = [&](const std::string& reason) {
    throw_layout_error(Code::PackDivisibility, {{"layout", to_string(layout)}, {"factor", factor}, {"reason", reason}});
  };
  Swizzle swizzle = shift_base(layout, factor, false);
  if (layout.size() % factor != 0) refuse(fill_template("it has {size:element}", {{"size", layout.size()}}));
  Iters iters = layout_detail::normalize_shard(layout.shard());
  const Iter& last = iters.back();
  if (last.stride != 1 || last.axis != axes::m() || last.extent % factor != 0) {
    refuse("its last iter is " + to_string(last));
  }
  auto blocks = layout_detail::cut_blocks(iters, {layout.size() / factor, factor}, layout);
  Iters shard = blocks.block(0);
  Iters replica = layout.replica();
  for (auto* part : {&shard, &replica}) {
    for (Iter& iter : *part) {
      if (iter.axis != axes::m() || iter.extent == 1) continue;
      if (iter.stride % factor != 0) refuse("iter " + to_string(iter) + " moves by a part of a pack");
      iter.stride /= factor;
    }
  }
  Point offset = layout.offset();
  if (auto it = offset.find(axes::m()); it != offset.end()) {
    if (it->second % factor != 0) refuse("its offset is " + std::to_string(it->second));
    it->second /= factor;
  }
  return Layout(std::move(shard), std::move(replica), std::move(offset), swizzle);
}

Layout unpack(const Layout& layout, int64_t factor) {
  check_factor("unpack", factor);
  if (factor == 1) return layout;
  Swizzle swizzle = shift_base(layout, factor, true);
  Iters shard = layout.shard();
  Iters replica = layout.replica();
  for (auto* part : {&shard, &replica}) {
    for (Iter& iter : *part) {
      if (iter.axis == axes::m()) iter.stride = checked_multiply(iter.stride, factor, "a stride");
    }
  }
  shard.push_back({factor, 1, axes::m()});
  Point offset = layout.offset();
  if (auto it = offset.find(axes::m()); it != offset.end()) {
    it->second = checked_multiply(it->second, factor, "an offset");
  }
  return Layout(std::move(shard), std::move(replica), std::move(offset), swizzle);
}

namespace {

template <class Kept>
Layout keep_axes(const Layout& layout, Kept&& kept) {
  Iters shard = layout.shard();
  Iters replica = layout.replica();
  Point offset = layout.offset();
  erase_if(shard, [&](const Iter& iter) { return !kept(iter.axis); });
  erase_if(replica, [&](const Iter& iter) { return !kept(iter.axis); });
  erase_if(offset, [&](const auto& entry) { return !kept(entry.first); });
  return Layout(std::move(shard), std::move(replica), std::move(offset),
                kept(axes::m()) ? layout.swizzle() : Swizzle{});
}

}  // namespace

Layout project(const Layout& layout, const std::vector<Axis>& axes) {
  return keep_axes(layout, [&](Axis axis) { return std::find(axes.begin(), axes.end(), axis) != axes.end(); });
}

Layout storage(const Layout& layout) {
  return keep_axes(layout, [](Axis axis) { return axis.kind() == AxisKind::Memory; });
}

}  // namespace helve
