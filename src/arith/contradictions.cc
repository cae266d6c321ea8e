// Contradictions between conditions.
// Two comparisons of one sum are compared by their constants; what is left goes to isl, a connected part at a time.
#include "helve/arith/contradictions.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <unordered_map>

#include "helve/arith/sum.h"
#include "helve/ir/expr/build.h"
#include "helve/ir/expr/chain.h"
#include "helve/ir/expr/equal.h"
#include "helve/ir/expr/visit.h"

namespace helve {

/// low <= terms <= high.
struct SumBounds {
  Sum terms;  ///< with the constant 0 and a positive first term
  uint64_t hash = 0;
  std::optional<int64_t> low, high;
};

namespace {

/// A comparison of index expressions as bounds; nothing if it is another condition.
std::optional<SumBounds> bounds_of(const Expr& condition) {
  const Apply* node = as<Apply>(condition);
  if (!node || node->args.size() != 2 || !node->args[0]->dtype.is_index()) return std::nullopt;
  Op op = node->op;
  if (op != Op::Lt && op != Op::Le && op != Op::Gt && op != Op::Ge && op != Op::Eq) return std::nullopt;
  const std::optional<Sum> difference = add(sum_of(node->args[0]), sum_of(node->args[1]), -1);
  if (!difference || difference->constant == INT64_MIN) return std::nullopt;
  SumBounds out;
  out.terms = ordered(*difference);
  if (leads_with_negative(out.terms)) {
    std::optional<Sum> negated = scale(out.terms, -1);
    if (!negated) return std::nullopt;
    out.terms = ordered(std::move(*negated));
    op = op == Op::Lt ? Op::Gt : op == Op::Le ? Op::Ge : op == Op::Gt ? Op::Lt : op == Op::Ge ? Op::Le : op;
  }
  const int64_t bound = -out.terms.constant;
  out.terms.constant = 0;
  out.hash = structural_hash(expr_of(out.terms));
  const int64_t strict = op == Op::Lt || op == Op::Gt;
  if (op == Op::Eq || op == Op::Ge || op == Op::Gt) {
    if (bound > INT64_MAX - strict) return std::nullopt;
    out.low = bound + strict;
  }
  if (op == Op::Eq || op == Op::Le || op == Op::Lt) {
    if (bound < INT64_MIN + strict) return std::nullopt;
    out.high = bound - strict;
  }
  return out;
}

bool of_one_sum(const Sum& a, const Sum& b) {
  if (a.terms.size() != b.terms.size()) return false;
  for (size_t t = 0; t < a.terms.size(); ++t) {
    if (a.terms[t].coefficient != b.terms[t].coefficient || !same_factors(a.terms[t].factors, b.terms[t].factors)) {
      return false;
    }
  }
  return true;
}

}  // namespace

struct Contradictions::Memory {
  struct Condition {
    Expr expr;  ///< keeps it alive, so that its address stays its own
    std::vector<const Var*> vars;
    std::optional<SumBounds> bounds;
  };

  ExactEngine engine;
  std::unordered_map<const ExprNode*, Condition> conditions;
  std::map<std::vector<const ExprNode*>, bool> parts;

  const Condition& know(const Expr& e) {
    auto [at, fresh] = conditions.try_emplace(e.get());
    if (!fresh) return at->second;
    Condition& out = at->second;
    out.expr = e;
    std::unordered_set<const Var*> seen;
    walk(e, [&](const Expr& node) {
      const Var* var = as<Var>(node);
      if (var && seen.insert(var).second) out.vars.push_back(var);
    });
    out.bounds = bounds_of(e);
    return out;
  }

