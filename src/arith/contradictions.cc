// Contradictions between conditions.
// Two comparisons of one sum are compared by their constants; what is left goes to isl, a connected part at a time.
#include "helve/arith/contradictions.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <unordered_map>

#include "helve/arith/sum.h"
#include "helve/ir/expr/build.h"
#include "helve/ir/expr/chain.h"
#include "helve/ir/expr/equal.h"
#include "helve/ir/expr/visit.h"

namespace helve {

/// low <= terms <= high, or anything but `other`.
struct SumBounds {
  Sum terms;  ///< with the constant 0, a positive first term and coefficients without a common factor
  std::optional<int64_t> low, high, other;
};

namespace {

/// Takes out the common factor of the coefficients: a sum of multiples of 6 that is at most 8 is at most 6.
void divide_by_common_factor(SumBounds& of) {
  int64_t factor = 0;
  for (const Term& term : of.terms.terms) {
    if (term.coefficient == INT64_MIN) return;
    factor = std::gcd(factor, term.coefficient);
  }
  if (factor < 2) return;
  for (Term& term : of.terms.terms) term.coefficient /= factor;
  const auto floor = [&](int64_t value) { return value / factor - (value % factor < 0); };
  if (of.low) of.low = floor(*of.low) + (*of.low % factor != 0);
  if (of.high) of.high = floor(*of.high);
  if (!of.other) return;
  if (*of.other % factor == 0) {
    of.other = *of.other / factor;
  } else {
    of.other.reset();
  }
}

/// A comparison of index expressions as bounds; nothing if it is another condition.
std::optional<SumBounds> bounds_of(const Expr& condition) {
  const Apply* node = as<Apply>(condition);
  if (!node || node->args.size() != 2 || !node->args[0]->dtype.is_index()) return std::nullopt;
  Op op = node->op;
  if (op != Op::Lt && op != Op::Le && op != Op::Gt && op != Op::Ge && op != Op::Eq && op != Op::Ne) return std::nullopt;
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
  const int64_t strict = op == Op::Lt || op == Op::Gt;
  if (op == Op::Ne) out.other = bound;
  if (op == Op::Eq || op == Op::Ge || op == Op::Gt) {
    if (bound > INT64_MAX - strict) return std::nullopt;
    out.low = bound + strict;
  }
  if (op == Op::Eq || op == Op::Le || op == Op::Lt) {
    if (bound < INT64_MIN + strict) return std::nullopt;
    out.high = bound - strict;
  }
  divide_by_common_factor(out);
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

/// Conditions as a text that is the same for those that differ in names of variables only, so that they are one
/// question. A variable is numbered by its first use; what is fixed, and what is neither a number nor an operator, is
/// itself.
class PartText {
 public:
  /// With `named`, variables are themselves: what is no operator may use them.
  PartText(const std::unordered_set<const Var*>& fixed, bool named) : fixed_(fixed), named_(named) {}

  void add(const Expr& condition) {
    write(condition);
    text_ += ';';
  }
  const std::string& text() const { return text_; }

 private:
  void write(const Expr& e) {
    const Apply* node = as<Apply>(e);
    if (node) {
      put('(', static_cast<int64_t>(node->op));
      for (const Expr& arg : node->args) write(arg);
    } else if (const int64_t* number = e->dtype.is_index() ? int_value(e) : nullptr) {
      put('n', *number);
    } else if (const Var* var = as<Var>(e); var && !named_ && var->dtype.is_index() && !fixed_.contains(var)) {
      put('v', static_cast<int64_t>(numbers_.emplace(var, numbers_.size()).first->second));
    } else {
      put('e', static_cast<int64_t>(reinterpret_cast<intptr_t>(e.get())));
    }
  }
  void put(char kind, int64_t value) {
    text_ += kind;
    text_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }

  const std::unordered_set<const Var*>& fixed_;
  const bool named_;
  std::unordered_map<const Var*, size_t> numbers_;
  std::string text_;
};

}  // namespace

struct Contradictions::Condition {
  Expr expr;  ///< keeps it alive, so that its address stays its own
  std::vector<const Var*> vars;
  bool plain = true;  ///< of numbers, variables and operators only
  std::optional<SumBounds> bounds;
  size_t sum = 0;  ///< the number of the bounds' terms: equal ones have one
};

struct Contradictions::Memory {
  /// What conditions say of a sum.
  struct Range {
    size_t question = 0;  ///< to which it belongs
    int64_t low = INT64_MIN, high = INT64_MAX;
  };

