// Construction of expressions by the type rules of the language.
// The constructors of nodes check nothing; expressions of users are built by these functions, which convert or refuse.
#pragma once

#include <variant>

#include "helve/ir/expr/expr.h"

namespace helve {

Expr int_imm(int64_t value, DType dtype = kIndex, Span span = {});
Expr bool_imm(bool value, Span span = {});
/// `value` is rounded to `dtype`.
Expr float_imm(double value, DType dtype, Span span = {});
VarRef make_var(std::string name, DType dtype = kIndex, Span span = {});

/// An operator on operands of any types: within one kind the wider type is used, `index` becomes the other's type, and
/// mixed kinds are refused (MixedTypes, IntegerDivision, WrongType, ZeroDivisor).
Expr apply(Op op, std::vector<Expr> args, Span span = {});

/// An operand of a front end: an expression, or a plain number, whose type is weak and follows the other operands.
using Operand = std::variant<Expr, bool, int64_t, double>;

/// As above with weak numbers: they take the type of the first typed operand; alone they are bool, index or float32. A
/// float number with an integer operand is refused (MixedTypes).
Expr apply_operands(Op op, const std::vector<Operand>& args, Span span = {});

/// A weak number as a constant of `dtype` (WrongType when it cannot be one: a fraction as an integer, an integer out of
/// range).
Expr constant_of(const Operand& number, DType dtype, Span span = {});

/// Explicit conversion. A cast to the same dtype is the value itself.
Expr cast(Expr value, DType dtype, Span span = {});

/// The bits of a value as another dtype of the same width: integers and floats in any pair; bool, index and int4 are
/// refused (WrongType).
Expr bitcast(Expr value, DType dtype, Span span = {});

/// The implicit conversion of a value to the element type it is stored to: index, int and float widen or round to a
/// float within the rules of a store; float to int is refused (WrongType).
Expr convert_for_store(Expr value, DType dtype, Span span = {});

/// Checks rank, index types and signs (IndexCount, IndexType, NegativeIndex).
Expr load(StorageRef buffer, std::vector<Expr> indices, Span span = {});
/// A load of a vector's lanes, in accesses of `width` bytes; 0: of each lane by itself.
Expr load_vector(StorageRef buffer, std::vector<Expr> indices, int64_t width, Span span = {});
Expr tile_load(StorageRef buffer, std::vector<Expr> indices, Span span = {});
Expr misalignment(StorageRef buffer, int64_t unit, Span span = {});
void check_indices(const Storage& buffer, const std::vector<Expr>& indices, Span span);
/// The checks that apply even to code that never runs: rank and types.
void check_index_types(const Storage& buffer, const std::vector<Expr>& indices, Span span);

/// The identity of max (`lowest`) or min (`!lowest`) for dtype: infinities for floats, extreme values for integers.
Expr extreme_imm(DType dtype, bool lowest, Span span = {});

inline Expr operator+(const Expr& a, const Expr& b) { return apply(Op::Add, {a, b}); }
inline Expr operator-(const Expr& a, const Expr& b) { return apply(Op::Sub, {a, b}); }
inline Expr operator*(const Expr& a, const Expr& b) { return apply(Op::Mul, {a, b}); }
inline Expr floor_div(const Expr& a, const Expr& b) { return apply(Op::FloorDiv, {a, b}); }
inline Expr floor_mod(const Expr& a, const Expr& b) { return apply(Op::FloorMod, {a, b}); }
inline Expr min(const Expr& a, const Expr& b) { return apply(Op::Min, {a, b}); }
inline Expr max(const Expr& a, const Expr& b) { return apply(Op::Max, {a, b}); }
inline Expr less(const Expr& a, const Expr& b) { return apply(Op::Lt, {a, b}); }
inline Expr logical_and(const Expr& a, const Expr& b) { return apply(Op::And, {a, b}); }
inline Expr select(const Expr& c, const Expr& a, const Expr& b) { return apply(Op::Select, {c, a, b}); }
Expr ceil_div(const Expr& a, const Expr& b);

/// The value of an integer constant expression node, if it is one.
inline const int64_t* int_value(const Expr& e) {
  const IntImm* i = as<IntImm>(e);
  return i ? &i->value : nullptr;
}
/// The value is part of the expression, and would end with a temporary one.
const int64_t* int_value(Expr&& e) = delete;

}  // namespace helve
