// Elements that two neighbouring iterations of a loop read.
// With h = (r + begin) % 2 iterations before it, position p has (r + begin + h + p) // 2 = (r + begin + h) // 2 + p
// // 2.
#include "paired_reads.h"

#include "helve/arith/simplify.h"
#include "helve/arith/sum.h"
#include "helve/ir/expr/equal.h"
#include "helve/ir/tensor/visit.h"

namespace helve {

PairedReads::PairedReads(const For& loop, const Substitution& bound, const Facts& facts)
    : loop_(loop), var_(loop.vars.back().get()), bound_(bound), facts_(facts), head_(int_imm(0)) {}

std::optional<Expr> PairedReads::begin_of(const Expr& e) const {
  const Apply* a = as<Apply>(e);
  if (!a || !a->dtype.is_index() || (a->op != Op::FloorDiv && a->op != Op::FloorMod)) return std::nullopt;
  const int64_t* by = int_value(a->args[1]);
  if (!by || *by != 2) return std::nullopt;
  const Expr of = simplify(substitute(a->args[0], bound_), facts_);
  if (coefficient_of(sum_of(of), var_) != 1) return std::nullopt;
  return simplify(substitute(of, {{var_, loop_.begins.back()}}), facts_);
}

Expr PairedReads::offset(const Expr& begin) const { return simplify(floor_mod(begin, int_imm(2)), facts_); }

bool PairedReads::add(const Expr& index) {
  const Sum sum = sum_of(simplify(substitute(index, bound_), facts_));
  std::optional<Expr> begin;
  for (const Term& term : sum.terms) {
    const Expr moving = expr_of({{term}, 0});
    if (!mentions(moving, var_)) continue;
    if (begin || term.coefficient != 1 || as<Apply>(moving) == nullptr || as<Apply>(moving)->op != Op::FloorDiv) {
      return false;
    }
    begin = begin_of(moving);
    if (!begin) return false;
  }
  if (!begin) return false;
  const Expr head = offset(*begin);
  if (found_ && !structural_equal(head, head_)) return false;
  found_ = true;
  head_ = head;
  return true;
}

Stmt PairedReads::body_at(const Expr& position) const {
  const Substitution iteration = {{var_, simplify(loop_.begins.back() + head_ + position, facts_)}};
  if (!found_) return substitute(loop_.body, iteration);
  const auto in_pairs = [&](const Expr& e) -> Expr {
    const std::optional<Expr> begin = begin_of(e);
    if (!begin || !structural_equal(offset(*begin), head_)) return e;
    if (as<Apply>(e)->op == Op::FloorMod) return floor_mod(position, int_imm(2));
    return simplify(ceil_div(*begin, int_imm(2)), facts_) + floor_div(position, int_imm(2));
  };
  const Stmt paired =
      rewrite(loop_.body, [](const Stmt& s) { return s; }, [&](const Expr& e) { return rewrite(e, in_pairs); });
  return substitute(paired, iteration);
}

}  // namespace helve
