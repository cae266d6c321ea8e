// The CuTe algebra by brute force.
// Plain digit counting over lists of (extent, stride), shared with no code of the room, judges every operation.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <vector>

#include "helve/layout/cute/algebra.h"

namespace helve::cute::oracle {

inline bool long_tests() { return std::getenv("HELVE_TEST_LONG") != nullptr; }

struct Digit {
  int64_t extent;
  int64_t stride;
};
using Digits = std::vector<Digit>;

inline Digits digits_of(const Layout& layout) {
  Digits digits;
  for (const Mode& mode : layout.modes()) digits.push_back({mode.extent, mode.stride});
  return digits;
}

/// The value at any index: the digits are floor remainders, the last one takes what is left.
inline int64_t value(const Digits& digits, int64_t index) {
  int64_t sum = 0;
  for (size_t k = 0; k < digits.size(); ++k) {
    int64_t digit = index;
    if (k + 1 < digits.size()) {
      digit = ((index % digits[k].extent) + digits[k].extent) % digits[k].extent;
      index = (index - digit) / digits[k].extent;
    }
    sum += digit * digits[k].stride;
  }
  return sum;
}

inline int64_t count(const Digits& digits) {
  int64_t product = 1;
  for (const Digit& digit : digits) product *= digit.extent;
  return product;
}

inline std::vector<int64_t> image(const Digits& digits) {
  std::vector<int64_t> values;
  for (int64_t i = 0, n = count(digits); i < n; ++i) values.push_back(value(digits, i));
  return values;
}
inline std::vector<int64_t> image(const Layout& layout) { return image(digits_of(layout)); }

inline bool injective(std::vector<int64_t> values) {
  std::sort(values.begin(), values.end());
  return std::adjacent_find(values.begin(), values.end()) == values.end();
}

/// Whether some digits have these values: tries every first extent.
inline bool is_layout(const std::vector<int64_t>& f) {
  int64_t n = static_cast<int64_t>(f.size());
  if (n == 1) return f[0] == 0;
  for (int64_t e = 2; e <= n; ++e) {
    if (n % e != 0) continue;
    bool fits = true;
    std::vector<int64_t> rest;
    for (int64_t x = 0; x < n && fits; ++x) {
      if (x % e == 0) rest.push_back(f[x]);
      fits = f[x] == f[x - x % e] + (x % e) * f[1];
    }
    if (fits && is_layout(rest)) return true;
  }
  return false;
}

/// Whether a layout R compatible with B has R(c) = A(B(c)).
inline bool composable(const Digits& a, const Digits& b) {
  std::vector<std::vector<int64_t>> parts;
  for (const Digit& digit : b) {
    std::vector<int64_t> f;
    for (int64_t x = 0; x < digit.extent; ++x) f.push_back(value(a, x * digit.stride));
    if (!is_layout(f)) return false;
    parts.push_back(f);
  }
  for (int64_t i = 0, n = count(b); i < n; ++i) {
    int64_t rest = i;
    int64_t sum = 0;
    for (size_t k = 0; k < b.size(); ++k) {
      sum += parts[k][rest % b[k].extent];
      rest /= b[k].extent;
    }
    if (sum != value(a, value(b, i))) return false;
  }
  return true;
}

inline Layout layout_of(const Digits& digits) {
  if (digits.empty()) return Layout();
  if (digits.size() == 1) return Layout(digits[0].extent, digits[0].stride);
  ModeTree tree = ModeTree::tuple_of(digits.size());
  for (const Digit& digit : digits) tree.append_leaf({digit.extent, digit.stride});
  return Layout(std::move(tree));
}

inline void factorizations(int64_t size, std::vector<int64_t>& extents, std::vector<std::vector<int64_t>>& all) {
  if (size == 1) all.push_back(extents);
  for (int64_t e = 2; e <= size; ++e) {
    if (size % e != 0) continue;
    extents.push_back(e);
    factorizations(size / e, extents, all);
    extents.pop_back();
  }
}

inline const std::vector<int64_t> kStrides{0, 1, 2, 3, 4, 5, 6, 7, 8, 16, 32};

/// Calls `visit(digits)` for every ordered factorization of `size` with strides of kStrides.
template <class Visit>
void for_each_layout(int64_t size, Visit&& visit) {
  std::vector<std::vector<int64_t>> all;
  std::vector<int64_t> extents;
  factorizations(size, extents, all);
  for (const std::vector<int64_t>& factors : all) {
    Digits digits;
    for (int64_t e : factors) digits.push_back({e, 0});
    std::vector<size_t> choice(factors.size(), 0);
    while (true) {
      for (size_t k = 0; k < choice.size(); ++k) digits[k].stride = kStrides[choice[k]];
      visit(digits);
      size_t k = 0;
      while (k < choice.size() && ++choice[k] == kStrides.size()) choice[k++] = 0;
      if (k == choice.size()) break;
    }
  }
}

/// A random nested layout of at most `size` elements.
inline Layout random_layout(std::mt19937_64& random, int64_t size, bool negative = false) {
  static const std::vector<int64_t> strides{0, 1, 1, 2, 2, 3, 4, 4, 5, 6, 8, 8, 12, 16, 24, 32, 48, 64};
  Digits digits;
  int64_t product = 1;
  size_t leaves = 1 + random() % 5;
  while (digits.size() < leaves) {
    int64_t extent = std::vector<int64_t>{1, 2, 2, 3, 4, 4, 5, 6, 8}[random() % 9];
    if (product * extent > size) extent = 1;
    int64_t stride = random() % 3 == 0 ? product : strides[random() % strides.size()];
    if (negative && random() % 4 == 0) stride = -stride;
    digits.push_back({extent, stride});
    product *= extent;
  }
  Layout layout = layout_of(digits);
  for (int level = 0; level < 3 && layout.rank() > 1; ++level) {
    size_t begin = random() % layout.rank();
    size_t end = begin + 1 + random() % (layout.rank() - begin);
    if (random() % 2 == 0) layout = group(layout, begin, end);
  }
  return layout;
}

}  // namespace helve::cute::oracle
