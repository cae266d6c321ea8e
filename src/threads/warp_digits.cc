// Threads along one dimension, split at the boundary of a warp.
// A lane's number without some digits: their bits are removed.
#include "warp_digits.h"

#include <algorithm>

#include "helve/ir/expr/build.h"
#include "helve/support/diagnostic.h"

namespace helve {

std::vector<ThreadDigit> split_at_warps(const Iter& iter) {
  std::vector<ThreadDigit> out;
  if (iter.axis != axes::tx() || iter.extent == 1) return out;
  const int64_t inside = iter.stride < kWarp ? std::min(iter.extent, kWarp / iter.stride) : 1;
  HELVE_CHECK(iter.extent % inside == 0 && (inside & (inside - 1)) == 0, "threads along an uneven part of a warp");
  if (inside > 1) out.push_back({inside, iter.stride});
  if (iter.extent > inside) out.push_back({iter.extent / inside, std::max(iter.stride, kWarp)});
  return out;
}

int64_t lanes_kept(const std::vector<ThreadDigit>& digits) {
  int64_t lanes = kWarp;
  for (const ThreadDigit& digit : digits) {
    if (digit.in_warp()) lanes /= digit.extent;
  }
  return lanes;
}

Expr lane_place(const Expr& tx, const std::vector<ThreadDigit>& digits) {
  Expr lane = floor_mod(tx, int_imm(kWarp));
  std::vector<ThreadDigit> inside;
  for (const ThreadDigit& digit : digits) {
    if (digit.in_warp()) inside.push_back(digit);
  }
  // From the slowest digit down, each is removed from the lane's number.
  std::sort(inside.begin(), inside.end(),
            [](const ThreadDigit& a, const ThreadDigit& b) { return a.stride > b.stride; });
  for (const ThreadDigit& digit : inside) {
    const Expr above = floor_div(lane, int_imm(digit.stride * digit.extent));
    lane = above * int_imm(digit.stride) + floor_mod(lane, int_imm(digit.stride));
  }
  return lane;
}

}  // namespace helve
