// Do the operands of tile operations have equal shapes?
// The verifier compares constants; extents that only the call knows are compared here, since lowered loops rely on
// their equality.
#include <fmt/format.h>

#include <algorithm>

#include "helve/analysis/region_match.h"
#include "helve/arith/simplify.h"
#include "helve/ir/expr/equal.h"
#include "helve/ir/expr/text.h"
#include "helve/ir/expr/visit.h"
#include "helve/support/text.h"
#include "obligations.h"

namespace helve::proofs {

namespace {

/// Extents that an operation needs equal; `pairs` is nothing if only a call determines which dimensions match.
struct ShapeClaim {
  std::optional<std::vector<std::pair<Expr, Expr>>> pairs;
  std::string text;
  std::vector<Note> notes;
  Span span;
  Path path;
};

/// The claim that the verifier could not decide by constants; nothing if it could.
std::optional<ShapeClaim> claim_of(const Operation& operation, const Function& f) {
  const TileOp& op = *operation.op;
  ShapeClaim claim;
  if (const auto pairs = equal_extents(*operation.known, f)) {
    claim.pairs.emplace();
    for (const auto& [left, right] : *pairs) {
      if (int_value(left) && int_value(right)) continue;
      if (!same_expr(left, right)) claim.pairs->emplace_back(left, right);
    }
    if (claim.pairs->empty()) return {};
  }
  const std::vector<TileParam>& params = op.row().params;
  std::vector<std::string> shapes;
  for (size_t i = 0; i < params.size(); ++i) {
    if (!op.is_region(i)) continue;
    const Buffer& buffer = *op.region(i).buffer;
    shapes.push_back(fmt::format("{} {}", params[i].name, shape_text(op.region(i).shape())));
    claim.notes.push_back({buffer.span, fmt::format("'{}' has shape {}", buffer.name, shape_text(buffer.shape))});
  }
  const std::string all = join(shapes, ", ", [](const std::string& shape) { return shape; });
  claim.text = fmt::format("{} of {} agree", all, operation_text(op));
  claim.span = op.span;
  claim.path = operation.path;
  return claim;
}

/// A negative extent is that of an empty region.
Expr counted(const Expr& extent, const Facts& facts) {
  return can_prove(apply(Op::Le, {int_imm(0), extent}), facts) ? extent : max(extent, int_imm(0));
}

Facts facts_at(const ShapeClaim& claim, const AccessModel& model) {
  Facts facts;
  for (const VarRef& dim : model.function->dims) facts.bind(dim, {0, std::nullopt});
  for (const StepRef& step : claim.path) learn(facts, *step, model.constant);
  return facts;
}

/// The error names the first two extents that differ under the witness.
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

/// Does every call execute this? Loops are not empty, and there are no guards.
bool is_certain(const Path& path, const Facts& facts) {
  return std::all_of(path.begin(), path.end(), [&](const StepRef& step) {
    if (step->value) return true;
    return !step->condition && !step->begins.empty() &&
           std::all_of(step->extents.begin(), step->extents.end(),
                       [&](const Expr& extent) { return can_prove(apply(Op::Le, {int_imm(1), extent}), facts); });
  });
}

bool unsigned64(DType t) { return t.code == TypeCode::UInt && t.bits == 64; }  // the host's integers are signed

/// Is `e` a value that a call knows? Products of extents are, although they cannot be proved.
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

std::vector<Proof> prove_shapes(const AccessModel& model, Budget& budget) {
  std::vector<Proof> out;
  for (const Operation& operation : model.operations) {
    const std::optional<ShapeClaim> found_claim = claim_of(operation, *model.function);
    if (!found_claim) continue;
    const ShapeClaim& claim = *found_claim;
    Proof proof;
    proof.kind = ProofKind::Shape;
    proof.question = claim.text;
    proof.span = claim.span;
    proof.verdict = ProofVerdict::Proved;
    if (!claim.pairs) weaken(proof, ProofVerdict::Unknown, "extents known at the call decide which dimensions match");
    const Facts facts = facts_at(claim, model);
    Expr differ;
    for (size_t i = 0; claim.pairs && i < claim.pairs->size(); ++i) {
      const auto& [left, right] = (*claim.pairs)[i];
      const Expr a = counted(left, facts), b = counted(right, facts);
      if (can_prove(apply(Op::Eq, {a, b}), facts)) continue;
      const Expr one = apply(Op::Ne, {a, b});
      differ = differ ? apply(Op::Or, {differ, one}) : one;
    }
    if (differ && !facts.contradictory()) {
      Query query(model);
      for (const StepRef& step : claim.path) query.add(*step);
      Finding found = query.excludes(differ, budget);
      const bool at_call = is_certain(claim.path, facts) && is_known_at_call(differ, *model.function);
      if (found.verdict == ProofVerdict::Unknown && at_call) {
        found = {ProofVerdict::Checked, {}, {}, simplify(apply(Op::Not, {differ}))};
      }
      weaken(proof, found.verdict, found.reason);
      if (found.verdict == ProofVerdict::Checked) {
        proof.conditions.push_back(
            call_condition(*model.function, found.condition, claim.text, claim.span, claim.notes));
      }
      if (found.verdict == ProofVerdict::Refuted) refute(claim, found.witness, proof);
    }
    out.push_back(std::move(proof));
  }
  return out;
}

}  // namespace helve::proofs
