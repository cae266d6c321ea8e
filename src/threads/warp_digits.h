// Threads along one dimension, parted at the edge of a warp.
// Lanes of a warp exchange registers, warps exchange block memory: what crosses threads asks for one kind at a time.
#pragma once

#include "helve/ir/expr/expr.h"
#include "helve/layout/warp.h"
#include "helve/threads/thread_layout.h"

namespace helve {

/// `extent` steps of `stride` threads, all within a warp or all between warps.
struct ThreadDigit {
  int64_t extent;
  int64_t stride;
  bool in_warp() const { return stride < kWarp; }
};

/// The digits of an iter on `tx`, fastest first. Those in a warp have powers of two.
std::vector<ThreadDigit> split_at_warps(const Iter& iter);

/// The lanes of a warp that differ in more than these digits.
int64_t lanes_kept(const std::vector<ThreadDigit>& digits);

/// The number of the thread's lane among those: lanes that differ in these digits only have one place.
Expr lane_place(const Expr& tx, const std::vector<ThreadDigit>& digits);

}  // namespace helve
