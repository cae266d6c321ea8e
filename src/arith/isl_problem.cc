// Expressions abstracted and translated to a set of isl.
// Entries of an image are dimensions that equal it, so that isl makes one system of all linear conditions.
// What is no condition on the points is dropped before isl has to carry it.
#include "isl_problem.h"

#include <algorithm>
#include <unordered_set>

#include "affine.h"
#include "helve/arith/sum.h"
#include "helve/ir/expr/chain.h"
#include "helve/ir/expr/equal.h"

namespace helve {

namespace {

/// The variables of the expressions that `bound` does not hold, in order of first use.
std::vector<VarRef> free_variables(const std::vector<Expr>& exprs, const std::vector<VarRef>& bound) {
  std::unordered_set<const Var*> seen;
  for (const VarRef& var : bound) seen.insert(var.get());
  std::vector<VarRef> out;
  for (const Expr& e : exprs) {
    walk(e, [&](const Expr& node) {
      const Var* var = as<Var>(node);
      if (var && seen.insert(var).second) out.push_back(VarRef(var));
    });
  }
  return out;
}

/// The variable that stands for a condition (AffineAbstraction::unknown) or its negation; null for any other.
const Var* truth_of_unknown(const Expr& e) {
  if (const Apply* negation = as_op(e, Op::Not)) return truth_of_unknown(negation->args[0]);
  const Apply* node = as_op(e, Op::Le);
  const int64_t* one = node ? int_value(node->args[0]) : nullptr;
  return one && *one == 1 ? as<Var>(node->args[1]) : nullptr;
}

}  // namespace

Problem::Problem(const ExactEngine& engine, std::vector<VarRef> tuple_vars, const Expr& condition_of,
                 const std::vector<Expr>& image_of, const std::vector<VarRef>& locals, const Translation& translation)
    : tuple(std::move(tuple_vars)) {
  AffineAbstraction abstract(translation);
  condition = abstract(condition_of);
  std::vector<Expr> all = {condition};
  for (const Expr& e : image_of) {
    image.push_back(make_var(fmt::format("image{}", image.size())));
    all.push_back(make_ref<Apply>(kBool, Op::Eq, std::vector<Expr>{Expr(image.back()), abstract(e)}));
  }
  if (!image.empty()) condition = conjunction(all);
  std::vector<VarRef> unknowns = abstract.unknowns();
  drop_free_conditions(unknowns);
  inexact = abstract.reason();
  dims = tuple;
  dims.insert(dims.end(), image.begin(), image.end());
  for (const VarRef& local : locals) {  // those of several accesses may be the same
    if (std::find(dims.begin(), dims.end(), local) == dims.end()) dims.push_back(local);
  }
  dims.insert(dims.end(), unknowns.begin(), unknowns.end());
  params = free_variables({condition}, dims);
  within_budget(engine.state(), [&] {
    translator.emplace(engine.state(), dims, params);
    domain = translator->condition(condition).intersect(ranges());
  });
}

void Problem::drop_free_conditions(std::vector<VarRef>& unknowns) {
  if (unknowns.empty()) return;
  std::vector<Expr> kept;
  std::unordered_map<const Var*, int> uses;
  std::unordered_multimap<uint64_t, Expr> known;
  for (const Expr& each : operands_of_chain(condition, Op::And)) {
    const uint64_t hash = structural_hash(each);
    const auto [first, last] = known.equal_range(hash);
    const auto same = [&](const auto& other) { return same_expr(each, other.second); };
    if (std::any_of(first, last, same)) continue;
    known.emplace(hash, each);
    kept.push_back(each);
    walk(each, [&](const Expr& node) { uses[as<Var>(node)] += node->kind == ExprKind::Var; });
  }
  std::unordered_set<const Var*> unmet, dropped;
  for (const VarRef& unknown : unknowns) unmet.insert(unknown.get());
  std::erase_if(kept, [&](const Expr& each) {
    const Var* truth = truth_of_unknown(each);
    return truth && uses[truth] == 1 && unmet.contains(truth) && dropped.insert(truth).second;
  });
  std::erase_if(unknowns, [&](const VarRef& u) { return dropped.contains(u.get()); });
  if (dropped.empty()) return;
  condition = conjunction(std::move(kept));
}

isl::set Problem::ranges() const {
  isl::set out = translator->space().universe_set();
  for (const std::vector<VarRef>* vars : {&dims, &params}) {
    for (const VarRef& var : *vars) {
      if (!var->dtype.is_data_int() || var->dtype.bits > 32) continue;
      const bool is_signed = var->dtype.code == TypeCode::Int;
      const int64_t size = int64_t{1} << (is_signed ? var->dtype.bits - 1 : var->dtype.bits);
      out = out.intersect(translator->between(var, is_signed ? -size : 0, size - 1));
    }
  }
  return out;
}

}  // namespace helve
