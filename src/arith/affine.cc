// The affine abstraction of expressions.
// Everything is decided on the expression, so that the translation to isl is total.
#include "affine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "helve/ir/expr/build.h"
#include "helve/ir/expr/text.h"
#include "helve/ir/expr/visit.h"

namespace helve {

namespace {

/// Does every value of the interval fit the integer type?
bool fits(const Interval& range, DType dtype) {
  if (!dtype.is_data_int()) return false;
  const bool is_signed = dtype.code == TypeCode::Int;
  if (dtype.bits >= 64) return is_signed ? range.low && range.high : range.at_least(0) && range.high;
  const int64_t size = int64_t{1} << (is_signed ? dtype.bits - 1 : dtype.bits);
  return range.within(is_signed ? -size : 0, size - 1);
}

/// A node without conversions: a variable of a data type stands for its value as an integer.
Expr make(Op op, std::vector<Expr> args, DType dtype = kIndex) { return make_ref<Apply>(dtype, op, std::move(args)); }

Expr remainder(const Expr& value, const Expr& quotient, int64_t divisor) {
  return make(Op::Sub, {value, make(Op::Mul, {quotient, int_imm(divisor)})});
}

bool is_comparison(Op op) { return row_of(op).rule == OpRule::Compare; }

}  // namespace

Expr AffineAbstraction::operator()(const Expr& e) { return e->dtype.is_bool() ? condition(e) : index(e); }

std::vector<Expr> inexact_parts(const Expr& e, const Translation& translation) {
  AffineAbstraction abstract(translation);
  abstract(e);
  std::vector<Expr> out;
  for (const Expr& part : abstract.parts()) {
    if (std::none_of(out.begin(), out.end(), [&](const Expr& known) { return same_expr(known, part); })) {
      out.push_back(part);
    }
  }
  return out;
}

bool AffineAbstraction::repeats(const Expr& e) const {
  bool pure = true;
  walk(e, [&](const Expr& node) {
    const Load* load = as<Load>(node);
    if (load) pure &= translation_.constant && translation_.constant->contains(load->buffer.get());
    if (node->kind == ExprKind::TileLoad) pure = false;
  });
  return pure;
}

Expr AffineAbstraction::unknown(const Expr& e) {
  const bool pure = repeats(e);
  VarRef var;
  if (pure) {
    for (const auto& [known, value] : known_) {
      if (same_expr(known, e)) var = value;
    }
  }
  if (!var) {
    var = make_var("unknown");
    unknowns_.push_back(var);
    parts_.push_back(e);
    if (pure) known_.emplace_back(e, var);
    varying_ += !pure;
    if (reason_.empty()) reason_ = fmt::format("'{}' is not affine", brief_text(e));
  }
  return e->dtype.is_bool() ? make(Op::Le, {int_imm(1), Expr(var)}, kBool) : Expr(var);
}

Expr AffineAbstraction::data_integer(const Expr& e) {
  if (const IntImm* value = as<IntImm>(e)) return int_imm(value->value);
  if (e->kind == ExprKind::Var && e->dtype.is_data_int()) return e;
  const Cast* cast = as<Cast>(e);
  if (!cast) return {};
  if (cast->value->dtype.is_index()) {
    static const Facts nothing;
    const Facts& facts = translation_.facts ? translation_.facts() : nothing;
    return fits(interval_of(cast->value, facts), e->dtype) ? index(cast->value) : Expr();
  }
  const DType from = cast->value->dtype;
  const bool same_sign = from.is_data_int() && from.code == e->dtype.code;
  return same_sign && from.bits <= e->dtype.bits ? data_integer(cast->value) : Expr();
}

Expr AffineAbstraction::by_constant(const Expr& e, const Apply& node) {
  const int64_t* right = int_value(node.args[1]);
  if (!right) return unknown(e);
  const int64_t c = *right;
  const Expr left = index(node.args[0]);
  switch (node.op) {
    case Op::FloorDiv:
    case Op::FloorMod: {
      if (c == 0 || c == std::numeric_limits<int64_t>::min()) return unknown(e);
      const Expr quotient = make(Op::FloorDiv, {c > 0 ? left : make(Op::Neg, {left}), int_imm(std::abs(c))});
      return node.op == Op::FloorDiv ? quotient : remainder(left, quotient, c);
    }
    case Op::ShiftLeft: return c >= 0 && c < 62 ? make(Op::Mul, {left, int_imm(int64_t{1} << c)}) : unknown(e);
    case Op::ShiftRight: return c >= 0 && c < 62 ? make(Op::FloorDiv, {left, int_imm(int64_t{1} << c)}) : unknown(e);
    case Op::BitAnd: {
      if (c < 0 || c == std::numeric_limits<int64_t>::max() || (c & (c + 1)) != 0) return unknown(e);
      return c == 0 ? int_imm(0) : remainder(left, make(Op::FloorDiv, {left, int_imm(c + 1)}), c + 1);
    }
    default: return unknown(e);
  }
}

Expr AffineAbstraction::index_operator(const Expr& e, const Apply& node) {
  switch (node.op) {
    case Op::Add:
    case Op::Sub:
    case Op::Min:
    case Op::Max: return make(node.op, {index(node.args[0]), index(node.args[1])});
    case Op::Neg: return make(Op::Neg, {index(node.args[0])});
    case Op::BitNot: return make(Op::Sub, {int_imm(-1), index(node.args[0])});
    case Op::Abs: {
      const Expr value = index(node.args[0]);
      return make(Op::Max, {value, make(Op::Neg, {value})});
    }
    case Op::Mul: {
      const bool left = int_value(node.args[0]), right = int_value(node.args[1]);
      if (!left && !right) return unknown(e);
      return make(Op::Mul, {index(node.args[0]), index(node.args[1])});
    }
    case Op::Select: return make(Op::Select, {condition(node.args[0]), index(node.args[1]), index(node.args[2])});
    default: return node.args.size() == 2 ? by_constant(e, node) : unknown(e);
  }
}

/// What is unknown stands for another value each time, so only parts without such have one abstraction.
template <class F>
Expr AffineAbstraction::once(const Expr& e, F&& f) {
  if (!is_large(e)) return f();
  if (auto known = abstracted_.find(e); known != abstracted_.end()) return known->second;
  const size_t before = varying_;
  Expr out = f();
  if (varying_ == before) abstracted_.emplace(e, out);
  return out;
}

Expr AffineAbstraction::index(const Expr& e) {
  return once(e, [&] { return index_once(e); });
}

Expr AffineAbstraction::condition(const Expr& e) {
  return once(e, [&] { return condition_once(e); });
}

Expr AffineAbstraction::index_once(const Expr& e) {
  if (e->dtype.is_index()) {
    if (e->kind == ExprKind::IntImm || e->kind == ExprKind::Var) return e;
    if (const Apply* node = as<Apply>(e)) return index_operator(e, *node);
    const Cast* cast = as<Cast>(e);
    if (cast && cast->value->dtype.is_bool()) return make(Op::Select, {condition(cast->value), int_imm(1), int_imm(0)});
    const Expr value = cast ? data_integer(cast->value) : Expr();
    return value ? value : unknown(e);
  }
  const Expr value = data_integer(e);
  return value ? value : unknown(e);
}

Expr AffineAbstraction::condition_once(const Expr& e) {
  if (e->kind == ExprKind::IntImm) return e;
  const Apply* node = as<Apply>(e);
  if (!node) return unknown(e);
  switch (node->op) {
    case Op::And:
    case Op::Or: return make(node->op, {condition(node->args[0]), condition(node->args[1])}, kBool);
    case Op::Not: return make(Op::Not, {condition(node->args[0])}, kBool);
    case Op::Select: {
      const Expr chosen = condition(node->args[0]);
      const Expr first = make(Op::And, {chosen, condition(node->args[1])}, kBool);
      const Expr second = make(Op::And, {make(Op::Not, {chosen}, kBool), condition(node->args[2])}, kBool);
      return make(Op::Or, {first, second}, kBool);
    }
    default: break;
  }
  if (!is_comparison(node->op)) return unknown(e);
  Expr left = node->args[0], right = node->args[1];
  if (left->dtype.is_index()) {
    left = index(left);
    right = index(right);
  } else {
    left = left->dtype.is_data_int() ? data_integer(left) : Expr();
    right = right->dtype.is_data_int() ? data_integer(right) : Expr();
  }
  if (!left || !right) return unknown(e);
  return make(node->op, {left, right}, kBool);
}

}  // namespace helve
