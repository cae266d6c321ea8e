// Between iters and the points of index bits.
// A digit of a power-of-two extent is a run of index bits; a sum without carries is an XOR; a swizzle is linear. So
// only carries have to be looked for.
#include "helve/layout/linear.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "blocks.h"
#include "helve/layout/notation.h"
#include "helve/support/text.h"
#include "integers.h"

namespace helve {

namespace {

bool is_power(int64_t value) { return std::has_single_bit(static_cast<uint64_t>(value)); }

int logarithm(int64_t value) { return std::countr_zero(static_cast<uint64_t>(value)); }

/// Where two contributions to one axis meet, as a reason; empty when none do.
class SharedBits {
 public:
  std::string add(Axis axis, int64_t value, const std::string& what) {
    if (value < 0) return fmt::format("{} is negative", what);
    int64_t& used = used_[axis];
    int64_t shared = used & value;
    if (shared != 0)
      return fmt::format("{} shares bit {} of axis {} with another", what, logarithm(shared & -shared), axis.name());
    used |= value;
    return "";
  }

 private:
  std::map<Axis, int64_t> used_;
};

}  // namespace

LinearLayout to_linear(const Layout& layout) {
  auto refuse = [&](const std::string& reason) {
    throw_layout_error(Code::NotBitLinear, {{"layout", to_string(layout)}, {"reason", reason}});
  };
  SharedBits bits;
  auto check = [&](const std::string& reason) {
    if (!reason.empty()) refuse(reason);
  };
  LinearLayout result;
  for (bool is_replica : {false, true}) {
    std::vector<Point>& points = is_replica ? result.replica : result.index;
    Iters iters = is_replica ? layout.replica() : layout.shard();
    std::reverse(iters.begin(), iters.end());
    for (const Iter& iter : iters) {
      if (is_replica && iter.stride == 0) continue;
      if (!is_power(iter.extent)) refuse(fmt::format("iter {} has no power of two as its extent", to_string(iter)));
      for (int bit = 0; bit < logarithm(iter.extent); ++bit) {
        int64_t value = iter.stride << bit;
        check(bits.add(iter.axis, value, fmt::format("bit {} of iter {}", bit, to_string(iter))));
        points.push_back(value == 0 ? Point{} : Point{{iter.axis, value}});
      }
    }
  }
  for (const auto& [axis, value] : layout.offset()) {
    check(bits.add(axis, value, "the offset"));
    if (value != 0) result.offset[axis] = value;
  }
  auto swizzle = [&](Point& point) {
    if (auto it = point.find(axes::m()); it != point.end()) it->second = layout.swizzle().apply(it->second);
  };
  for (Point& point : result.index) swizzle(point);
  for (Point& point : result.replica) swizzle(point);
  swizzle(result.offset);
  return result;
}

namespace {

/// The first place at which a point is not 0: the first axis, its highest bit.
struct Lead {
  Axis axis;
  int64_t bit = 0;  ///< 0 for the origin

  bool in(const Point& point) const {
    auto it = point.find(axis);
    return it != point.end() && (it->second & bit) != 0;
  }
};

Lead lead_of(const Point& point) {
  for (const auto& [axis, value] : point) {
    if (value != 0) return {axis, static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(value)))};
  }
  return {};
}

void add_point(Point& a, const Point& b) {
  for (const auto& [axis, value] : b) a[axis] ^= value;
}

/// Law: the reduced basis of the replicas is unique, and so are index bits and offset without its leads. Where some
/// choice of these shares no bits, it is this one.
LinearLayout reduced(LinearLayout linear, const Swizzle& swizzle) {
  auto unswizzle = [&](Point& point) {
    if (auto it = point.find(axes::m()); it != point.end()) it->second = swizzle.apply(it->second);
  };
  std::vector<Point> rows;
  std::vector<Lead> leads;
  for (Point point : linear.replica) {
    unswizzle(point);
    for (size_t r = 0; r < rows.size(); ++r) {
      if (leads[r].in(point)) add_point(point, rows[r]);
    }
    Lead lead = lead_of(point);
    if (lead.bit == 0) continue;
    for (Point& row : rows) {
      if (lead.in(row)) add_point(row, point);
    }
    rows.push_back(point);
    leads.push_back(lead);
  }
  auto reduce = [&](Point& point) {
    unswizzle(point);
    for (size_t r = 0; r < rows.size(); ++r) {
      if (leads[r].in(point)) add_point(point, rows[r]);
    }
  };
  for (Point& point : linear.index) reduce(point);
  reduce(linear.offset);
  linear.replica = std::move(rows);
  return linear;
}

/// The iters of bits before the swizzle; none, and the reason, where there are none.
std::optional<Layout> plain_layout(const LinearLayout& swizzled, const Swizzle& swizzle, std::string& reason) {
  LinearLayout linear = reduced(swizzled, swizzle);
  SharedBits bits;
  auto iters_of = [&](const std::vector<Point>& points, const char* kind) {
    Iters iters;
    for (size_t k = 0; k < points.size() && reason.empty(); ++k) {
      Iter iter{2, 0, axes::m()};
      for (auto [axis, value] : points[k]) {
        if (value == 0) continue;
        if (iter.stride != 0)
          reason = fmt::format("{} bit {} moves along {} and {}", kind, k, iter.axis.name(), axis.name());
        iter = {2, value, axis};
        std::string shared = bits.add(axis, value, fmt::format("{} bit {}", kind, k));
        if (reason.empty()) reason = shared;
      }
      iters.push_back(iter);
    }
    std::reverse(iters.begin(), iters.end());
    return iters;
  };
  reason.clear();
  Iters shard = iters_of(linear.index, "index");
  Iters replica = iters_of(linear.replica, "replica");
  Point offset;
  for (auto [axis, value] : linear.offset) {
    if (value == 0) continue;
    std::string shared = bits.add(axis, value, "the offset");
    if (reason.empty()) reason = shared;
    offset[axis] = value;
  }
  if (!reason.empty()) return std::nullopt;
  return Layout(layout_detail::normalize_shard(shard), std::move(replica), std::move(offset), swizzle);
}

/// The bits of the greatest address.
int address_bits(const LinearLayout& linear) {
  uint64_t all = 0;
  auto add = [&](const Point& point) {
    if (auto it = point.find(axes::m()); it != point.end()) all |= static_cast<uint64_t>(it->second);
  };
  for (const Point& point : linear.index) add(point);
  for (const Point& point : linear.replica) add(point);
  add(linear.offset);
  return static_cast<int>(std::bit_width(all));
}

}  // namespace

Layout from_linear(const LinearLayout& linear) {
  std::string reason;
  if (auto layout = plain_layout(linear, Swizzle{}, reason)) return layout->canonicalize();
  // A swizzle is its own inverse, and permutes the addresses below its period: longer ones reach no bit that is used.
  int width = std::min(address_bits(linear), 62);
  std::string other;
  for (int bits = 1; 2 * bits <= width; ++bits) {
    for (int distance = bits; bits + distance <= width; ++distance) {
      for (int base = 0; bits + base + distance <= width; ++base) {
        for (int sign : {1, -1}) {
          if (auto layout = plain_layout(linear, Swizzle{bits, base, sign * distance}, other))
            return layout->canonicalize();
        }
      }
    }
  }
  throw_layout_error(Code::BitsNotALayout, {{"reason", reason}});
}

}  // namespace helve
