// Do the operands of tile operations have equal shapes?
// The verifier compares constants; extents known at the call are compared here, since lowered loops trust their
// equality.
#include <fmt/format.h>

#include <algorithm>

#include "helve/arith/simplify.h"
#include "helve/ir/expr/text.h"
#include "helve/ir/expr/visit.h"
#include "questions.h"

namespace helve::proofs {

namespace {

/// An extent below 0 is that of an empty region.
Expr counted(const Expr& extent, const Facts& facts) {
  return can_prove(apply(Op::Le, {int_imm(0), extent}), facts) ? extent : max(extent, int_imm(0));
}

Facts facts_at(const ShapeClaim& claim, const Program& program) {
  Facts facts;
  for (const VarRef& dim : program.function->dims) facts.bind(dim, {0, std::nullopt});
  for (const StepRef& step : claim.path) learn(facts, *step, program.constant);
  return facts;
}

/// The first two extents that differ under the witness are the error's.
void refute(const ShapeClaim& claim, const Witness& witness, Proof& proof) {
  for (const auto& [left, right] : *claim.pairs) {
    const std::optional<int64_t> a = evaluate(left, witness), b = evaluate(right, witness);
    if (!a || !b || std::max<int64_t>(*a, 0) == std::max<int64_t>(*b, 0)) continue;
    weaken(proof, ProofVerdict::Refuted);
    proof.witness = mentioned_text(witness, {left, right});
    std::vector<Note> notes = claim.notes;
    if (!proof.witness.empty()) notes.insert(notes.begin(), {{}, fmt::format("when {}", proof.witness)});
    proof.fault =
        Diagnostic{Code::ShapeMismatch,
                   claim.span,
                   {{"what", "extents that must be equal"}, {"left", to_text(left)}, {"right", to_text(right)}},
                   std::move(notes),
                   {}};
    return;
  }
  weaken(proof, ProofVerdict::Unknown, "the counterexample cannot be computed");
}

/// Does every call come here? Loops run, and nothing guards.
bool is_certain(const Path& path, const Facts& facts) {
  return std::all_of(path.begin(), path.end(), [&](const StepRef& step) {
    if (step->value) return true;
    return !step->condition && !step->begins.empty() &&
           std::all_of(step->extents.begin(), step->extents.end(),
                       [&](const Expr& extent) { return can_prove(apply(Op::Le, {int_imm(1), extent}), facts); });
  });
}

bool unsigned64(DType t) { return t.code == TypeCode::UInt && t.bits == 64; }  // the host's integers are signed

/// Is `e` a value that a call knows? Products of extents are, although no proof gets through them.
bool is_known_at_call(const Expr& e, const Function& f) {
  bool known = !has_load(e);
  walk(e, [&](const Expr& node) {
    const Var* var = as<Var>(node);
    if (!var) return;
    const auto is = [&](const VarRef& v) { return v.get() == var; };
    const bool is_param = std::any_of(f.params.begin(), f.params.end(), [&](const Param& p) {
      const VarRef* scalar = std::get_if<VarRef>(&p);
      return scalar && is(*scalar) && var->dtype.is_integer() && !unsigned64(var->dtype);
    });
    known &= is_param || std::any_of(f.dims.begin(), f.dims.end(), is);
  });
  return known;
}

}  // namespace

std::vector<Proof> prove_shapes(const Program& program, Budget& budget) {
  std::vector<Proof> out;
  for (const ShapeClaim& claim : program.shapes) {
    Proof proof;
    proof.kind = ProofKind::Shape;
    proof.question = claim.text;
    proof.span = claim.span;
    proof.verdict = ProofVerdict::Proved;
    if (!claim.pairs) weaken(proof, ProofVerdict::Unknown, "extents known at the call decide which dimensions match");
    const Facts facts = facts_at(claim, program);
    Expr differ;
    for (size_t i = 0; claim.pairs && i < claim.pairs->size(); ++i) {
      const auto& [left, right] = (*claim.pairs)[i];
      const Expr a = counted(left, facts), b = counted(right, facts);
      if (can_prove(apply(Op::Eq, {a, b}), facts)) continue;
      const Expr one = apply(Op::Ne, {a, b});
      differ = differ ? apply(Op::Or, {differ, one}) : one;
    }
    if (differ && !facts.contradictory()) {
      Query query(program);
      for (const StepRef& step : claim.path) query.add(*step);
      Finding found = query.excludes(differ, budget);
      const bool at_call = is_certain(claim.path, facts) && is_known_at_call(differ, *program.function);
      if (found.verdict == ProofVerdict::Unknown && at_call) {
        found = {ProofVerdict::Checked, {}, {}, simplify(apply(Op::Not, {differ}))};
      }
      weaken(proof, found.verdict, found.reason);
      if (found.verdict == ProofVerdict::Checked) {
        proof.conditions.push_back(
            call_condition(*program.function, found.condition, claim.text, claim.span, claim.notes));
      }
      if (found.verdict == ProofVerdict::Refuted) refute(claim, found.witness, proof);
    }
    out.push_back(std::move(proof));
  }
  return out;
}

}  // namespace helve::proofs
