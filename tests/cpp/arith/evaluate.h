// An evaluator of integer expressions, independent of the code under test.
// 128-bit values stand for unbounded integers: tests keep operands small enough that nothing overflows them.
#pragma once

#include <cstdlib>
#include <optional>
#include <random>
#include <unordered_map>

#include "helve/ir/expr/build.h"
#include "helve/ir/expr/expr.h"
#include "helve/ir/expr/text.h"

namespace helve::testing {

using Wide = __int128;
using Assignment = std::unordered_map<const Var*, Wide>;

inline bool long_tests() {
  const char* flag = std::getenv("HELVE_TEST_LONG");
  return flag != nullptr && std::string(flag) == "1";
}

inline Wide floor_quotient_of(Wide a, Wide b) {
  Wide q = a / b;
  if (q * b != a && ((a < 0) != (b < 0))) --q;
  return q;
}

/// The value as a member of `dtype`: index keeps all, data integers wrap.
inline Wide as_member(Wide value, DType dtype) {
  if (dtype.is_bool()) return value != 0;
  if (dtype.is_index()) return value;
  const Wide size = Wide{1} << dtype.bits;
  Wide low = value - size * floor_quotient_of(value, size);
  return dtype.code == TypeCode::Int && low >= size / 2 ? low - size : low;
}

std::optional<Wide> evaluate(const Expr& e, const Assignment& at);

inline std::optional<Wide> evaluate_operator(Op op, DType operand, Wide a, Wide b) {
  Wide out = 0;
  switch (op) {
    case Op::Add: return __builtin_add_overflow(a, b, &out) ? std::nullopt : std::optional(out);
    case Op::Sub: return __builtin_sub_overflow(a, b, &out) ? std::nullopt : std::optional(out);
    case Op::Mul: return __builtin_mul_overflow(a, b, &out) ? std::nullopt : std::optional(out);
    case Op::FloorDiv: return b == 0 ? std::nullopt : std::optional(floor_quotient_of(a, b));
    case Op::FloorMod: return b == 0 ? std::nullopt : std::optional(a - b * floor_quotient_of(a, b));
    case Op::Neg: return -a;
    case Op::Min: return a < b ? a : b;
    case Op::Max: return a > b ? a : b;
    case Op::Lt: return a < b;
    case Op::Le: return a <= b;
    case Op::Gt: return a > b;
    case Op::Ge: return a >= b;
    case Op::Eq: return a == b;
    case Op::Ne: return a != b;
    case Op::Not: return a == 0;
    case Op::BitAnd: return a & b;
    case Op::BitOr: return a | b;
    case Op::BitXor: return a ^ b;
    case Op::BitNot: return ~a;
    case Op::ShiftLeft:
      if (b < 0 || b > 62 || (!operand.is_index() && b >= operand.bits)) return std::nullopt;
      return __builtin_mul_overflow(a, Wide{1} << static_cast<int>(b), &out) ? std::nullopt : std::optional(out);
    case Op::ShiftRight:
      if (b < 0 || b > 62 || (!operand.is_index() && b >= operand.bits)) return std::nullopt;
      return floor_quotient_of(a, Wide{1} << static_cast<int>(b));
    case Op::Abs: return a < 0 ? -a : a;
    default: return std::nullopt;
  }
}

/// The value of `e`; empty where it faults (zero divisor, shift out of range) or leaves 128 bits. `and`, `or` and
/// selections are lazy.
inline std::optional<Wide> evaluate(const Expr& e, const Assignment& at) {
  if (const IntImm* i = as<IntImm>(e)) return as_member(i->value, e->dtype);
  if (const Var* var = as<Var>(e)) return at.at(var);
  if (const Cast* cast = as<Cast>(e)) {
    std::optional<Wide> value = evaluate(cast->value, at);
    return value ? std::optional(as_member(*value, e->dtype)) : value;
  }
  const Apply* node = as<Apply>(e);
  if (node == nullptr) return std::nullopt;
  std::optional<Wide> first = evaluate(node->args[0], at);
  if (!first) return first;
  if (node->op == Op::Select) return evaluate(node->args[*first != 0 ? 1 : 2], at);
  if (node->op == Op::And && *first == 0) return Wide{0};
  if (node->op == Op::Or && *first != 0) return Wide{1};
  std::optional<Wide> second = node->args.size() > 1 ? evaluate(node->args[1], at) : first;
  if (!second || node->op == Op::And || node->op == Op::Or) return second;
  std::optional<Wide> value = evaluate_operator(node->op, node->args[0]->dtype, *first, *second);
  return value ? std::optional(as_member(*value, e->dtype)) : value;
}

}  // namespace helve::testing
