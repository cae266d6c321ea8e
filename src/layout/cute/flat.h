// Flat lists of modes: what the algebra works on once the structure is out of the way.
// Two flat forms exist, and they differ only in how the last mode ends; keeping both here keeps them apart.
#pragma once

#include "checked.h"
#include "helve/layout/cute/layout.h"

namespace helve::cute {

inline bool continues(const Mode& left, const Mode& right) {
  int64_t end = 0;
  return !__builtin_mul_overflow(left.extent, left.stride, &end) && end == right.stride;
}

/// The shortest modes with the same values on [0, size): no extent 1, no mode that continues the one before. May be
/// empty.
inline void append_coalesced(Modes& result, const Mode* first, const Mode* last) {
  for (; first != last; ++first) {
    if (first->extent == 1) continue;
    if (!result.empty() && continues(result.back(), *first)) {
      result.back().extent *= first->extent;
    } else {
      result.push_back(*first);
    }
  }
}

/// The same for all indices: the last mode has no end, so it is kept even with extent 1, and its extent means nothing.
inline Modes coalesce_endless(const Modes& modes) {
  Modes result;
  append_coalesced(result, modes.begin(), modes.end() - 1);
  if (result.empty() || !continues(result.back(), modes.back())) result.push_back(modes.back());
  return result;
}

/// Modes as a layout of depth 0 or 1; 1:0 for none.
inline Layout flat_layout(const Modes& modes) { return Layout(modes.begin(), modes.end()); }

/// Modes of extent above 1 and stride other than 0, by stride; `prefix` is the index of the mode's first step.
struct PlacedMode {
  int64_t extent;
  int64_t stride;
  int64_t prefix;
};
using PlacedModes = InlineVector<PlacedMode, 6>;
inline PlacedModes sort_by_stride(const Modes& modes) {
  PlacedModes sorted;
  int64_t prefix = 1;
  for (const Mode& mode : modes) {
    if (mode.extent > 1 && mode.stride != 0) {
      size_t k = sorted.size();
      sorted.push_back({mode.extent, mode.stride, prefix});
      for (; k > 0 && sorted[k - 1].stride > mode.stride; --k) std::swap(sorted[k], sorted[k - 1]);
    }
    prefix *= mode.extent;
  }
  return sorted;
}

}  // namespace helve::cute
