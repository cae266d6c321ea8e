// The elements that an atomic operation combines.
// Targets differ in how they walk them.
#pragma once

#include <functional>

#include "helve/ir/tensor/stmt.h"

namespace helve {

/// What an atomic operation updates, and the value for each element: a region is matched to the shape of dst.
struct AtomicUpdate {
  Region dst;
  Region tiles;  ///< of dst and value, whose tiles a walk follows
  std::function<Stmt(const std::vector<Expr>& at)> element;  ///< the store at the coordinates of dst
};

/// Nothing, with the reason in `declined`, where only the call decides which dimensions match.
std::optional<AtomicUpdate> atomic_update(const TileOp& op, std::string* declined);

}  // namespace helve
