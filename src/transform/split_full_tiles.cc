// Iterations of scheduled loops in which every guard of a tail has a known outcome get code of their own.
// Input: element loops, simplified. Output: the same, simplified under the new conditions. A schedule's tails are
// guards in the innermost loops; what they decide is the same for all iterations of most tiles.
// Before:  for io in T.serial(4, scheduled=True):        After:  for io in T.serial(4, scheduled=True):
//              for k in T.serial(n):                                 if io < 3:
//                  for ii in T.vectorized(8):                            for k in T.serial(n):
//                      if io * 8 + ii < 28: S                                for ii in T.vectorized(8): S
//                                                                    else:
//                                                                        for k in T.serial(n):
//                                                                            for ii in T.vectorized(8):
//                                                                                if ii < 4: S
// A guard compares a sum of what is known where the body begins, T, with inner variables of constant range: its outcome
// is known where T is below the least, or not below the greatest, of a few numbers. Those are the versions. Only the
// innermost loop, or grid, whose variables T uses is divided: it says the most. Every version is the whole body.
#include <algorithm>
#include <set>
#include <unordered_set>

#include "helve/arith/simplify.h"
#include "helve/arith/sum.h"
#include "helve/ir/tensor/renewed.h"
#include "helve/ir/tensor/visit.h"
#include "helve/transform/passes.h"
#include "scope_facts.h"

namespace helve {

namespace {

constexpr size_t kMaxCuts = 3;  // of one sum: a last tile and what lies past it, in rows of registers
constexpr size_t kMaxStatements = 1024;  // of all versions of a body
constexpr int64_t kFar = int64_t{1} << 40;

/// Where the outcomes of guards on one sum change.
struct Guard {
  Sum sum;  ///< without a constant, the coefficients without a common factor
  std::set<int64_t> cuts;  ///< an outcome differs between sum < cut and sum >= cut
};

class Guards {
 public:
  Guards(const Stmt& body, const std::vector<VarRef>& own, const Facts& facts) : inside_(facts) {
    for (const VarRef& var : own) own_.insert(var.get());
    for (const VarRef& var : Definitions(body).vars) inner_.insert(var.get());
    walk(body, [&](const Stmt& s) {
      const For* loop = as<For>(s);
      if (!loop) return;
      for (size_t d = 0; d < loop->vars.size(); ++d) {
        if (!has_load(loop->begins[d]) && !has_load(loop->extents[d])) {
          inside_.bind_loop(loop->vars[d], loop->begins[d], loop->extents[d]);
        }
      }
    });
    walk(body, [&](const Stmt& s) {
      if (const If* branch = as<If>(s)) collect(branch->condition);
    });
    keep_open(facts);
  }

  const std::vector<Guard>& found() const { return found_; }

 private:
  void collect(const Expr& condition) {
    walk(condition, [&](const Expr& e) {
      const Apply* node = as<Apply>(e);
      if (node && row_of(node->op).rule == OpRule::Compare && node->args[0]->dtype.is_index() && !has_load(e)) {
        compare(*node);
      }
    });
  }

  /// The condition is outer + inner + constant <= limit, or its negation; an equality is one of two.
  void compare(const Apply& node) {
    const std::optional<Sum> difference = add(sum_of(node.args[0]), sum_of(node.args[1]), -1);
    if (!difference) return;
    Sum outer, inner;
    bool uses_own = false;
    for (const Term& term : difference->terms) {
      bool own = false, below = false;
      for (const Expr& factor : term.factors) {
        walk(factor, [&](const Expr& e) {
          const Var* var = as<Var>(e);
          own |= var && own_.contains(var);
          below |= var && inner_.contains(var);
        });
      }
      uses_own |= own && !below;
      (below ? inner : outer).terms.push_back(term);
    }
    if (!uses_own) return;
    inner.constant = difference->constant;
    const Interval rest = interval_of(expr_of(inner), inside_);
    if (!rest.within(-kFar, kFar)) return;
    const int64_t factor = coefficient_gcd(outer);
    if (factor <= 0 || factor > kFar) return;
    outer = ordered(std::move(outer));
    const bool negative = leads_with_negative(outer);
    for (Term& term : outer.terms) term.coefficient /= negative ? -factor : factor;
    Guard& guard = guard_of(outer);
    const bool strict = node.op == Op::Lt || node.op == Op::Ge, equal = node.op == Op::Eq || node.op == Op::Ne;
    for (const int64_t end : {*rest.low, *rest.high}) {
      for (const int64_t limit : {int64_t{-1}, int64_t{0}}) {
        if (!equal && (limit == -1) != strict) continue;
        // factor * sum <= limit - end, or with the other sign factor * sum >= end - limit.
        guard.cuts.insert(negative ? -floor_quotient(limit - end, factor) : floor_quotient(limit - end, factor) + 1);
      }
    }
  }

