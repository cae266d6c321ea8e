// Rewrites conditions part by part.
// A part keeps its name in all of them, so that what two instances share stays equal.
#include "coarse.h"

#include <algorithm>

#include "helve/arith/sum.h"
#include "helve/ir/expr/build.h"
#include "helve/ir/expr/visit.h"

namespace helve::proofs {

namespace {

class Coarse {
 public:
  Coarse(const std::vector<VarRef>& given, const Facts& facts) : given_(given), facts_(facts) {}

  CoarseQuestion out;
  bool changed = false;

  void add(const Expr& condition) {
    Expr coarse = rewrite(condition, [&](const Expr& e) { return part(e); });
    if (is_large_definition(coarse) || has_product(coarse)) {
      changed = true;
    } else {
      out.conditions.push_back(std::move(coarse));
    }
  }

  /// A definition of a name that nothing else mentions says nothing.
  void drop_unused() {
    std::vector<Expr>& all = out.conditions;
    for (bool news = true; news;) {
      const auto is_unused = [&](const Expr& e) {
        const Var* name = defined(e);
        return name && std::none_of(all.begin(), all.end(),
                                    [&](const Expr& other) { return other != e && mentions(other, name); });
      };
      const auto unused = std::find_if(all.begin(), all.end(), is_unused);
      news = unused != all.end();
      if (news) all.erase(unused);
      changed |= news;
    }
  }

 private:
  static const Var* defined(const Expr& e) {
    const Apply* node = as<Apply>(e);
    const Var* name = node && node->op == Op::Eq ? as<Var>(node->args[0]) : nullptr;
    return name && !mentions(node->args[1], name) ? name : nullptr;
  }

  static bool is_large_definition(const Expr& e) { return defined(e) && is_large(as<Apply>(e)->args[1]); }

  static bool has_product(const Expr& e) {
    bool found = false;
    walk(e, [&](const Expr& part) {
      const Apply* node = as<Apply>(part);
      found |= node && node->op == Op::Mul && part->dtype.is_index() && !int_value(node->args[0]) &&
               !int_value(node->args[1]);
    });
    return found;
  }

  /// The parts of `e` are coarse already.
  Expr part(const Expr& e) {
    const Apply* node = as<Apply>(e);
    if (node && (node->op == Op::Max || node->op == Op::Min)) {
      if (const Expr one = decided(*node)) {
        changed = true;
        return one;
      }
    }
    if (!node || !e->dtype.is_index() || !(is_found(*node) || (is_costly(*node) && is_given(e)))) return e;
    for (const auto& [known, var] : known_) {
      if (same_expr(known, e)) return Expr(var);
    }
    const VarRef var = make_var("some");
    known_.emplace_back(e, var);
    out.vars.push_back(var);
    changed = true;
    return Expr(var);
  }

  /// The argument that a minimum or maximum is by what is known; null if that does not say.
  Expr decided(const Apply& node) const {
    for (size_t n = 0; n < 2; ++n) {
      const Interval one = interval_of(node.args[n], facts_), other = interval_of(node.args[1 - n], facts_);
      const bool above = one.low && other.high && *one.low >= *other.high;
      const bool below = one.high && other.low && *one.high <= *other.low;
      if (node.op == Op::Max ? above : below) return node.args[n];
    }
    return {};
  }

  /// Does memory choose the value?
  static bool is_found(const Apply& node) { return node.op == Op::Select && has_load(node.args[0]); }

  static bool is_costly(const Apply& node) {
    switch (node.op) {
      case Op::FloorDiv:
      case Op::FloorMod:
      case Op::Min:
      case Op::Max:
      case Op::Select: return true;
      default: return false;
    }
  }

  bool is_given(const Expr& e) const {
    bool any = false, all = true;
    walk(e, [&](const Expr& each) {
      const Var* var = as<Var>(each);
      if (each->kind == ExprKind::Load || each->kind == ExprKind::TileLoad) all = false;
      if (!var) return;
      const auto is_it = [&](const VarRef& one) { return one.get() == var; };
      any = true;
      all &= std::any_of(given_.begin(), given_.end(), is_it) || std::any_of(out.vars.begin(), out.vars.end(), is_it);
    });
    return any && all;
  }

  const std::vector<VarRef>& given_;
  const Facts& facts_;
  std::vector<std::pair<Expr, VarRef>> known_;
};

}  // namespace

std::optional<CoarseQuestion> coarsen(const std::vector<Expr>& conditions, const std::vector<VarRef>& given,
                                      const Facts& facts) {
  Coarse coarse(given, facts);
  for (const Expr& each : conditions) coarse.add(each);
  coarse.drop_unused();
  if (!coarse.changed) return std::nullopt;
  return std::move(coarse.out);
}

}  // namespace helve::proofs
