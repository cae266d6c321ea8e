// Elements that two neighbouring iterations of a loop read.
// After h = (r + begin) % 2 iterations, position p reads (r + begin + h + p) // 2 = (r + begin + 1) // 2 + p // 2.
#include "paired_reads.h"

#include "helve/arith/simplify.h"
#include "helve/arith/sum.h"
#include "helve/ir/expr/equal.h"
#include "helve/ir/tensor/visit.h"

namespace helve {

PairedReads::PairedReads(const For& loop, const Substitution& bound, const Facts& facts)
    : loop_(loop), var_(loop.vars.back().get()), bound_(bound), facts_(facts), head_(int_imm(0)) {
  walk(loop.body, [&](const Stmt& s) {
    if (const Bind* n = as<Bind>(s)) names_.insert(n->var.get());
  });
}

/// May the index be computed where the loop does not do so, in front of it or for no iteration? What it loads could lie
/// outside of its buffer there, or be written by the loop.
bool PairedReads::computes_anywhere(const Expr& e) const {
  bool good = true;
  walk(e, [&](const Expr& x) {
    const Apply* a = as<Apply>(x);
    const Var* v = as<Var>(x);
    good &= a || (v && !names_.contains(v)) || as<IntImm>(x) || as<Cast>(x);
    if (!a) return;
    switch (a->op) {
      case Op::Add:
      case Op::Sub:
      case Op::Mul:
      case Op::Neg:
      case Op::Min:
      case Op::Max: break;
      case Op::FloorDiv:
      case Op::FloorMod: {
        const int64_t* by = int_value(a->args[1]);
        good &= by && *by != 0;
        break;
      }
      default: good = false;
    }
  });
  return good;
}

std::optional<Expr> PairedReads::begin_of(const Expr& e) const {
  const Apply* a = as<Apply>(e);
  if (!a || !a->dtype.is_index() || (a->op != Op::FloorDiv && a->op != Op::FloorMod)) return std::nullopt;
  const int64_t* by = int_value(a->args[1]);
  if (!by || *by != 2) return std::nullopt;
  const Expr of = simplify(substitute(a->args[0], bound_), facts_);
  if (coefficient_of(sum_of(of), var_) != 1) return std::nullopt;
  const Expr begin = simplify(substitute(of, {{var_, loop_.begins.back()}}), facts_);
  return computes_anywhere(begin) ? std::optional(begin) : std::nullopt;
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
  const Expr at = simplify(position, facts_);
  const auto in_pairs = [&](const Expr& e) -> Expr {
    const std::optional<Expr> begin = begin_of(e);
    if (!begin || !structural_equal(offset(*begin), head_)) return e;
    if (as<Apply>(e)->op == Op::FloorMod) return floor_mod(at, int_imm(2));
    return simplify(ceil_div(*begin, int_imm(2)), facts_) + floor_div(at, int_imm(2));
  };
  const Stmt paired =
      rewrite(loop_.body, [](const Stmt& s) { return s; }, [&](const Expr& e) { return rewrite(e, in_pairs); });
  return substitute(paired, iteration);
}

}  // namespace helve
