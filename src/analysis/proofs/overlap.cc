// The conditions under which two iterations touch one element.
// Blocks, cores and iterations of Persistent loops differ in who runs after whom; boxes in their coordinates.
#include "overlap.h"

#include <algorithm>

#include "helve/analysis/instance_pair.h"
#include "helve/arith/simplify.h"
#include "helve/arith/sum.h"
#include "helve/ir/expr/visit.h"
#include "helve/ir/tensor/visit.h"

namespace helve::proofs {

namespace {

/// The two cores differ only along axes on which the tensor is replicated.
Expr of_one_block(const Iterations& of, const MeshTensor& tensor, const InstancePair& two) {
  const std::vector<size_t> axes = replica_axes(of, tensor);
  Expr out = bool_imm(true);
  for (size_t d = 0; d < of.step.vars.size(); ++d) {
    if (std::find(axes.begin(), axes.end(), d) != axes.end()) continue;
    out = logical_and(out, two.agree(of.step.vars[d]));
  }
  return out;
}

/// Iterations of one block are sequential.
Expr on_other_blocks(const Iterations& of, const InstancePair& two) {
  Expr out;
  for (const VarRef& var : of.loop[of.from]->vars) out = out ? apply(Op::Or, {out, two.differ(var)}) : two.differ(var);
  return out;
}

/// Serial loops between kernel and Persistent loop: both iterations belong to one execution of the Persistent loop.
void agree(Query& query, const Step& step, const InstancePair& two) {
  if (!step.stmt || step.stmt->kind == StmtKind::Kernel) return;
  for (const VarRef& var : step.vars) query.require(two.agree(var));
}

bool is_persistent(const Step& step) {
  return step.stmt && step.stmt->kind == StmtKind::For &&
         static_cast<const For&>(*step.stmt).loop == LoopKind::Persistent;
}

/// Iteration n of a Persistent loop belongs to block n modulo the number of blocks.
void deal(const Iterations& of, Query& query, const Access& access, const Substitution& renamed) {
  if (of.mesh || !(of.is_kernel || of.is_persistent)) return;
  const Step* kernel = nullptr;
  for (const StepRef& step : access.path) {
    if (step->stmt && step->stmt->kind == StmtKind::Kernel) kernel = step.get();
    if (!is_persistent(*step) || !kernel) continue;
    Expr count = int_imm(1), number = int_imm(0), iteration = int_imm(0);
    for (size_t d = 0; d < kernel->vars.size(); ++d) {
      count = count * kernel->extents[d];
      number = number * kernel->extents[d] + Expr(kernel->vars[d]);
    }
    for (size_t d = 0; d < step->vars.size(); ++d) {
      iteration = iteration * step->extents[d] + (Expr(step->vars[d]) - step->begins[d]);
    }
    query.require(
        substitute(apply(Op::Eq, {floor_mod(simplify(iteration), simplify(count)), simplify(number)}), renamed));
  }
}

/// Do both instances see the same value?
bool is_common(const Iterations& of, const Expr& e, const InstancePair& two) {
  return !changes(e, of.model.constant) && same_expr(two.second(e), e);
}

/// What two blocks run of one Persistent loop are two iterations of it, or of the loops around it, if both number them
/// alike. That follows from how iterations are dealt, but only where their number is affine.
void deal_apart(const Iterations& of, const Pair& pair, Query& query, const InstancePair& two) {
  if (of.mesh || !of.is_kernel) return;
  const Path &a = pair.first->path, &b = pair.second->path;
  Expr apart;
  for (size_t i = of.at + 1; i < std::min(a.size(), b.size()) && a[i] == b[i]; ++i) {
    for (const VarRef& var : a[i]->vars) {
      apart = apart ? apply(Op::Or, {apart, two.differ(var)}) : two.differ(var);
    }
    if (!is_persistent(*a[i])) continue;
    const Step& step = *a[i];
    bool alike = true;
    for (size_t d = 0; d < step.vars.size(); ++d) {
      alike &= is_common(of, step.begins[d], two) && (d == 0 || is_common(of, step.extents[d], two));
    }
    if (alike) query.require(apart);
    return;
  }
}

/// The two iterations differ; in order, if the pair is symmetric.
Expr different(const Iterations& of, const Pair& pair, const InstancePair& two) {
  Expr out;
  Expr before;  // earlier variables agree
  for (const VarRef& var : of.step.vars) {
    Expr here = pair.first == pair.second ? two.before(var) : two.differ(var);
    if (before) here = logical_and(before, here);
    out = out ? apply(Op::Or, {out, here}) : here;
    before = before ? logical_and(before, two.agree(var)) : two.agree(var);
  }
  return out;
}

}  // namespace

Overlap overlap_of(const Iterations& of, const Pair& pair) {
  Overlap out{Query(of.model), {}, {}, {}};
  Query& query = out.query;
  query.rely_on_order();
  InstancePair two(query);
  two.separate(pair.second->path, of.from);
  two.first_runs(pair.first->path, 0);
  two.second_runs(pair.second->path, of.from);
  for (size_t i = of.from; i < of.at; ++i) agree(query, *of.loop[i], two);
  deal(of, query, *pair.first, {});
  deal(of, query, *pair.second, two.renamed());
  deal_apart(of, pair, query, two);
  if (of.is_kernel && of.mesh && has_collective(static_cast<const Kernel&>(*of.step.stmt).body)) {
    query.doubt("collectives may order the cores");
  }
  query.require(different(of, pair, two));
  if (in_blocks(of, *pair.first, *pair.second)) query.require(of_one_block(of, *pair.first->placed, two));
  if (of.is_persistent && !of.mesh) query.require(on_other_blocks(of, two));
  SameElement same = two.touch(*pair.first, *pair.second, pair.first->placed != pair.second->placed);
  out.renamed = two.renamed();
  out.element = std::move(same.element);
  out.condition = std::move(same.condition);
  return out;
}

}  // namespace helve::proofs
