// What holds in every call of a function: its extents are 0 or more, and what it assumes.
// Calls are checked before anything runs, so proofs, schedules and passes all begin with these facts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "helve/arith/facts.h"
#include "helve/ir/tensor/function.h"

namespace helve {

/// As conditions.
std::vector<Expr> conditions_of_calls(const Function& f);

/// As facts.
Facts facts_of_calls(const Function& f);

/// Why a call could not check a condition, or never meets it; nothing if a function may assume it. That takes extents
/// and integer parameters in index arithmetic, which the host computes exactly.
struct AssumptionFault {
  std::string reason, remedy;
};
std::optional<AssumptionFault> fault_of_assumption(const Function& f, const Expr& condition);

/// The function that demands one more condition of its calls; itself if its calls meet the condition anyway.
FunctionRef with_assumption(const FunctionRef& f, const Expr& condition, const Span& span);

}  // namespace helve