  bool is_empty(const std::vector<const Condition*>& part, const std::unordered_set<const Var*>& fixed);
};

namespace {

/// Do two of the conditions bound one sum from both sides, with nothing between?
template <class Condition>
bool exclude_each_other(const std::vector<const Condition*>& all) {
  std::unordered_map<uint64_t, std::vector<SumBounds>> known;
  for (const Condition* each : all) {
    if (!each->bounds) continue;
    const SumBounds& bounds = *each->bounds;
    if (bounds.terms.is_constant()) {
      if ((bounds.low && *bounds.low > 0) || (bounds.high && *bounds.high < 0)) return true;
      continue;
    }
    std::vector<SumBounds>& candidates = known[bounds.hash];
    const auto at = std::find_if(candidates.begin(), candidates.end(),
                                 [&](const SumBounds& other) { return of_one_sum(other.terms, bounds.terms); });
    if (at == candidates.end()) {
      candidates.push_back(bounds);
      continue;
    }
    if (bounds.low && (!at->low || *at->low < *bounds.low)) at->low = bounds.low;
    if (bounds.high && (!at->high || *at->high > *bounds.high)) at->high = bounds.high;
    if (at->low && at->high && *at->low > *at->high) return true;
  }
  return false;
}

}  // namespace

bool Contradictions::Memory::is_empty(const std::vector<const Condition*>& part,
                                      const std::unordered_set<const Var*>& fixed) {
  std::vector<const ExprNode*> key;
  for (const Condition* each : part) key.push_back(each->expr.get());
  std::sort(key.begin(), key.end());
  key.erase(std::unique(key.begin(), key.end()), key.end());
  const auto [at, fresh] = parts.try_emplace(std::move(key), false);
  if (!fresh) return at->second;
  std::vector<Expr> all;
  std::vector<VarRef> vars;
  for (const Condition* each : part) {
    all.push_back(each->expr);
    for (const Var* var : each->vars) {
      const VarRef ref(var);
      if (!fixed.contains(var) && std::find(vars.begin(), vars.end(), ref) == vars.end()) vars.push_back(ref);
    }
  }
  at->second = IntegerSet(engine, vars, conjunction(all)).emptiness().verdict == Verdict::Proved;
  return at->second;
}

Contradictions::Contradictions(const ExactEngine& engine) : memory_(new Memory{engine, {}, {}}) {}
Contradictions::~Contradictions() = default;

bool Contradictions::found(const std::vector<Expr>& conditions, const std::unordered_set<const Var*>& fixed,
                           size_t from) {
  using Condition = Memory::Condition;
  std::vector<const Condition*> all;
  std::vector<bool> counts;
  for (size_t n = 0; n < conditions.size(); ++n) {
    for (const Expr& each : operands_of_chain(conditions[n], Op::And)) {
      all.push_back(&memory_->know(each));
      counts.push_back(n >= from);
    }
  }
  if (exclude_each_other(all)) return true;
  // Conditions of one part have one root.
  std::vector<size_t> root(all.size());
  std::iota(root.begin(), root.end(), size_t{0});
  const auto find = [&](size_t n) {
    while (root[n] != n) n = root[n] = root[root[n]];
    return n;
  };
  std::unordered_map<const Var*, size_t> first;
  for (size_t n = 0; n < all.size(); ++n) {
    for (const Var* var : all[n]->vars) {
      if (fixed.contains(var)) continue;
      const auto [at, fresh] = first.emplace(var, n);
      if (!fresh) root[find(n)] = find(at->second);
    }
  }
  std::vector<const Condition*> general;  // of what is fixed alone: they hold for all parts
  std::map<size_t, std::vector<const Condition*>> parts;
  std::unordered_set<size_t> asked;
  for (size_t n = 0; n < all.size(); ++n) {
    const bool is_general =
        std::all_of(all[n]->vars.begin(), all[n]->vars.end(), [&](const Var* var) { return fixed.contains(var); });
    if (is_general) {
      general.push_back(all[n]);
    } else {
      parts[find(n)].push_back(all[n]);
      if (counts[n]) asked.insert(find(n));
    }
  }
  for (auto& [n, part] : parts) {
    if (!asked.contains(n)) continue;
    std::unordered_set<const Var*> used;
    for (const Condition* each : part) used.insert(each->vars.begin(), each->vars.end());
    std::copy_if(general.begin(), general.end(), std::back_inserter(part), [&](const Condition* each) {
      return std::any_of(each->vars.begin(), each->vars.end(), [&](const Var* var) { return used.contains(var); });
    });
    if (memory_->is_empty(part, fixed)) return true;
  }
  return false;
}

}  // namespace helve
