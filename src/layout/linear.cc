// Between iters and bit matrices.
// A digit of a power-of-two extent is a run of index bits; a sum without carries is an XOR; a swizzle is linear. So
// only carries have to be looked for, and matrices are inverted by elimination on words.
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
      if (!is_power(iter.extent)) refuse(fmt::format("iter {} has no power of two as its extent", to_string(iter)));
      for (int bit = 0; bit < logarithm(iter.extent); ++bit) {
        int64_t value = iter.stride << bit;
        check(bits.add(iter.axis, value, fmt::format("bit {} of iter {}", bit, to_string(iter))));
        if (value != 0 || !is_replica) points.push_back(value == 0 ? Point{} : Point{{iter.axis, value}});
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

namespace {

/// Vectors over F2 with the combination of inputs that made each: elimination keeps one vector for each leading bit.
class Elimination {
 public:
  using Bits = std::vector<bool>;

  explicit Elimination(size_t inputs) : inputs_(inputs) {}

  /// Adds input k with its vector. When it depends on earlier inputs, the combination of inputs that is 0.
  std::optional<Bits> add(size_t k, Bits vector) {
    Bits combination(inputs_, false);
    combination[k] = true;
    reduce(vector, combination);
    size_t lead = leading(vector);
    if (lead == vector.size()) return combination;
    rows_.push_back({lead, std::move(vector), std::move(combination)});
    return std::nullopt;
  }

  /// The combination of inputs whose vectors sum to `target`; none where there is none.
  std::optional<Bits> solve(Bits target) const {
    Bits combination(inputs_, false);
    reduce(target, combination);
    if (leading(target) != target.size()) return std::nullopt;
    return combination;
  }

 private:
  struct Row {
    size_t lead;
    Bits vector;
    Bits combination;
  };

  static size_t leading(const Bits& vector) {
    return static_cast<size_t>(std::find(vector.begin(), vector.end(), true) - vector.begin());
  }

  static void add_to(Bits& a, const Bits& b) {
    for (size_t i = 0; i < a.size(); ++i) a[i] = a[i] != b[i];
  }

  /// Rows stand in the order of their making; each has a lead that no earlier row's elimination brings back.
  void reduce(Bits& vector, Bits& combination) const {
    for (const Row& row : rows_) {
      if (!vector[row.lead]) continue;
      add_to(vector, row.vector);
      add_to(combination, row.combination);
    }
  }

  size_t inputs_;
  std::vector<Row> rows_;
};

/// The bits of `shape`, as (dimension, bit), lowest bit of the flat index first.
std::vector<std::pair<size_t, int>> shape_bits(const std::vector<int64_t>& shape) {
  std::vector<std::pair<size_t, int>> bits;
  for (size_t d = shape.size(); d-- > 0;) {
    if (shape[d] < 1 || !is_power(shape[d])) {
      throw_layout_error(Code::ShapeExtent, {{"shape", shape_text(shape)},
                                             {"extent", shape[d]},
                                             {"dim", static_cast<int64_t>(d)}});
    }
    for (int bit = 0; bit < logarithm(shape[d]); ++bit) bits.push_back({d, bit});
  }
  return bits;
}

[[noreturn]] void refuse_bits(const std::string& reason) {
  throw_layout_error(Code::BitsNotALayout, {{"reason", reason}});
}

}  // namespace

LinearBases to_bases(const Layout& layout, const std::vector<int64_t>& shape) {
  layout_detail::check_admitted(layout, shape);
  auto bits = shape_bits(shape);
  LinearLayout linear = to_linear(layout);
  auto refuse = [&](const std::string& reason) {
    throw_layout_error(Code::NotBitLinear, {{"layout", to_string(layout)}, {"reason", reason}});
  };
  if (!linear.offset.empty()) refuse("bases have no offset");
  std::vector<Point> inputs = linear.index;
  inputs.insert(inputs.end(), linear.replica.begin(), linear.replica.end());
  std::vector<std::pair<Axis, int>> places;
  for (Axis axis : layout.axes()) {
    int64_t all = 0;
    for (const Point& point : inputs) {
      if (auto it = point.find(axis); it != point.end()) all |= it->second;
    }
    for (int bit = 0; (all >> bit) != 0; ++bit) places.push_back({axis, bit});
  }
  auto vector_of = [&](const Point& point) {
    Elimination::Bits vector(places.size(), false);
    for (size_t p = 0; p < places.size(); ++p) {
      auto it = point.find(places[p].first);
      vector[p] = it != point.end() && ((it->second >> places[p].second) & 1) != 0;
    }
    return vector;
  };
  Elimination elimination(inputs.size());
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (elimination.add(k, vector_of(inputs[k]))) refuse("two elements share a place");
  }
  LinearBases bases;
  for (Axis axis : layout.axes()) bases[axis];
  for (auto [axis, bit] : places) {
    auto combination = elimination.solve(vector_of({{axis, int64_t{1} << bit}}));
    if (!combination) refuse(fmt::format("no element is at {}", to_string(Point{{axis, int64_t{1} << bit}})));
    std::vector<int64_t> coordinate(shape.size(), 0);
    for (size_t k = 0; k < bits.size(); ++k) {
      if ((*combination)[k]) coordinate[bits[k].first] |= int64_t{1} << bits[k].second;
    }
    bases[axis].push_back(std::move(coordinate));
  }
  return bases;
}

Layout from_bases(const LinearBases& bases, const std::vector<int64_t>& shape) {
  auto bits = shape_bits(shape);
  std::vector<Point> places;
  std::vector<Elimination::Bits> vectors;
  for (const auto& [axis, columns] : bases) {
    if (columns.size() > 62) refuse_bits(fmt::format("axis {} has more than 62 bits", axis.name()));
    for (size_t k = 0; k < columns.size(); ++k) {
      if (columns[k].size() != shape.size()) {
        throw_layout_error(Code::ShapeRank, {{"operation", "from_bases"},
                                             {"left", "basis " + shape_text(columns[k])},
                                             {"right", "shape " + shape_text(shape)}});
      }
      for (size_t d = 0; d < shape.size(); ++d) {
        if (columns[k][d] >= 0 && columns[k][d] < shape[d]) continue;
        throw_layout_error(Code::CoordinateBounds,
                           {{"coordinate", shape_text(columns[k])}, {"shape", shape_text(shape)}});
      }
      places.push_back({{axis, int64_t{1} << k}});
      Elimination::Bits& vector = vectors.emplace_back();
      for (auto [d, bit] : bits) vector.push_back(((columns[k][d] >> bit) & 1) != 0);
    }
  }
  auto sum = [&](const Elimination::Bits& combination) {
    Point point;
    for (size_t p = 0; p < places.size(); ++p) {
      if (combination[p]) point[places[p].begin()->first] ^= places[p].begin()->second;
    }
    return point;
  };
  LinearLayout linear;
  Elimination elimination(places.size());
  for (size_t p = 0; p < places.size(); ++p) {
    if (auto zero = elimination.add(p, vectors[p])) linear.replica.push_back(sum(*zero));
  }
  for (size_t k = 0; k < bits.size(); ++k) {
    Elimination::Bits target(bits.size(), false);
    target[k] = true;
    auto combination = elimination.solve(target);
    if (!combination) {
      std::vector<int64_t> coordinate(shape.size(), 0);
      coordinate[bits[k].first] = int64_t{1} << bits[k].second;
      refuse_bits("element " + shape_text(coordinate) + " lies nowhere");
    }
    linear.index.push_back(sum(*combination));
  }
  return from_linear(linear);
}

}  // namespace helve
