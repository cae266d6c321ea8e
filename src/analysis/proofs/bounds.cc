// Do subscripts stay inside?
// Interval reasoning answers almost every question; isl is asked about what remains.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "helve/arith/simplify.h"
#include "helve/ir/expr/equal.h"
#include "helve/ir/expr/visit.h"
#include "questions.h"

namespace helve::proofs {

namespace {

class Bounds {
 public:
  Bounds(const Program& program, PathFacts& facts, Budget& budget)
      : program_(program), budget_(budget), facts_(facts) {}

  Proof run(const Touch& touch) {
    Proof proof;
    proof.kind = ProofKind::Bounds;
    proof.span = touch.span;
    proof.question = touch.may_pass_end ? fmt::format("{} begins at 0 or later", touch.text)
                                        : fmt::format("{} is inside {}", touch.text, shape_text(touch.limits));
    proof.verdict = ProofVerdict::Proved;
    const Facts& facts = facts_.after(touch.path);
    if (facts.contradictory()) return proof;
    for (size_t d = 0; d < touch.ranges.size() && proof.verdict != ProofVerdict::Refuted; ++d) {
      const Expr violation = violated(touch, d, facts);
      if (violation) ask(touch, d, violation, proof);
    }
    return proof;
  }

 private:
  /// The condition under which dimension d is outside; null when there is proof that it never is.
  Expr violated(const Touch& touch, size_t d, const Facts& facts) {
    const Range& range = touch.ranges[d];
    const Expr low = less(range.begin, int_imm(0));
    const Expr inside_low = apply(Op::Le, {int_imm(0), range.begin});
    const bool low_holds = can_prove(inside_low, facts);
    if (touch.may_pass_end) return low_holds ? Expr() : low;
    const Expr end = range.begin + range.extent;
    const Expr high = less(touch.limits[d], end);
    const bool high_holds = can_prove(apply(Op::Le, {end, touch.limits[d]}), facts);
    if (low_holds && high_holds) return {};
    return low_holds ? high : high_holds ? low : apply(Op::Or, {low, high});
  }

  void ask(const Touch& touch, size_t d, const Expr& violation, Proof& proof) {
    const Finding found = answer(touch, violation);
    if (found.verdict == ProofVerdict::Refuted) return refute(touch, d, found.witness, proof);
    weaken(proof, found.verdict, found.reason);
    if (found.verdict != ProofVerdict::Checked) return;
    proof.conditions.push_back(
        call_condition(*program_.function, found.condition, proof.question, touch.span, {declaration(*touch.buffer)}));
  }

  /// What is excluded, or checked at the call, is so too where more must hold: an answer stands for the accesses that
  /// wait for further conditions.
  Finding answer(const Touch& touch, const Expr& violation) {
    const auto is_point = [](const Range& range) { return range.point; };
    if (!std::all_of(touch.ranges.begin(), touch.ranges.end(), is_point)) return asked(touch, violation);
    const uint64_t hash = structural_hash(violation);
    const auto [first, last] = answered_.equal_range(hash);
    for (auto at = first; at != last; ++at) {
      const Answered& known = at->second;
      const bool on_path =
          known.length == 0 || (known.length <= touch.path.size() && touch.path[known.length - 1].get() == known.last);
      if (on_path && same_expr(known.violation, violation)) return known.found;
    }
    const Finding found = asked(touch, violation);
    if (found.verdict == ProofVerdict::Proved || found.verdict == ProofVerdict::Checked) {
      const size_t length = touch.path.size();
      answered_.emplace(hash, Answered{violation, length, length ? touch.path.back().get() : nullptr, found});
    }
    return found;
  }

  Finding asked(const Touch& touch, const Expr& violation) {
    if (budget_.questions <= 0) return {ProofVerdict::Unknown, {}, std::string(kOverBudget), {}};
    Query query(program_);
    for (const StepRef& step : touch.path) query.add(*step);
    for (const Range& range : touch.ranges) {
      if (!range.point) query.require(less(int_imm(0), range.extent));
    }
    return query.excludes(violation, budget_);
  }

  static Note declaration(const Buffer& buffer) {
    return {buffer.span, fmt::format("'{}' has shape {}", buffer.name, shape_text(buffer.shape))};
  }

  void refute(const Touch& touch, size_t d, const Witness& witness, Proof& proof) {
    const std::optional<int64_t> begin = evaluate(touch.ranges[d].begin, witness);
    const std::optional<int64_t> limit = evaluate(touch.limits[d], witness);
    if (!begin || !limit) return weaken(proof, ProofVerdict::Unknown, "the counterexample cannot be computed");
    weaken(proof, ProofVerdict::Refuted);
    const int64_t index = *begin < 0 ? *begin : std::max(*begin, *limit);
    proof.witness = mentioned_text(witness, {touch.ranges[d].begin, touch.ranges[d].extent, touch.limits[d]});
    std::vector<Note> notes;
    if (!proof.witness.empty()) notes.push_back({{}, fmt::format("when {}", proof.witness)});
    notes.push_back(declaration(*touch.buffer));
    proof.fault = Diagnostic{Code::OutOfBounds,
                             touch.span,
                             {{"index", index},
                              {"dim", static_cast<int64_t>(d)},
                              {"buffer", touch.buffer->name},
                              {"extent", *limit}},
                             std::move(notes),
                             {}};
  }

  struct Answered {
    Expr violation;
    size_t length;     ///< of the path
    const Step* last;  ///< a step stands on one path only
    Finding found;
  };

  const Program& program_;
  Budget& budget_;
  std::unordered_multimap<uint64_t, Answered> answered_;  ///< by the violation's hash
  PathFacts& facts_;
};

}  // namespace

std::vector<Proof> prove_bounds(const Program& program, PathFacts& facts, Budget& budget) {
  Bounds bounds(program, facts, budget);
  std::vector<Proof> out;
  for (const Touch& touch : program.bounds) out.push_back(bounds.run(touch));
  return out;
}

}  // namespace helve::proofs