  ExactEngine engine;
  std::unordered_map<const ExprNode*, Condition> conditions;
  std::unordered_map<uint64_t, std::vector<std::pair<Sum, size_t>>> sums;  ///< with their numbers, by hash
  std::vector<Range> ranges;  ///< of the sums
  size_t questions = 0;
  std::unordered_map<std::string, bool> parts;  ///< by their text

  explicit Memory(const ExactEngine& engine) : engine(engine) {}

  const Condition& know(const Expr& e) {
    auto [at, fresh] = conditions.try_emplace(e.get());
    if (!fresh) return at->second;
    Condition& out = at->second;
    out.expr = e;
    std::unordered_set<const Var*> seen;
    walk(e, [&](const Expr& node) {
      const Var* var = as<Var>(node);
      if (var && seen.insert(var).second) out.vars.push_back(var);
      out.plain &= var || node->kind == ExprKind::IntImm || node->kind == ExprKind::Apply;
    });
    out.bounds = bounds_of(e);
    if (out.bounds) out.sum = number_of(out.bounds->terms);
    return out;
  }

  size_t number_of(const Sum& sum) {
    std::vector<std::pair<Sum, size_t>>& candidates = sums[structural_hash(expr_of(sum))];
    const auto at = std::find_if(candidates.begin(), candidates.end(),
                                 [&](const auto& other) { return of_one_sum(other.first, sum); });
    if (at != candidates.end()) return at->second;
    candidates.emplace_back(sum, ranges.size());
    ranges.emplace_back();
    return candidates.back().second;
  }

  /// Do two of the conditions bound one sum from both sides, with nothing between?
  bool exclude_each_other(const Conjunction& conditions, const Conjunction& more) {
    ++questions;
    for (const Conjunction* all : {&conditions, &more}) {
      for (const Condition* each : *all) {
        if (!each->bounds) continue;
        Range& range = ranges[each->sum];
        if (range.question != questions) range = Range{questions};
        if (each->bounds->terms.is_constant()) range = Range{questions, 0, 0};
        if (each->bounds->low) range.low = std::max(range.low, *each->bounds->low);
        if (each->bounds->high) range.high = std::min(range.high, *each->bounds->high);
        if (range.low > range.high) return true;
      }
    }
    const auto is_the_only_value = [&](const Condition* each) {
      if (!each->bounds || !each->bounds->other) return false;
      const int64_t other = *each->bounds->other;
      const Range& range = ranges[each->sum];
      return range.low == other && range.high == other;
    };
    return std::any_of(conditions.begin(), conditions.end(), is_the_only_value) ||
           std::any_of(more.begin(), more.end(), is_the_only_value);
  }

  bool is_empty(const Conjunction& part, const std::unordered_set<const Var*>& fixed);
};

bool Contradictions::Memory::is_empty(const Conjunction& part, const std::unordered_set<const Var*>& fixed) {
  PartText text(fixed, std::any_of(part.begin(), part.end(), [](const Condition* each) { return !each->plain; }));
  for (const Condition* each : part) text.add(each->expr);
  const auto [at, fresh] = parts.try_emplace(text.text(), false);
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

Contradictions::Contradictions(const ExactEngine& engine) : memory_(new Memory(engine)) {}
Contradictions::~Contradictions() = default;

Contradictions::Conjunction Contradictions::known(const std::vector<Expr>& conditions) {
  Conjunction out;
  for (const Expr& each : conditions) {
    for (const Expr& part : operands_of_chain(each, Op::And)) out.push_back(&memory_->know(part));
  }
  return out;
}

bool Contradictions::excluded(const Conjunction& conditions, const Conjunction& more) {
  return memory_->exclude_each_other(conditions, more);
}

bool Contradictions::found(const Conjunction& conditions, const Conjunction& more,
                           const std::unordered_set<const Var*>& fixed) {
  if (memory_->exclude_each_other(conditions, more)) return true;
  Conjunction all = conditions;
  all.insert(all.end(), more.begin(), more.end());
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
  Conjunction general;  // of what is fixed alone: they hold for all parts
  std::map<size_t, Conjunction> parts;
  std::unordered_set<size_t> asked;
  for (size_t n = 0; n < all.size(); ++n) {
    const bool is_general =
        std::all_of(all[n]->vars.begin(), all[n]->vars.end(), [&](const Var* var) { return fixed.contains(var); });
    if (is_general) {
      general.push_back(all[n]);
    } else {
      parts[find(n)].push_back(all[n]);
      if (n >= conditions.size()) asked.insert(find(n));
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
