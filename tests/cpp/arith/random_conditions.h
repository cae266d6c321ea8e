// Random affine conditions, and the boxes through which tests enumerate.
#pragma once

#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "evaluate.h"
#include "helve/arith/relation.h"

namespace helve::testing {

inline Expr both(const Expr& a, const Expr& b) { return logical_and(a, b); }
inline Expr le(const Expr& a, const Expr& b) { return apply(Op::Le, {a, b}); }
inline Expr eq(const Expr& a, const Expr& b) { return apply(Op::Eq, {a, b}); }
inline Expr in_range(const VarRef& v, int64_t low, int64_t high) {
  return both(le(int_imm(low), Expr(v)), le(Expr(v), int_imm(high)));
}

/// Random affine expressions and conditions over some variables.
class Random {
 public:
  Random(uint32_t seed, std::vector<VarRef> vars) : random_(seed), vars_(std::move(vars)) {}
  int64_t number(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random_); }

  Expr index(int depth) {
    if (depth == 0)
      return number(0, 3) ? Expr(vars_[static_cast<size_t>(number(0, static_cast<int64_t>(vars_.size()) - 1))])
                          : int_imm(number(-4, 6));
    const Expr a = index(depth - 1);
    switch (number(0, 12)) {
      case 0: return a - index(depth - 1);
      case 1: return a * int_imm(number(-3, 3));
      case 2: return floor_div(a, int_imm(divisor()));
      case 3: return floor_mod(a, int_imm(divisor()));
      case 4: return min(a, index(depth - 1));
      case 5: return max(a, index(depth - 1));
      case 6: return apply(Op::Abs, {a});
      case 7: return apply(Op::Neg, {a});
      case 8: return apply(Op::ShiftRight, {a, int_imm(number(0, 2))});
      case 9: return apply(Op::BitAnd, {a, int_imm((1 << number(0, 3)) - 1)});
      case 10: return select(condition(depth - 1), a, index(depth - 1));
      default: return a + index(depth - 1);
    }
  }
  Expr condition(int depth) {
    static const Op kCompare[] = {Op::Lt, Op::Le, Op::Gt, Op::Ge, Op::Eq, Op::Ne};
    if (depth > 0) {
      switch (number(0, 5)) {
        case 0: return both(condition(depth - 1), condition(depth - 1));
        case 1: return apply(Op::Or, {condition(depth - 1), condition(depth - 1)});
        case 2: return apply(Op::Not, {condition(depth - 1)});
        default: break;
      }
    }
    return apply(kCompare[number(0, 5)], {index(depth), index(depth)});
  }

 private:
  int64_t divisor() {
    const int64_t d = number(-4, 4);
    return d == 0 ? 5 : d;
  }
  std::mt19937 random_;
  std::vector<VarRef> vars_;
};

/// The least and the greatest value of each variable of a box.
struct Side {
  int64_t low = -3;
  int64_t high = 4;
};

/// Calls `f` with every assignment of the box.
template <class F>
void each_point(const std::vector<VarRef>& vars, F&& f, Side side = {}) {
  Assignment at;
  for (const VarRef& v : vars) at[v.get()] = side.low;
  while (true) {
    f(at);
    size_t k = 0;
    while (k < vars.size() && ++at[vars[k].get()] > side.high) at[vars[k++].get()] = side.low;
    if (k == vars.size()) return;
  }
}

inline Expr box(const std::vector<VarRef>& vars, Side side = {}) {
  Expr all = bool_imm(true);
  for (const VarRef& v : vars) all = both(all, in_range(v, side.low, side.high));
  return all;
}

inline std::vector<int64_t> tuple_at(const std::vector<VarRef>& vars, const Assignment& at) {
  std::vector<int64_t> out;
  for (const VarRef& v : vars) out.push_back(static_cast<int64_t>(at.at(v.get())));
  return out;
}

inline Assignment assignment(const Witness& witness) {
  Assignment out;
  for (const auto& [var, value] : witness) out[var.get()] = value;
  return out;
}

}  // namespace helve::testing
