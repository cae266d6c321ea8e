// Are roots of collectives members of their groups, and cores of T.comm.put cores of the mesh?
// The verifier compares constants. Kernels do not check the rest, so what a call decides is a condition of the call.
#include <fmt/format.h>

#include "helve/arith/simplify.h"
#include "helve/ir/expr/text.h"
#include "helve/ir/tensor/group_operands.h"
#include "obligations.h"

namespace helve::proofs {

namespace {

void refute(const TileOp& op, const MemberOperand& member, const Witness& witness, Proof& proof) {
  const std::optional<int64_t> value = evaluate(member.value, witness);
  if (!value) return weaken(proof, ProofVerdict::Unknown, "the counterexample cannot be computed");
  weaken(proof, ProofVerdict::Refuted);
  proof.witness = mentioned_text(witness, {member.value});
  std::vector<Note> notes;
  if (!proof.witness.empty()) notes.push_back({{}, fmt::format("when {}", proof.witness)});
  proof.fault = Diagnostic{Code::BadArgument,
                           op.place(member.operand),
                           {{"function", operation_text(op)},
                            {"value", *value},
                            {"parameter", std::string(op.row().params[member.operand].name)},
                            {"reason", member.reason},
                            {"remedy", member.remedy}},
                           std::move(notes),
                           {}};
}

}  // namespace

std::vector<Proof> prove_members(const AccessModel& model, PathFacts& path_facts, Budget& budget) {
  std::vector<Proof> out;
  if (!model.function->mesh) return out;
  for (const Operation& operation : model.operations) {
    const TileOp& op = *operation.op;
    if (!op.row().is_collective()) continue;
    for (const MemberOperand& member : members_of(*operation.known, *model.function->mesh)) {
      if (!member.value->dtype.is_index() || int_value(member.value)) continue;
      Proof proof;
      proof.span = op.place(member.operand);
      proof.question = fmt::format("'{}' of {}, {}, is one of {} cores", op.row().params[member.operand].name,
                                   operation_text(op), to_text(member.value), member.count);
      proof.verdict = ProofVerdict::Proved;
      const Facts& facts = path_facts.after(operation.path);
      const Expr low = less(member.value, int_imm(0)), high = less(int_imm(member.count - 1), member.value);
      const bool low_holds = can_prove(apply(Op::Le, {int_imm(0), member.value}), facts);
      const bool high_holds = can_prove(less(member.value, int_imm(member.count)), facts);
      if (!facts.contradictory() && !(low_holds && high_holds)) {
        Query query(model);
        for (const StepRef& step : operation.path) query.add(*step);
        const Expr violation = low_holds ? high : high_holds ? low : apply(Op::Or, {low, high});
        const Finding found = budget.queries > 0 ? query.excludes(violation, budget)
                                                 : Finding{ProofVerdict::Unknown, {}, std::string(kOverBudget), {}};
        if (found.verdict == ProofVerdict::Refuted) {
          refute(op, member, found.witness, proof);
        } else {
          weaken(proof, found.verdict, found.reason);
        }
        if (found.verdict == ProofVerdict::Checked) {
          proof.conditions.push_back(call_condition(*model.function, found.condition, proof.question, proof.span, {}));
        }
      }
      out.push_back(std::move(proof));
    }
  }
  return out;
}

}  // namespace helve::proofs