  Guard& guard_of(const Sum& sum) {
    for (Guard& guard : found_) {
      if (same_expr(expr_of(guard.sum), expr_of(sum))) return guard;
    }
    found_.push_back({sum, {}});
    return found_.back();
  }

  /// Leaves out cuts that the range of the sum decides; of many the first and the last stay. Least and greatest of
  /// indices follow from these: they are cut only where nothing else is.
  void keep_open(const Facts& facts) {
    std::vector<Guard> open;
    for (Guard& guard : found_) {
      std::erase_if(guard.cuts, [&](int64_t cut) {
        return constant_value(simplify(less(expr_of(guard.sum), int_imm(cut)), facts)).has_value();
      });
      if (guard.cuts.size() > kMaxCuts) guard.cuts = {*guard.cuts.begin(), *guard.cuts.rbegin()};
      if (!guard.cuts.empty()) open.push_back(std::move(guard));
    }
    if (std::any_of(open.begin(), open.end(), is_linear)) {
      std::erase_if(open, [](const Guard& guard) { return !is_linear(guard); });
    }
    found_ = std::move(open);
  }

  static bool is_linear(const Guard& guard) {
    return std::all_of(guard.sum.terms.begin(), guard.sum.terms.end(), [](const Term& term) {
      return std::all_of(term.factors.begin(), term.factors.end(),
                         [](const Expr& factor) { return as<Var>(factor) != nullptr; });
    });
  }

  std::unordered_set<const Var*> own_, inner_;
  Facts inside_;
  std::vector<Guard> found_;
};

size_t size_of(const Stmt& body) {
  size_t count = 0;
  walk(body, [&](const Stmt&) { ++count; });
  return count;
}

class Division final : public ScopedRewriter {
 public:
  using ScopedRewriter::ScopedRewriter;

 protected:
  Stmt leave(const Stmt& s, const Facts& facts) override {
    const For* loop = as<For>(s);
    const Kernel* grid = as<Kernel>(s);
    if (!grid && !(loop && loop->scheduled && loop->loop != LoopKind::Vectorized)) return s;
    Facts inside = facts;
    if (loop) {
      for (size_t d = 0; d < loop->vars.size(); ++d) {
        enter_loop(inside, loop->vars[d], loop->begins[d], loop->extents[d]);
      }
      const Stmt body = versions(loop->body, loop->vars, inside);
      return body == loop->body ? s : Stmt(copy_with(*loop, [&](For& out) { out.body = body; }));
    }
    if (!is_scheduled(grid->body)) return s;
    for (size_t d = 0; d < grid->vars.size(); ++d) enter_loop(inside, grid->vars[d], int_imm(0), grid->extents[d]);
    const Stmt body = versions(grid->body, grid->vars, inside);
    return body == grid->body ? s : Stmt(copy_with(*grid, [&](Kernel& out) { out.body = body; }));
  }

 private:
  static bool is_scheduled(const Stmt& body) {
    bool found = false;
    walk(body, [&](const Stmt& s) {
      const For* loop = as<For>(s);
      found |= loop && loop->scheduled;
    });
    return found;
  }

  /// A body that is one vector or one statement has its guard where it needs it.
  static bool is_tile(const Stmt& body) {
    bool nested = false;
    walk(body, [&](const Stmt& s) {
      const For* loop = as<For>(s);
      nested |= loop && loop->loop != LoopKind::Vectorized;
    });
    return nested;
  }

  static Stmt versions(Stmt body, const std::vector<VarRef>& vars, const Facts& facts) {
    if (!is_tile(body)) return body;
    const Guards guards(body, vars, facts);
    for (const Guard& guard : guards.found()) {
      if (size_of(body) * (guard.cuts.size() + 1) > kMaxStatements) break;
      Stmt chain = body;
      for (auto cut = guard.cuts.rbegin(); cut != guard.cuts.rend(); ++cut) {
        chain = if_then(less(expr_of(guard.sum), int_imm(*cut)), renewed(body), chain, body->span);
      }
      body = chain;
    }
    return body;
  }
};

}  // namespace

FunctionRef split_full_tiles(const FunctionRef& f, const PassOptions& options) {
  const FunctionRef out = with_body(f, Division(*f).rewrite(f->body));
  return out == f ? f : simplify_function(out, options);
}

}  // namespace helve
