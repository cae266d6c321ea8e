// What a function assumes, as conditions of its calls.
// They are stated and not found, so that nothing is left to prove: each call is checked.
#include <fmt/format.h>

#include "helve/ir/expr/text.h"
#include "obligations.h"

namespace helve::proofs {

std::vector<Proof> assumed(const Function& f) {
  std::vector<Proof> out;
  for (const Assumption& each : f.assumptions) {
    Proof proof;
    proof.kind = ProofKind::Call;
    proof.question = fmt::format("{} in every call", to_text(each.condition));
    proof.verdict = ProofVerdict::Checked;
    proof.span = each.span;
    std::vector<Note> notes;
    if (each.span.known()) notes.push_back({each.span, "it is assumed here"});
    proof.conditions.push_back(call_condition(f, each.condition, each.span, std::move(notes)));
    out.push_back(std::move(proof));
  }
  return out;
}

}  // namespace helve::proofs
