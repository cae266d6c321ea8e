// What the elements of sorted parameters say of each other.
// Rows of one part end where those of the next begin: which tile writes them depends on data, and that no two do
// follows from its order.
#pragma once

#include <unordered_set>
#include <vector>

#include "helve/analysis/access.h"
#include "helve/analysis/proofs.h"

namespace helve::proofs {

/// What holds between all elements of sorted parameters that the conditions read.
std::vector<Expr> order_among(const std::vector<Expr>& conditions, const std::unordered_set<const Storage*>& constant);

/// Elements that are limited, as max(A[i], 0), become any values within the limits, equal ones the same: what has order
/// already needs no cases. The new variables.
std::vector<VarRef> loosen_limits(std::vector<Expr>& conditions);

/// The faults of a function that writes to its sorted parameters.
std::vector<Proof> prove_order(const AccessModel& model);

}  // namespace helve::proofs
