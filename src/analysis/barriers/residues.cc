// The remainders of all elements that an access touches, by thread.
// Own variables run through their ranges; conditions on them leave elements out. An index is mostly a sum of what the
// thread adds and of what its loops add, which are evaluated once each.
#include "residues.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "helve/arith/evaluator.h"
#include "helve/arith/residue.h"
#include "helve/arith/sum.h"
#include "helve/ir/expr/visit.h"

namespace helve::barriers {

namespace {

constexpr int64_t kElements = 1 << 16;  // of one access

struct Offset {
  Expr value;
  int64_t modulus;
};

/// Variables that run through constant ranges, the first one fastest.
struct Runs {
  std::vector<VarRef> vars;
  std::vector<int64_t> begins, counts;
  int64_t points = 1;

  bool add(const VarRange& range) {
    const int64_t* begin = range.begin ? int_value(range.begin) : nullptr;
    const int64_t* count = range.extent ? int_value(range.extent) : nullptr;
    if (!begin || !count || (points > 0 && *count > kElements / points)) return false;
    points *= std::max<int64_t>(*count, 0);
    vars.push_back(range.var);
    begins.push_back(*begin);
    counts.push_back(*count);
    return true;
  }
  void step(std::vector<int64_t>& values) const {
    for (size_t v = 0; v < values.size(); ++v) {
      if (++values[v] < begins[v] + counts[v]) return;
      values[v] = begins[v];
    }
  }
  bool mentioned_by(const Expr& e) const {
    bool found = false;
    walk(e, [&](const Expr& node) {
      found |= std::any_of(vars.begin(), vars.end(), [&](const VarRef& var) { return node.get() == var.get(); });
    });
    return found;
  }
  /// The values at all points; nothing if one is not known.
  std::optional<std::vector<int64_t>> all(const Expr& e) const {
    const Evaluator value(e, vars);
    std::vector<int64_t> out, at = begins;
    for (int64_t n = 0; n < points; ++n, step(at)) {
      const std::optional<int64_t> found = value.at(at);
      if (!found) return std::nullopt;
      out.push_back(*found);
    }
    return out;
  }
};

/// What threads touch: a row of indices for each element, and the thread's number.
struct Touched {
  size_t rank;
  std::vector<int64_t> rows = {};
  std::vector<int64_t> threads = {};

  const int64_t* row(size_t n) const { return &rows[n * rank]; }
};

/// An index as a sum of what depends on one part of the variables; false if it is none.
struct ByPart {
  std::vector<int64_t> of_thread, of_loops;

  bool find(const Expr& value, const Runs& thread, const Runs& loops) {
    const Sum sum = sum_of(value);
    Sum one{{}, sum.constant}, other{{}, 0};
    for (const Term& term : sum.terms) {
      const Expr alone = expr_of(Sum{{term}, 0});
      const bool by_thread = thread.mentioned_by(alone), by_loops = loops.mentioned_by(alone);
      if (by_thread && by_loops) return false;
      (by_thread ? one : other).terms.push_back(term);
    }
    std::optional<std::vector<int64_t>> first = thread.all(expr_of(one)), second = loops.all(expr_of(other));
    if (!first || !second) return false;
    of_thread = std::move(*first);
    of_loops = std::move(*second);
    return true;
  }
};

std::optional<Touched> elements_of(const BlockAccess& access, const std::vector<Offset>& offsets) {
  Runs thread, loops;
  for (const VarRange& range : access.inner) {
    if (!(range.var == access.thread ? thread : loops).add(range)) return std::nullopt;
  }
  if (thread.vars.empty() || thread.points * loops.points > kElements) return std::nullopt;
  std::vector<ByPart> parts(offsets.size());
  for (size_t d = 0; d < offsets.size(); ++d) {
    if (!parts[d].find(offsets[d].value, thread, loops)) return std::nullopt;
  }
  std::vector<VarRef> vars = loops.vars;
  vars.push_back(thread.vars[0]);
  std::vector<Evaluator> conditions;
  for (const Expr& condition : access.conditions) conditions.emplace_back(condition, vars);
  Touched out{offsets.size()};
  for (int64_t t = 0; t < thread.points; ++t) {
    std::vector<int64_t> values = loops.begins;
    for (int64_t l = 0; l < loops.points; ++l, loops.step(values)) {
      std::vector<int64_t> at = conditions.empty() ? std::vector<int64_t>() : values;
      if (!conditions.empty()) at.push_back(thread.begins[0] + t);
      const bool runs = std::all_of(conditions.begin(), conditions.end(),
                                    [&](const Evaluator& each) { return each.at(at).value_or(1) != 0; });
      if (!runs) continue;
      for (size_t d = 0; d < offsets.size(); ++d) {
        const int64_t index = parts[d].of_thread[static_cast<size_t>(t)] + parts[d].of_loops[static_cast<size_t>(l)];
        out.rows.push_back(offsets[d].modulus == 0 ? index : Residue::of(offsets[d].modulus, index).remainder);
      }
      out.threads.push_back(t);
    }
  }
  return out;
}

}  // namespace

std::optional<bool> threads_apart(const BlockAccess& earlier, const BlockAccess& later,
                                  const std::vector<ComparedOffsets>& dimensions) {
  std::vector<Offset> first, second;
  for (const ComparedOffsets& each : dimensions) {
    first.push_back({each.earlier, each.modulus});
    second.push_back({each.later, each.modulus});
  }
  const std::optional<Touched> one = elements_of(earlier, first), other = elements_of(later, second);
  if (!one || !other) return std::nullopt;
  const size_t rank = dimensions.size();
  std::vector<size_t> order(one->threads.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto less_rows = [&](const int64_t* a, const int64_t* b) {
    return std::lexicographical_compare(a, a + rank, b, b + rank);
  };
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return less_rows(one->row(a), one->row(b)); });
  for (size_t n = 0; n < other->threads.size(); ++n) {
    const int64_t* row = other->row(n);
    auto met = std::lower_bound(order.begin(), order.end(), row,
                                [&](size_t a, const int64_t* wanted) { return less_rows(one->row(a), wanted); });
    for (; met != order.end() && !less_rows(row, one->row(*met)); ++met) {
      if (one->threads[*met] != other->threads[n]) return false;
    }
  }
  return true;
}

}  // namespace helve::barriers
