// Between the points of index bits and bases, what each bit of a place contributes to the coordinate.
// The two are inverse matrices over F2; they are inverted by elimination on words.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "helve/layout/linear.h"
#include "helve/layout/notation.h"
#include "helve/support/text.h"
#include "integers.h"

namespace helve {

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

/// The bits of `shape`, as (dimension, bit), lowest bit of the flat index first; `refuse` gets the reason where there
/// are none.
template <class Refuse>
std::vector<std::pair<size_t, int>> shape_bits(const std::vector<int64_t>& shape, Refuse&& refuse) {
  layout_detail::shape_product(shape);
  std::vector<std::pair<size_t, int>> bits;
  for (size_t d = shape.size(); d-- > 0;) {
    const auto extent = static_cast<uint64_t>(shape[d]);
    if (!std::has_single_bit(extent)) {
      refuse(fmt::format("extent {} of shape {} is no power of two", shape[d], shape_text(shape)));
    }
    for (int bit = 0; bit < std::countr_zero(extent); ++bit) bits.push_back({d, bit});
  }
  return bits;
}

[[noreturn]] void refuse_bits(const std::string& reason) {
  throw_layout_error(Code::BitsNotALayout, {{"reason", reason}});
}

}  // namespace

LinearBases to_bases(const Layout& layout, const std::vector<int64_t>& shape) {
  layout_detail::check_admitted(layout, shape);
  auto refuse = [&](const std::string& reason) {
    throw_layout_error(Code::NotBitLinear, {{"layout", to_string(layout)}, {"reason", reason}});
  };
  auto bits = shape_bits(shape, refuse);
  LinearLayout linear = to_linear(layout);
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
  auto bits = shape_bits(shape, refuse_bits);
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
      refuse_bits("element " + shape_text(coordinate) + " has no place");
    }
    linear.index.push_back(sum(*combination));
  }
  return from_linear(linear);
}

}  // namespace helve
