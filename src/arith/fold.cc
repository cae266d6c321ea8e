// Constant folding of one operator.
// Values are widened to 128 bits, computed exactly, and then checked (index) or wrapped (data), so no case overflows
// unseen.
#include "fold.h"

#include <cmath>
#include <limits>
#include <vector>

#include "helve/ir/expr/build.h"
#include "helve/ir/expr/rounding.h"

namespace helve {

namespace {

using Wide = __int128;
using WideResult = std::optional<Wide>;

Wide widen(int64_t pattern, DType dtype) {
  const bool big = dtype.code == TypeCode::UInt && dtype.bits == 64;
  return big ? Wide{static_cast<uint64_t>(pattern)} : Wide{pattern};
}

Wide wide_floor_div(Wide a, Wide b) { return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0); }

/// Exact for products of two int64; modulo 2^128 (enough to wrap to 64 bits) for those of two uint64.
Wide wide_product(Wide a, Wide b) {
  return static_cast<Wide>(static_cast<unsigned __int128>(a) * static_cast<unsigned __int128>(b));
}

WideResult fold_shift(Op op, DType dtype, Wide a, Wide b) {
  if (b < 0 || b >= (dtype.is_index() ? 64 : dtype.bits)) return std::nullopt;
  const Wide power = Wide{1} << static_cast<int>(b);
  return op == Op::ShiftLeft ? wide_product(a, power) : wide_floor_div(a, power);
}

WideResult fold_binary(Op op, DType dtype, Wide a, Wide b) {
  switch (op) {
    case Op::Add: return a + b;
    case Op::Sub: return a - b;
    case Op::Mul: return wide_product(a, b);
    case Op::FloorDiv: return b == 0 ? WideResult() : wide_floor_div(a, b);
    case Op::FloorMod: return b == 0 ? WideResult() : a - b * wide_floor_div(a, b);
    case Op::Min: return a < b ? a : b;
    case Op::Max: return a < b ? b : a;
    case Op::Lt: return a < b;
    case Op::Le: return a <= b;
    case Op::Gt: return a > b;
    case Op::Ge: return a >= b;
    case Op::Eq: return a == b;
    case Op::Ne: return a != b;
    case Op::And: return a != 0 && b != 0;
    case Op::Or: return a != 0 || b != 0;
    case Op::BitAnd: return a & b;
    case Op::BitOr: return a | b;
    case Op::BitXor: return a ^ b;
    case Op::ShiftLeft:
    case Op::ShiftRight: return fold_shift(op, dtype, a, b);
    default: return std::nullopt;
  }
}

WideResult fold_unary(Op op, Wide a) {
  switch (op) {
    case Op::Neg: return -a;
    case Op::Not: return a == 0;
    case Op::BitNot: return ~a;
    case Op::Abs: return a < 0 ? -a : a;
    default: return std::nullopt;
  }
}

bool gives_bool(Op op) {
  const OpRule rule = row_of(op).rule;
  return rule == OpRule::Compare || rule == OpRule::Logical;
}

/// Comparison of float constants; false for anything unordered except `!=`, as IEEE 754 says.
Expr fold_float_comparison(const Apply& node) {
  const FloatImm* a = as<FloatImm>(node.args[0]);
  const FloatImm* b = as<FloatImm>(node.args[1]);
  if (!a || !b) return {};
  switch (node.op) {
    case Op::Lt: return bool_imm(a->value < b->value, node.span);
    case Op::Le: return bool_imm(a->value <= b->value, node.span);
    case Op::Gt: return bool_imm(a->value > b->value, node.span);
    case Op::Ge: return bool_imm(a->value >= b->value, node.span);
    case Op::Eq: return bool_imm(a->value == b->value, node.span);
    case Op::Ne: return bool_imm(a->value != b->value, node.span);
    default: return {};
  }
}

/// Conversions of constants, as the builder folds them; from bool and to bool as well.
Expr fold_cast(const Cast& node) {
  if (const IntImm* value = as<IntImm>(node.value)) {
    if (node.dtype.is_bool()) return bool_imm(value->value != 0, node.span);
    if (value->dtype.is_bool()) return cast(int_imm(value->value, kIndex), node.dtype, node.span);
  } else if (!as<FloatImm>(node.value)) {
    return {};
  }
  const Expr folded = cast(node.value, node.dtype, node.span);
  return folded->kind == ExprKind::Cast ? Expr() : folded;
}

/// The negative of a float constant, which is exact.
Expr fold_float_negation(const Apply& node) {
  const FloatImm* value = node.op == Op::Neg ? as<FloatImm>(node.args[0]) : nullptr;
  return value ? float_imm(-value->value, node.dtype, node.span) : Expr();
}

}  // namespace

std::optional<int64_t> fold_values(Op op, DType operand, std::span<const int64_t> values) {
  if (op == Op::Select || operand.is_float()) return std::nullopt;
  WideResult wide = values.size() == 1 ? fold_unary(op, widen(values[0], operand))
                                       : fold_binary(op, operand, widen(values[0], operand), widen(values[1], operand));
  if (!wide) return std::nullopt;
  if (gives_bool(op)) return *wide != 0;
  if (operand.is_index()) {
    if (*wide < std::numeric_limits<int64_t>::min() || *wide > std::numeric_limits<int64_t>::max()) return std::nullopt;
    return static_cast<int64_t>(*wide);
  }
  return wrap_to(static_cast<int64_t>(*wide), operand);
}

Expr fold_constants(const Expr& e) {
  if (const Cast* cast = as<Cast>(e)) return fold_cast(*cast);
  const Apply* node = as<Apply>(e);
  if (!node || node->args.size() > 2) return {};
  const DType operand = node->args[0]->dtype;
  if (operand.is_float()) return node->args.size() == 2 ? fold_float_comparison(*node) : fold_float_negation(*node);
  std::vector<int64_t> values;
  for (const Expr& arg : node->args) {
    const int64_t* value = int_value(arg);
    if (!value) return {};
    values.push_back(*value);
  }
  std::optional<int64_t> folded = fold_values(node->op, operand, values);
  return folded ? int_imm(*folded, node->dtype, node->span) : Expr();
}

}  // namespace helve
