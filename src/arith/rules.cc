// The tables of rewrite rules.
// Termination: every rule decreases the weight of the expression, a natural number. With w and v the weights of the
// operands: variable 1, constant 1 (negative: 10), w // v: 2w + v + 1, shifts: 3w + v + 5, w & v: w + v + 20, ~w: w +
// 20, `and` and `or`: w + 2v + 1, not w: 2w, selection under w: 3w + the others + 1, -w: w + 2, every other operator:
// the sum of its operands' + 1. Each is monotone in each operand, so what shrinks at its root shrinks the whole.
#include "helve/arith/rules.h"

#include "helve/ir/expr/build.h"

namespace helve {

namespace {

struct Tables {
  std::vector<VarRef> constants;
  std::vector<Rule> rules;
  std::vector<SumRule> sums;
};

Expr eq(const Expr& a, const Expr& b) { return apply(Op::Eq, {a, b}); }
Expr ge(const Expr& a, const Expr& b) { return apply(Op::Ge, {a, b}); }
Expr bit_and(const Expr& a, const Expr& b) { return apply(Op::BitAnd, {a, b}); }
Expr not_(const Expr& a) { return apply(Op::Not, {a}); }
Expr or_(const Expr& a, const Expr& b) { return apply(Op::Or, {a, b}); }
Expr neg(const Expr& a) { return apply(Op::Neg, {a}); }

void add_index_rules(Tables& t, const Expr& x, const Expr& a, const Expr& b) {
  const RuleDomain index = RuleDomain::Index;
  const Expr zero = int_imm(0), one = int_imm(1);
  auto add = [&](std::string_view name, Expr left, Expr right, Expr condition = {}) {
    t.rules.push_back({name, index, std::move(left), std::move(right), std::move(condition)});
  };
  const Expr positive = logical_and(less(zero, a), less(zero, b));
  add("negative divisor", floor_div(x, a), floor_div(neg(x), neg(a)), less(a, zero));
  add("negative modulus", floor_mod(x, a), neg(floor_mod(neg(x), neg(a))), less(a, zero));
  add("quotient of quotient", floor_div(floor_div(x, a), b), floor_div(x, a * b), positive);
  add("quotient of remainder", floor_div(floor_mod(x, a), b), floor_mod(floor_div(x, b), floor_div(a, b)),
      logical_and(positive, eq(floor_mod(a, b), zero)));
  add("remainder of remainder", floor_mod(floor_mod(x, a), b), floor_mod(x, b),
      logical_and(positive, eq(floor_mod(a, b), zero)));
  const Expr shift = logical_and(ge(a, zero), less(a, int_imm(63)));
  add("shift right", apply(Op::ShiftRight, {x, a}), floor_div(x, apply(Op::ShiftLeft, {one, a})), shift);
  add("shift left", apply(Op::ShiftLeft, {x, a}), x * apply(Op::ShiftLeft, {one, a}), shift);
  const Expr mask = logical_and(ge(a, zero), eq(bit_and(a, a + one), zero));
  add("mask", bit_and(x, a), floor_mod(x, a + one), mask);
  add("mask first", bit_and(a, x), floor_mod(x, a + one), mask);
  add("complement", apply(Op::BitNot, {x}), apply(Op::Sub, {int_imm(-1), x}));
}

void add_data_rules(Tables& t, const Expr& x) {
  const Expr zero = int_imm(0), one = int_imm(1);
  auto add = [&](std::string_view name, Expr left, Expr right) {
    t.rules.push_back({name, RuleDomain::Data, std::move(left), std::move(right), {}});
  };
  add("add zero", x + zero, x);
  add("zero plus", zero + x, x);
  add("subtract zero", x - zero, x);
  add("subtract itself", x - x, zero);
  add("times one", x * one, x);
  add("one times", one * x, x);
  add("times zero", x * zero, zero);
  add("zero times", zero * x, zero);
  add("divide by one", floor_div(x, one), x);
  add("modulo one", floor_mod(x, one), zero);
  add("double negation", neg(neg(x)), x);
  add("shift by zero", apply(Op::ShiftLeft, {x, zero}), x);
  add("shift right by zero", apply(Op::ShiftRight, {x, zero}), x);
}

void add_integer_rules(Tables& t, const Expr& x) {
  const Expr zero = int_imm(0);
  auto add = [&](std::string_view name, Expr left, Expr right) {
    t.rules.push_back({name, RuleDomain::Integer, std::move(left), std::move(right), {}});
  };
  add("and itself", bit_and(x, x), x);
  add("and zero", bit_and(x, zero), zero);
  add("zero and", bit_and(zero, x), zero);
  add("or itself", apply(Op::BitOr, {x, x}), x);
  add("or zero", apply(Op::BitOr, {x, zero}), x);
  add("zero or", apply(Op::BitOr, {zero, x}), x);
  add("xor itself", apply(Op::BitXor, {x, x}), zero);
  add("xor zero", apply(Op::BitXor, {x, zero}), x);
  add("zero xor", apply(Op::BitXor, {zero, x}), x);
  add("double complement", apply(Op::BitNot, {apply(Op::BitNot, {x})}), x);
  add("least of itself", min(x, x), x);
  add("greatest of itself", max(x, x), x);
  for (Op op : {Op::Eq, Op::Le, Op::Ge}) add("compare itself", apply(op, {x, x}), bool_imm(true));
  for (Op op : {Op::Ne, Op::Lt, Op::Gt}) add("compare itself", apply(op, {x, x}), bool_imm(false));
}

void add_bool_rules(Tables& t, const Expr& x, const Expr& y, const Expr& p, const Expr& q) {
  const Expr yes = bool_imm(true), no = bool_imm(false);
  auto add = [&](std::string_view name, Expr left, Expr right) {
    t.rules.push_back({name, RuleDomain::Bool, std::move(left), std::move(right), {}});
  };
  add("true and", logical_and(yes, p), p);
  add("and true", logical_and(p, yes), p);
  add("false and", logical_and(no, p), no);
  add("and false", logical_and(p, no), no);
  add("and itself", logical_and(p, p), p);
  add("true or", or_(yes, p), yes);
  add("or true", or_(p, yes), yes);
  add("false or", or_(no, p), p);
  add("or false", or_(p, no), p);
  add("or itself", or_(p, p), p);
  add("not not", not_(not_(p)), p);
  add("not and", not_(logical_and(p, q)), or_(not_(p), not_(q)));
  add("not or", not_(or_(p, q)), logical_and(not_(p), not_(q)));
  add("choose condition", select(p, yes, no), p);
  add("choose negation", select(p, no, yes), not_(p));
  auto add_any = [&](std::string_view name, Expr left, Expr right, RuleDomain domain) {
    t.rules.push_back({name, domain, std::move(left), std::move(right), {}});
  };
  add_any("choose on true", select(yes, x, y), x, RuleDomain::Any);
  add_any("choose on false", select(no, x, y), y, RuleDomain::Any);
  add_any("choose of equals", select(p, x, x), x, RuleDomain::Any);
  add_any("choose on not", select(not_(p), x, y), select(p, y, x), RuleDomain::Any);
  add_any("not less", not_(apply(Op::Lt, {x, y})), apply(Op::Le, {y, x}), RuleDomain::Integer);
  add_any("not at most", not_(apply(Op::Le, {x, y})), apply(Op::Lt, {y, x}), RuleDomain::Integer);
  add_any("not greater", not_(apply(Op::Gt, {x, y})), apply(Op::Le, {x, y}), RuleDomain::Integer);
  add_any("not at least", not_(apply(Op::Ge, {x, y})), apply(Op::Lt, {x, y}), RuleDomain::Integer);
  add_any("not equal", not_(apply(Op::Eq, {x, y})), apply(Op::Ne, {x, y}), RuleDomain::Any);
  add_any("not different", not_(apply(Op::Ne, {x, y})), apply(Op::Eq, {x, y}), RuleDomain::Any);
}

void add_sum_rules(Tables& t, const Expr& x, const Expr& y, const Expr& a, const Expr& b) {
  const Expr zero = int_imm(0), one = int_imm(1);
  const Expr positive = logical_and(less(zero, a), less(zero, b));
  auto add = [&](std::string_view name, Expr first, Expr factor, Expr second, Expr right, Expr condition) {
    t.sums.push_back(
        {name, std::move(first), std::move(factor), std::move(second), std::move(right), std::move(condition)});
  };
  add("division identity", floor_div(x, a), a, floor_mod(x, a), x, less(zero, a));
  add("joined digits", floor_mod(floor_div(x, a), b), a, floor_mod(x, a), floor_mod(x, a * b), positive);
  add("remainder of a value", floor_div(x, a), neg(a), x, floor_mod(x, a), less(zero, a));
  add("least and greatest", min(x, y), one, max(x, y), x + y, {});
}

Tables make_tables() {
  Tables t;
  const VarRef a = make_var("a"), b = make_var("b");
  const VarRef x = make_var("x"), y = make_var("y");
  const VarRef p = make_var("p", kBool), q = make_var("q", kBool);
  t.constants = {a, b};
  add_bool_rules(t, x, y, p, q);
  add_integer_rules(t, x);
  add_data_rules(t, x);
  add_index_rules(t, x, a, b);
  add_sum_rules(t, x, y, a, b);
  return t;
}

const Tables& tables() {
  static const Tables t = make_tables();
  return t;
}

}  // namespace

const std::vector<Rule>& rewrite_rules() { return tables().rules; }
const std::vector<SumRule>& sum_rules() { return tables().sums; }
const std::vector<VarRef>& pattern_constants() { return tables().constants; }

}  // namespace helve
