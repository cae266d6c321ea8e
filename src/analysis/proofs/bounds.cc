// Are subscripts in bounds?
// Interval arithmetic decides almost every access; isl decides the rest.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "helve/arith/simplify.h"
#include "helve/ir/expr/equal.h"
#include "helve/ir/expr/visit.h"
#include "obligations.h"

namespace helve::proofs {

namespace {

class Bounds {
 public:
  Bounds(const AccessModel& model, PathFacts& facts, Budget& budget) : model_(model), budget_(budget), facts_(facts) {}

  Proof run(const Access& access) {
    Proof proof;
    proof.kind = ProofKind::Bounds;
    proof.span = access.span;
    proof.question = access.may_pass_end ? fmt::format("{} begins at 0 or later", text_of(access))
                                         : fmt::format("{} is inside {}", text_of(access), shape_text(access.limits));
    proof.verdict = ProofVerdict::Proved;
    const Facts& facts = facts_.after(access.path);
    if (facts.contradictory()) return proof;
    for (size_t d = 0; d < access.ranges.size() && proof.verdict != ProofVerdict::Refuted; ++d) {
      const Expr violation = violated(access, d, facts);
      if (violation) ask(access, d, violation, proof);
    }
    return proof;
  }

 private:
  /// The condition under which dimension d is out of bounds; null if it is proved that it never is.
  Expr violated(const Access& access, size_t d, const Facts& facts) {
    const Range& range = access.ranges[d];
    const Expr low = less(range.begin, int_imm(0));
    const Expr inside_low = apply(Op::Le, {int_imm(0), range.begin});
    const bool low_holds = can_prove(inside_low, facts);
    if (access.may_pass_end) return low_holds ? Expr() : low;
    const Expr end = range.begin + range.extent;
    const Expr high = less(access.limits[d], end);
    const bool high_holds = can_prove(apply(Op::Le, {end, access.limits[d]}), facts);
    if (low_holds && high_holds) return {};
    return low_holds ? high : high_holds ? low : apply(Op::Or, {low, high});
  }

  void ask(const Access& access, size_t d, const Expr& violation, Proof& proof) {
    const Finding found = answer(access, violation);
    if (found.verdict == ProofVerdict::Refuted) return refute(access, d, found.witness, proof);
    weaken(proof, found.verdict, found.reason);
    if (found.verdict != ProofVerdict::Checked) return;
    proof.conditions.push_back(call_condition(*model_.function, found.condition, proof.question, access.span,
                                              {declaration_note(*access.buffer)}));
  }

  /// A result that excludes a violation, or makes it a condition of the call, also holds under further conditions, so
  /// it is reused for accesses with longer paths.
  Finding answer(const Access& access, const Expr& violation) {
    const auto is_point = [](const Range& range) { return range.point; };
    if (!std::all_of(access.ranges.begin(), access.ranges.end(), is_point)) return asked(access, violation);
    const uint64_t hash = structural_hash(violation);
    const auto [first, last] = answered_.equal_range(hash);
    for (auto at = first; at != last; ++at) {
      const Answered& known = at->second;
      const size_t length = known.length;
      const bool on_path = length == 0 || (length <= access.path.size() && access.path[length - 1].get() == known.last);
      if (on_path && same_expr(known.violation, violation)) return known.found;
    }
    const Finding found = asked(access, violation);
    if (found.verdict == ProofVerdict::Proved || found.verdict == ProofVerdict::Checked) {
      const size_t steps = access.path.size();
      answered_.emplace(hash, Answered{violation, steps, steps ? access.path.back().get() : nullptr, found});
    }
    return found;
  }

  Finding asked(const Access& access, const Expr& violation) {
    if (budget_.queries <= 0) return {ProofVerdict::Unknown, {}, std::string(kOverBudget), {}};
    Query query(model_);
    for (const StepRef& step : access.path) query.add(*step);
    for (const Range& range : access.ranges) {
      if (!range.point) query.require(less(int_imm(0), range.extent));
    }
    return query.excludes(violation, budget_);
  }

  void refute(const Access& access, size_t d, const Witness& witness, Proof& proof) {
    const std::optional<int64_t> begin = evaluate(access.ranges[d].begin, witness);
    const std::optional<int64_t> limit = evaluate(access.limits[d], witness);
    if (!begin || !limit) return weaken(proof, ProofVerdict::Unknown, "the counterexample cannot be computed");
    weaken(proof, ProofVerdict::Refuted);
    const int64_t index = *begin < 0 ? *begin : std::max(*begin, *limit);
    proof.witness = mentioned_text(witness, {access.ranges[d].begin, access.ranges[d].extent, access.limits[d]});
    std::vector<Note> notes;
    if (!proof.witness.empty()) notes.push_back({{}, fmt::format("when {}", proof.witness)});
    notes.push_back(declaration_note(*access.buffer));
    proof.fault = Diagnostic{
        Code::OutOfBounds,
        access.span,
        {{"index", index}, {"dim", static_cast<int64_t>(d)}, {"buffer", access.buffer->name}, {"extent", *limit}},
        std::move(notes),
        proof.witness.empty() ? std::vector{range_remedy(static_cast<int64_t>(d), *limit)}
                              : std::vector<std::string>{}};
  }

  struct Answered {
    Expr violation;
    size_t length;  ///< of the path
    const Step* last;  ///< a step is on one path only
    Finding found;
  };

  const AccessModel& model_;
  Budget& budget_;
  std::unordered_multimap<uint64_t, Answered> answered_;  ///< by the violation's hash
  PathFacts& facts_;
};

/// Do both have the same bounds, as the load and the store of `A[i] += 1` do?
bool same_box(const Access& a, const Access& b) {
  return a.buffer == b.buffer && a.tiles == b.tiles && a.placed == b.placed && a.may_pass_end == b.may_pass_end &&
         a.path == b.path &&
         std::equal(a.ranges.begin(), a.ranges.end(), b.ranges.begin(), [](const Range& x, const Range& y) {
           return same_expr(x.begin, y.begin) && same_expr(x.extent, y.extent);
         });
}

}  // namespace

std::vector<Proof> prove_bounds(const AccessModel& model, PathFacts& facts, Budget& budget) {
  Bounds bounds(model, facts, budget);
  std::vector<Proof> out;
  std::unordered_map<size_t, std::vector<const Access*>> by_visit;
  for (const Access& access : model.bounds) {
    std::vector<const Access*>& known = by_visit[access.visit];
    if (std::any_of(known.begin(), known.end(), [&](const Access* each) { return same_box(*each, access); })) continue;
    known.push_back(&access);
    out.push_back(bounds.run(access));
  }
  return out;
}

}  // namespace helve::proofs
