// How expressions and stores vary over the lanes of a vectorized loop.
// A loop becomes vector code only where running its lanes in step provably means the same as running them in order.
#pragma once

#include <functional>
#include <optional>

#include "helve/ir/tensor/function.h"

namespace helve {

/// The lanes of a vectorized loop in lowered code, at most.
inline constexpr int64_t kMaxLanes = 64;

/// The step of a variable from lane to lane: 0 when it is equal in all lanes, nothing when it varies otherwise.
using StepOfVar = std::function<std::optional<int64_t>(const Var*)>;

/// The constant step of an expression from lane to lane, or nothing.
std::optional<int64_t> lane_step(const Expr& e, const StepOfVar& step_of);

/// The constant step of an expression from two lanes to the next two, each lane with an even number and the next one
/// having the same value; `lane` is the loop's variable, even in lane 0. Nothing where that is not known.
std::optional<int64_t> pair_step(const Expr& e, const Var* lane, const StepOfVar& step_of);

/// May the iterations of this one-variable loop run in step, each statement for all of them before the next? True when
/// the body has only stores, binds, conditions and loops with equal bounds in all lanes, and what a lane stores no
/// other lane touches.
bool lanes_independent(const For& loop, const std::vector<MayAlias>& may_alias);

}  // namespace helve
