// The proofs of a function.
// Bounds come before races: an access outside its buffer is the fault to mend first.
#include "helve/analysis/proofs.h"

#include "questions.h"

namespace helve {

std::string_view to_string(ProofKind kind) {
  switch (kind) {
    case ProofKind::Race: return "race";
    case ProofKind::Bounds: return "bounds";
  }
  __builtin_unreachable();
}

std::vector<Proof> prove(const Function& f) {
  const proofs::Program program = proofs::collect(f);
  proofs::Budget budget;
  std::vector<Proof> out = proofs::prove_bounds(program, budget);
  for (Proof& proof : proofs::prove_races(program, budget)) out.push_back(std::move(proof));
  return out;
}

void refuse_refuted(const std::vector<Proof>& proofs) {
  for (const Proof& proof : proofs) {
    if (proof.fault) throw UserError(*proof.fault);
  }
}

std::vector<Diagnostic> find_warnings(const Function& f) { return proofs::find_reduced_pads(f); }

}  // namespace helve
