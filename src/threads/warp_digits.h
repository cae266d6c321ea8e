// Threads along one dimension, split at the boundary of a warp.
// Lanes of a warp exchange data by registers, warps by shared memory; each digit is one or the other.
#pragma once

#include "helve/ir/expr/expr.h"
#include "helve/layout/warp.h"
#include "helve/threads/thread_layout.h"

namespace helve {

/// `extent` steps of `stride` threads, either all within a warp or all between warps.
struct ThreadDigit {
  int64_t extent;
  int64_t stride;
  bool in_warp() const { return stride < kWarp; }
};

/// The digits of an iter on `tx`, fastest first. Those within a warp have power-of-two extents.
std::vector<ThreadDigit> split_at_warps(const Iter& iter);

/// The number of lanes of a warp that differ in other digits than these.
int64_t lanes_kept(const std::vector<ThreadDigit>& digits);

/// The number of the thread's lane among those: lanes that differ in these digits only have the same one.
Expr lane_place(const Expr& tx, const std::vector<ThreadDigit>& digits);

}  // namespace helve
