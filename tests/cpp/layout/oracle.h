// The definition of layouts by enumeration, for comparison.
// Written from the formulas alone, without the library's algebra: all indices, all replicas, every choice tried.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "helve/layout/layout.h"
#include "helve/layout/notation.h"

namespace helve::oracle {

/// A point without zero coordinates, so that equal places compare equal.
using Place = Point;
using Places = std::set<Place>;

inline Place place(const Point& point) {
  Place result;
  for (const auto& [axis, value] : point) {
    if (value != 0) result[axis] = value;
  }
  return result;
}

inline int64_t swizzled(const Swizzle& s, int64_t address) {
  int64_t result = address;
  for (int bit = 0; bit < s.bits; ++bit) {
    int from = s.base + bit + (s.shift > 0 ? s.shift : 0);
    int to = s.base + bit + (s.shift < 0 ? -s.shift : 0);
    if ((address >> from) & 1) result ^= int64_t{1} << to;
  }
  return result;
}

/// {D(x) + r + O}, swizzled, by counting through every replica digit.
inline Places points(const Layout& layout, int64_t x) {
  Point base = layout.offset();
  for (size_t k = layout.shard().size(); k-- > 0;) {
    const Iter& iter = layout.shard()[k];
    base[iter.axis] += (x % iter.extent) * iter.stride;
    x /= iter.extent;
  }
  int64_t count = 1;
  for (const Iter& iter : layout.replica()) count *= iter.extent;
  Places result;
  for (int64_t r = 0; r < count; ++r) {
    Point point = base;
    int64_t rest = r;
    for (const Iter& iter : layout.replica()) {
      point[iter.axis] += (rest % iter.extent) * iter.stride;
      rest /= iter.extent;
    }
    if (auto it = point.find(axes::m()); it != point.end()) it->second = swizzled(layout.swizzle(), it->second);
    result.insert(place(point));
  }
  return result;
}

inline int64_t count(const Layout& layout) {
  int64_t product = 1;
  for (const Iter& iter : layout.shard()) product *= iter.extent;
  return product;
}

using Image = std::vector<Places>;
inline Image image(const Layout& layout) {
  Image result;
  for (int64_t x = 0; x < count(layout); ++x) result.push_back(points(layout, x));
  return result;
}

inline Places applied(const Layout& layout, int64_t x) {
  Places result;
  for (const Point& point : layout.apply(x)) result.insert(place(point));
  return result;
}

inline int64_t span(const Image& image, Axis axis) {
  bool first = true;
  int64_t low = 0;
  int64_t high = 0;
  for (const Places& places : image) {
    for (const Place& p : places) {
      auto it = p.find(axis);
      int64_t value = it == p.end() ? 0 : it->second;
      low = first ? value : std::min(low, value);
      high = first ? value : std::max(high, value);
      first = false;
    }
  }
  return high - low + 1;
}

inline bool injective(const Image& image) {
  Places seen;
  for (const Places& places : image) {
    for (const Place& p : places) {
      if (!seen.insert(p).second) return false;
    }
  }
  return true;
}

/// The shard part alone: the displacement of every index.
inline std::vector<Place> displacements(const Layout& layout) {
  Layout shard(layout.shard());
  std::vector<Place> result;
  for (int64_t x = 0; x < count(layout); ++x) result.push_back(*points(shard, x).begin());
  return result;
}

inline Place combine(const Place& a, int64_t factor, const Place& b) {
  Place result = a;
  for (const auto& [axis, value] : b) {
    result[axis] += factor * value;
    if (result[axis] == 0) result.erase(axis);
  }
  return result;
}

/// Whether some iters give the displacements `f` (f[0] is the origin): tries every last extent.
inline bool representable(const std::vector<Place>& f) {
  int64_t size = static_cast<int64_t>(f.size());
  if (size == 1) return f[0].empty();
  if (f[1].size() > 1) return false;  // one axis an iter
  for (int64_t e = 2; e <= size; ++e) {
    if (size % e != 0) continue;
    bool fits = true;
    std::vector<Place> rest;
    for (int64_t x = 0; x < size && fits; ++x) {
      if (x % e == 0) rest.push_back(f[x]);
      fits = f[x] == combine(f[x - x % e], x % e, f[1]);
    }
    if (fits && representable(rest)) return true;
  }
  return false;
}

/// Whether iters exist for `f` that fall into blocks of `outer` and size / outer elements.
inline bool groupable(const std::vector<Place>& f, int64_t outer) {
  int64_t inner = static_cast<int64_t>(f.size()) / outer;
  std::vector<Place> slow;
  std::vector<Place> fast(f.begin(), f.begin() + inner);
  for (int64_t x = 0; x < outer; ++x) slow.push_back(f[x * inner]);
  for (int64_t x = 0; x < outer; ++x) {
    for (int64_t y = 0; y < inner; ++y) {
      if (f[x * inner + y] != combine(slow[x], 1, fast[y])) return false;
    }
  }
  return representable(slow) && representable(fast);
}

/// Every ordered factorization of `size` into extents above 1.
inline void factorizations(int64_t size, std::vector<int64_t>& extents, std::vector<std::vector<int64_t>>& all) {
  if (size == 1) all.push_back(extents);
  for (int64_t e = 2; e <= size; ++e) {
    if (size % e != 0) continue;
    extents.push_back(e);
    factorizations(size / e, extents, all);
    extents.pop_back();
  }
}

inline std::vector<std::vector<int64_t>> factorizations(int64_t size) {
  std::vector<std::vector<int64_t>> all;
  std::vector<int64_t> extents;
  factorizations(size, extents, all);
  return all;
}

/// Calls `visit` with every list of iters of `size` elements whose steps (stride, axis) are among `steps`.
template <class Visit>
void for_each_shard(int64_t size, const std::vector<std::pair<int64_t, Axis>>& steps, Visit&& visit) {
  for (const std::vector<int64_t>& extents : factorizations(size)) {
    std::vector<size_t> choice(extents.size(), 0);
    while (true) {
      Iters iters;
      for (size_t k = 0; k < extents.size(); ++k) {
        iters.push_back({extents[k], steps[choice[k]].first, steps[choice[k]].second});
      }
      visit(iters);
      size_t k = 0;
      while (k < choice.size() && ++choice[k] == steps.size()) choice[k++] = 0;
      if (k == choice.size()) break;
    }
  }
}

inline std::vector<std::pair<int64_t, Axis>> steps_on(const std::vector<int64_t>& strides, Axis axis) {
  std::vector<std::pair<int64_t, Axis>> steps;
  for (int64_t stride : strides) steps.push_back({stride, axis});
  return steps;
}

inline bool long_tests() { return std::getenv("HELVE_TEST_LONG") != nullptr; }

/// Random layouts of a few iters on a few axes.
class RandomLayouts {
 public:
  explicit RandomLayouts(uint32_t seed) : random_(seed) {}
  int64_t number(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random_); }
  Axis axis() {
    static const std::vector<Axis> all = {axes::m(), axes::laneid(), axes::x()};
    return all[static_cast<size_t>(number(0, 2))];
  }
  Iter iter(int64_t max_extent) { return {number(1, max_extent), number(-3, 9), axis()}; }
  Layout layout(int64_t max_iters, int64_t max_extent, bool swizzle) {
    Iters shard;
    Iters replica;
    Point offset;
    for (int64_t k = number(0, max_iters); k > 0; --k) shard.push_back(iter(max_extent));
    for (int64_t k = number(0, 2); k > 0; --k) replica.push_back(iter(3));
    if (number(0, 1)) offset[axis()] = number(-5, 20);
    Swizzle s;
    if (swizzle && number(0, 1)) {
      int bits = static_cast<int>(number(1, 2));
      int shift = static_cast<int>(number(bits, 3)) * (number(0, 1) ? 1 : -1);
      s = Swizzle{bits, static_cast<int>(number(0, 2)), shift};
    }
    return Layout(shard, replica, offset, s);
  }

 private:
  std::mt19937 random_;
};

/// The text of what `call` throws as `Error`; a failure when it throws nothing.
template <class Error, class Call>
std::string refusal(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return "";
}

}  // namespace helve::oracle
