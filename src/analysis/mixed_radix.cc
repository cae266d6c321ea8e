// Consequences of equal subscripts in mixed radix.
// They add nothing that did not hold, so that a set stays what it is; where the rest of it is not affine, they bound
// it.
#include "helve/analysis/mixed_radix.h"

#include "helve/arith/simplify.h"
#include "helve/ir/expr/build.h"
#include "helve/ir/expr/visit.h"

namespace helve {

namespace {

bool is_plain(const Expr& radix) { return !int_value(radix) && !has_load(radix); }

bool has_product(const Expr& e) {
  bool found = false;
  walk(e, [&](const Expr& node) {
    const Apply* product = as_op(node, Op::Mul);
    found |= product && !int_value(product->args[0]) && !int_value(product->args[1]);
  });
  return found;
}

/// Loop variables from 0 with their extents.
std::vector<std::pair<Expr, Expr>> counted_loops(const Access& access, const Substitution& renamed) {
  std::vector<std::pair<Expr, Expr>> out;
  for (const StepRef& step : access.path) {
    for (size_t d = 0; d < step->begins.size(); ++d) {
      const int64_t* begin = int_value(step->begins[d]);
      if (!begin || *begin != 0 || !is_plain(step->extents[d])) continue;
      out.emplace_back(substitute(Expr(step->vars[d]), renamed), simplify(substitute(step->extents[d], renamed)));
    }
  }
  return out;
}

/// `kind(of, radix)` of `plus + kind(of, radix)`.
struct Digit {
  Op kind;
  Expr of, radix, plus;
};

std::optional<Digit> digit_of(const Expr& e) {
  std::optional<Digit> out;
  Expr found;
  walk(e, [&](const Expr& node) {
    const Apply* n = as<Apply>(node);
    if (!n || found || (n->op != Op::FloorDiv && n->op != Op::FloorMod) || !is_plain(n->args[1])) return;
    found = node;
    out = Digit{n->op, n->args[0], n->args[1], {}};
  });
  if (!out) return out;
  out->plus = simplify(e - found);
  bool others = false;
  walk(out->plus, [&](const Expr& node) { others |= same_expr(node, found); });
  return others ? std::nullopt : out;
}

}  // namespace

Expr exact_quotient(const Expr& e, const Expr& radix) {
  if (same_expr(e, radix)) return int_imm(1);
  if (const int64_t* value = int_value(e); value && *value == 0) return int_imm(0);
  const Apply* node = as<Apply>(e);
  if (!node || (node->op != Op::Add && node->op != Op::Sub && node->op != Op::Mul)) return {};
  const Expr first = exact_quotient(node->args[0], radix), second = exact_quotient(node->args[1], radix);
  if (node->op == Op::Mul) return first ? first * node->args[1] : second ? node->args[0] * second : Expr();
  if (!first || !second) return {};
  return node->op == Op::Add ? first + second : first - second;
}

std::vector<Expr> digits_agree(const Access& a, const Access& b, const Substitution& renamed,
                               const std::vector<std::pair<Expr, Expr>>& equal) {
  std::vector<Expr> out;
  std::vector<std::pair<Digit, Digit>> digits;
  for (const auto& [x, y] : equal) {
    const std::optional<Digit> one = digit_of(x), other = digit_of(y);
    if (one && other && one->kind == other->kind && same_expr(one->radix, other->radix) &&
        same_expr(one->plus, other->plus)) {
      for (const auto& [first, second] : digits) {
        const bool both = first.kind != one->kind && same_expr(first.radix, one->radix);
        if (both && same_expr(first.of, one->of) && same_expr(second.of, other->of)) {
          out.push_back(apply(Op::Eq, {one->of, other->of}));
        }
      }
      digits.emplace_back(*one, *other);
    }
    if (!has_product(x) || !has_product(y)) continue;
    for (const auto& [low, radix] : counted_loops(a, {})) {
      for (const auto& [other_low, other_radix] : counted_loops(b, renamed)) {
        if (!same_expr(radix, other_radix)) continue;
        const Expr high = exact_quotient(simplify((x - low) - (y - other_low)), radix);
        if (!high) continue;
        out.push_back(apply(Op::Eq, {low, other_low}));
        out.push_back(apply(Op::Eq, {simplify(high), int_imm(0)}));
      }
    }
  }
  return out;
}

}  // namespace helve
