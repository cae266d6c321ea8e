// The elements that an atomic operation combines.
// Targets differ in the order in which they visit them.
#pragma once

#include <functional>

#include "helve/ir/tensor/stmt.h"

namespace helve {

/// The updated elements of an atomic operation, and the value for each: a region is matched to the shape of dst.
struct AtomicUpdate {
  Region dst;
  Region tiles;  ///< of dst and value, whose tiles the traversal follows
  std::function<Stmt(const std::vector<Expr>& at)> element;  ///< the store at the coordinates of dst
};

/// Nothing, with the reason in `declined`, if only the call determines which dimensions match.
std::optional<AtomicUpdate> atomic_update(const TileOp& op, std::string* declined);

}  // namespace helve
