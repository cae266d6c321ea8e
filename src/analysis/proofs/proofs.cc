// The proofs of a function.
// Shapes and bounds come before races: an out-of-bounds access should be fixed first.
#include "helve/analysis/proofs.h"

#include <algorithm>

#include "helve/ir/expr/equal.h"
#include "obligations.h"
#include "order.h"

namespace helve {

std::string_view to_string(ProofKind kind) {
  switch (kind) {
    case ProofKind::Call: return "call";
    case ProofKind::Race: return "race";
    case ProofKind::Bounds: return "bounds";
    case ProofKind::Shape: return "shape";
    case ProofKind::Async: return "async";
  }
  __builtin_unreachable();
}

std::string_view to_string(ProofVerdict verdict) {
  switch (verdict) {
    case ProofVerdict::Proved: return "proved";
    case ProofVerdict::Checked: return "checked";
    case ProofVerdict::Refuted: return "refuted";
    case ProofVerdict::Unknown: return "unknown";
  }
  __builtin_unreachable();
}

std::vector<Proof> prove(const Function& f) {
  const AccessModel model = access_model(f);
  proofs::Budget budget;
  PathFacts facts(model);
  std::vector<Proof> out = proofs::assumed(f);
  for (Proof& proof : proofs::prove_order(model)) out.push_back(std::move(proof));
  for (Proof& proof : proofs::prove_shapes(model, budget)) out.push_back(std::move(proof));
  for (Proof& proof : proofs::prove_bounds(model, facts, budget)) out.push_back(std::move(proof));
  for (Proof& proof : proofs::prove_members(model, facts, budget)) out.push_back(std::move(proof));
  for (Proof& proof : proofs::prove_races(model, facts, budget)) out.push_back(std::move(proof));
  for (Proof& proof : proofs::prove_waits(f, budget)) out.push_back(std::move(proof));
  return out;
}

std::vector<CallCondition> call_conditions(const std::vector<Proof>& proofs) {
  std::vector<CallCondition> out;
  for (const Proof& proof : proofs) {
    for (const CallCondition& each : proof.conditions) {
      const bool known = std::any_of(out.begin(), out.end(), [&](const CallCondition& other) {
        return same_expr(each.condition, other.condition);
      });
      if (!known) out.push_back(each);
    }
  }
  return out;
}

void refuse_open_shapes(const std::vector<Proof>& proofs) {
  for (const Proof& proof : proofs) {
    if (proof.kind != ProofKind::Shape || proof.verdict != ProofVerdict::Unknown) continue;
    throw UserError(Code::OpenShape, proof.span, {{"claim", proof.question}}, {{{}, proof.reason}});
  }
}

void refuse_refuted(const std::vector<Proof>& proofs) {
  for (const Proof& proof : proofs) {
    if (proof.fault) throw UserError(*proof.fault);
  }
}

std::vector<Diagnostic> find_warnings(const Function& f, const std::vector<Proof>& proofs) {
  std::vector<Diagnostic> out;
  for (const Proof& proof : proofs) {
    for (const Diagnostic& warning : proof.warnings) {
      const bool known = std::any_of(out.begin(), out.end(), [&](const Diagnostic& other) {
        return other.code == warning.code && other.span == warning.span;  // of a loop around this one
      });
      if (!known) out.push_back(warning);
    }
  }
  for (Diagnostic& warning : proofs::find_reduced_pads(f)) out.push_back(std::move(warning));
  for (Diagnostic& warning : proofs::find_undefined_reads(f)) out.push_back(std::move(warning));
  return out;
}

}  // namespace helve
