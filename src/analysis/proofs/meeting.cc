// The conditions under which two iterations touch one element.
// Blocks, cores and iterations of Persistent loops differ in who runs after whom; boxes in their coordinates.
#include "meeting.h"

#include <algorithm>

#include "helve/arith/simplify.h"
#include "helve/ir/tensor/visit.h"
#include "same_element.h"

namespace helve::proofs {

namespace {

/// The two cores differ only along axes on which the tensor is replicated.
Expr of_one_block(const Iterations& of, const MeshTensor& tensor, const Substitution& renamed) {
  const std::vector<size_t> axes = replica_axes(of, tensor);
  Expr out = bool_imm(true);
  for (size_t d = 0; d < of.step.vars.size(); ++d) {
    if (std::find(axes.begin(), axes.end(), d) != axes.end()) continue;
    out = logical_and(out, apply(Op::Eq, {Expr(of.step.vars[d]), renamed.at(of.step.vars[d].get())}));
  }
  return out;
}

/// Iterations of one block are sequential.
Expr on_other_blocks(const Iterations& of, const Substitution& renamed) {
  Expr out;
  for (const VarRef& var : of.loop[of.from]->vars) {
    const Expr other = apply(Op::Ne, {Expr(var), renamed.at(var.get())});
    out = out ? apply(Op::Or, {out, other}) : other;
  }
  return out;
}

/// Serial loops between kernel and Persistent loop: both iterations belong to one execution of the Persistent loop.
void agree(Query& query, const Step& step, const Substitution& renamed) {
  if (!step.stmt || step.stmt->kind == StmtKind::Kernel) return;
  for (const VarRef& var : step.vars) query.require(apply(Op::Eq, {Expr(var), renamed.at(var.get())}));
}

/// Iteration n of a Persistent loop belongs to block n modulo the number of blocks.
void deal(const Iterations& of, Query& query, const Access& access, const Substitution& renamed) {
  if (of.mesh || !(of.is_kernel || of.is_persistent)) return;
  const Step* kernel = nullptr;
  for (const StepRef& step : access.path) {
    if (step->stmt && step->stmt->kind == StmtKind::Kernel) kernel = step.get();
    const bool persistent = step->stmt && step->stmt->kind == StmtKind::For &&
                            static_cast<const For&>(*step->stmt).loop == LoopKind::Persistent;
    if (!persistent || !kernel) continue;
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

/// The two iterations differ; in order, if the pair is symmetric.
Expr different(const Iterations& of, const Pair& pair, const Substitution& renamed) {
  Expr out;
  Expr before;  // earlier variables agree
  for (const VarRef& var : of.step.vars) {
    const Expr one = Expr(var), two = renamed.at(var.get());
    Expr here = pair.first == pair.second ? less(one, two) : apply(Op::Ne, {one, two});
    if (before) here = logical_and(before, here);
    out = out ? apply(Op::Or, {out, here}) : here;
    const Expr same = apply(Op::Eq, {one, two});
    before = before ? logical_and(before, same) : same;
  }
  return out;
}

}  // namespace

Meeting meeting(const Iterations& of, const Pair& pair) {
  Meeting out{Query(of.model), {}, {}, {}};
  for (size_t i = of.from; i < pair.second->path.size(); ++i) {
    for (const VarRef& var : pair.second->path[i]->vars) {
      out.renamed[var.get()] = Expr(make_var(var->name, var->dtype, var->span));
    }
  }
  for (const StepRef& step : pair.first->path) out.query.add(*step);
  for (size_t i = of.from; i < pair.second->path.size(); ++i) out.query.add(*pair.second->path[i], out.renamed);
  for (size_t i = of.from; i < of.at; ++i) agree(out.query, *of.loop[i], out.renamed);
  deal(of, out.query, *pair.first, {});
  deal(of, out.query, *pair.second, out.renamed);
  if (of.is_kernel && of.mesh && has_collective(static_cast<const Kernel&>(*of.step.stmt).body)) {
    out.query.doubt("collectives may order the cores");
  }
  out.query.require(different(of, pair, out.renamed));
  if (in_blocks(of, *pair.first, *pair.second)) {
    out.query.require(of_one_block(of, *pair.first->placed, out.renamed));
  }
  if (of.is_persistent && !of.mesh) out.query.require(on_other_blocks(of, out.renamed));
  const bool absolute = pair.first->placed != pair.second->placed;
  SameElement met = same_element(out.query, *pair.first, *pair.second, out.renamed, absolute);
  out.element = std::move(met.element);
  out.condition = std::move(met.condition);
  return out;
}

}  // namespace helve::proofs
