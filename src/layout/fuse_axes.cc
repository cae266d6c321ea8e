// Thread axes counted together.
// The ways to number the threads of a block are fixed by the hardware; going from one to another is a linear map.
#include <algorithm>

#include <fmt/format.h>

#include "helve/layout/fuse_axes.h"
#include "helve/layout/notation.h"
#include "integers.h"

namespace helve {

namespace {

/// The threads (or warps) that an axis numbers inside a block: bits [low, high) of the thread number, low counted from
/// the lane's. A warp has 32 lanes and a warpgroup 4 warps, so axes that overlap in bits count the same threads.
struct ThreadBits {
  Axis axis;
  int low;
  int high;
};

const std::vector<ThreadBits>& thread_bits() {
  static const std::vector<ThreadBits> rows = {
      {axes::laneid(), 0, 5}, {axes::wid_in_wg(), 5, 7}, {axes::tid_in_wg(), 0, 7},
      {axes::wgid(), 7, 10},  {axes::warpid(), 5, 10},   {axes::tx(), 0, 10},
  };
  return rows;
}

const ThreadBits* find_bits(Axis axis) {
  for (const ThreadBits& row : thread_bits()) {
    if (row.axis == axis) return &row;
  }
  return nullptr;
}

/// The scopes from narrow to wide; an axis counts instances of one inside another.
enum class Level : int { Thread, Warp, Warpgroup, Cta, Cluster, Device };

std::string_view to_string(Level level) {
  constexpr std::string_view kNames[] = {"thread", "warp", "warpgroup", "cta", "cluster", "device"};
  return kNames[static_cast<int>(level)];
}

struct AxisScopes {
  Axis axis;
  Level unit;
  Level scope;
};

const std::vector<AxisScopes>& axis_scopes() {
  static const std::vector<AxisScopes> rows = {
      {axes::laneid(), Level::Thread, Level::Warp},
      {axes::wid_in_wg(), Level::Warp, Level::Warpgroup},
      {axes::tid_in_wg(), Level::Thread, Level::Warpgroup},
      {axes::wgid(), Level::Warpgroup, Level::Cta},
      {axes::warpid(), Level::Warp, Level::Cta},
      {axes::tx(), Level::Thread, Level::Cta},
      {axes::cta_in_cluster(), Level::Cta, Level::Cluster},
      {axes::cta(), Level::Cta, Level::Device},
  };
  return rows;
}

/// The rows of `axes` from narrow to wide. Throws unless each begins where the one before ends.
std::vector<AxisScopes> check_chain(const Layout& layout, const Axes& axes) {
  std::vector<AxisScopes> chain;
  for (const AxisScopes& row : axis_scopes()) {
    if (std::find(axes.begin(), axes.end(), row.axis) != axes.end()) chain.push_back(row);
  }
  std::stable_sort(chain.begin(), chain.end(), [](const AxisScopes& a, const AxisScopes& b) {
    return a.unit != b.unit ? a.unit < b.unit : a.scope < b.scope;
  });
  auto describe = [](const AxisScopes& row) {
    return fmt::format("'{}' ({} in {})", row.axis.name(), to_string(row.unit), to_string(row.scope));
  };
  for (size_t k = 1; k < chain.size(); ++k) {
    if (chain[k].unit == chain[k - 1].scope) continue;
    throw_layout_error(
        Code::ScopeChain,
        {{"layout", to_string(layout)}, {"left", describe(chain[k - 1])}, {"right", describe(chain[k])}});
  }
  return chain;
}

}  // namespace

std::optional<ExecutionScopes> execution_scopes(const Layout& layout) {
  std::vector<AxisScopes> chain = check_chain(layout, layout.axes());
  if (chain.empty()) return std::nullopt;
  return ExecutionScopes{to_string(chain.front().unit), to_string(chain.back().scope)};
}

Layout fuse_axes(const Layout& layout, Axis target) {
  const ThreadBits* whole = find_bits(target);
  bool has_parts = target == axes::tx() || target == axes::tid_in_wg() || target == axes::warpid();
  if (!has_parts) throw_layout_error(Code::FuseTarget, {{"target", target.name()}});
  std::vector<const ThreadBits*> used;
  for (Axis axis : layout.axes()) {
    const ThreadBits* bits = find_bits(axis);
    if (bits && bits->low >= whole->low && bits->high <= whole->high) used.push_back(bits);
  }
  for (const ThreadBits* left : used) {
    for (const ThreadBits* right : used) {
      if (!(left->axis < right->axis) || left->high <= right->low || right->high <= left->low) continue;
      throw_layout_error(Code::FuseOverlap, {{"left", left->axis.name()},
                                             {"right", right->axis.name()},
                                             {"layout", to_string(layout)},
                                             {"target", target.name()}});
    }
  }
  Axes parts;
  for (const ThreadBits* bits : used) parts.push_back(bits->axis);
  check_chain(layout, parts);
  auto factor = [&](Axis axis) {
    for (const ThreadBits* bits : used) {
      if (bits->axis == axis) return int64_t{1} << (bits->low - whole->low);
    }
    return int64_t{0};
  };
  Iters shard = layout.shard();
  Iters replica = layout.replica();
  for (auto* part : {&shard, &replica}) {
    for (Iter& iter : *part) {
      if (int64_t f = factor(iter.axis)) {
        iter = {iter.extent, layout_detail::checked_multiply(iter.stride, f, "a stride"), target};
      }
    }
  }
  Point offset;
  for (const auto& [axis, value] : layout.offset()) {
    int64_t f = factor(axis);
    int64_t moved = layout_detail::checked_multiply(value, f ? f : 1, "an offset");
    int64_t& sum = offset[f ? target : axis];
    sum = layout_detail::checked_add(sum, moved, "an offset");
  }
  return Layout(std::move(shard), std::move(replica), std::move(offset), layout.swizzle());
}

}  // namespace helve
