// Stores that compute the new value of an element from its old one.
// Iterations that make them depend on each other, but a reduction or an atomic operation may combine their values in
// any order. Proofs and checked runs name the same remedy.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "helve/ir/tensor/stmt.h"

namespace helve {

/// A store of `value` to an element, made where all `conditions` hold.
struct Update {
  const Buffer* buffer;
  std::vector<Expr> element;
  Expr value;
  std::vector<Expr> conditions = {};
};
Update update_of(const Store& store);

/// What the element becomes: the value, or what the operator of the store makes of the element and the value.
Expr stored_value(const Store& store);

/// The value that a load of an element gives to which `value` was stored: expressions of floats below 32 bits are
/// computed in float32, and a store rounds what they give.
Expr as_stored(const Expr& value);

/// Does the value or a condition read the element?
bool reads_old(const Update& update);

/// The operator that combines the old value with others, if no order matters: `Add` for sums and differences, `Mul`,
/// `Max` and `Min`, `And` and `Or`. `if x > s[0]: s[0] = x` is a maximum.
std::optional<Op> combination(const Update& update);

/// A store whose order among others of the same element and operator is free: an update, or a store of integers that
/// combines the old value with others, `s = s + x`, since integers wrap and their operators are associative.
struct Reduction {
  StoreMode mode;  ///< of an update
  Expr operand;
  const ExprNode* old = nullptr;  ///< the load of the old value, if the store has one
};
std::optional<Reduction> reduction_of(const Store& store);
/// The same, but of plain stores of floats as well, whose order is part of the program.
std::optional<Reduction> reduction_in_some_order(const Store& store);

/// "T.reduce_max"; empty if there is none.
std::string reduction_text(Op combination);

/// The equivalent atomic operation, "T.atomic_max(S[0], ...)"; empty if there is none.
std::string atomic_text(const Update& update);

/// What to write in place of parallel iterations that update a buffer which is private to each of them.
std::string private_remedy(const Update& update);

}  // namespace helve
