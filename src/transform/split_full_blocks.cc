// Blocks that do not reach past the end of a tensor get code of their own, without tails.
// Input and output: element loops, simplified; another simplification uses the condition. Kernels with unrolled loops
// are unchanged: they handle their edges themselves, and duplicating them is expensive. So are those with scheduled
// loops, whose tails are the schedule's.
// Before:  n0 = T.min(M - b * 4, 4)              After:  if M - b * 4 >= 4:
//          for i in T.Parallel(n0): ...                      n0 = T.min(M - b * 4, 4)     (4, when simplified)
//                                                            for i in T.Parallel(n0): ...
//                                                        else:
//                                                            n0_1 = T.min(M - b * 4, 4)
//                                                            for i_1 in T.Parallel(n0_1): ...
// Both branches are the whole body; the second has variables and buffers of its own.
#include <algorithm>
#include <unordered_set>

#include "helve/arith/sum.h"
#include "helve/ir/expr/chain.h"
#include "helve/ir/tensor/renewed.h"
#include "helve/ir/tensor/visit.h"
#include "helve/transform/passes.h"

namespace helve {

namespace {

constexpr size_t kMaxConditions = 4;
constexpr int kMaxStores = 32;

/// Conditions under which every extent min(rest, block) of the body is the block; empty if none is known before the
/// body runs.
std::vector<Expr> fullness(const Stmt& body) {
  std::unordered_set<const Var*> bound;
  for (const VarRef& var : Definitions(body).vars) bound.insert(var.get());
  std::vector<Expr> found;
  walk_exprs(body, [&](const Expr& e) {
    const Apply* least = as_op(e, Op::Min);
    if (!least || !e->dtype.is_index() || !int_value(least->args[1]) || has_load(least->args[0])) return;
    bool early = true;
    walk(least->args[0], [&](const Expr& part) { early &= !as<Var>(part) || !bound.contains(as<Var>(part)); });
    const Expr full = apply(Op::Ge, {least->args[0], least->args[1]});
    const auto is_full = [&](const Expr& known) { return same_expr(known, full); };
    if (early && std::none_of(found.begin(), found.end(), is_full)) found.push_back(full);
  });
  return found;
}

bool is_small(const Stmt& body) {
  int stores = 0;
  bool plain = true;
  walk(body, [&](const Stmt& s) {
    stores += s->kind == StmtKind::Store;
    const For* loop = as<For>(s);
    plain &= s->kind != StmtKind::While && !(loop && (loop->loop == LoopKind::Unroll || loop->scheduled));
  });
  return plain && stores <= kMaxStores;
}

Stmt split(const Stmt& s) {
  const Kernel* n = as<Kernel>(s);
  if (!n || as<If>(n->body) || !is_small(n->body)) return s;
  const std::vector<Expr> conditions = fullness(n->body);
  if (conditions.empty() || conditions.size() > kMaxConditions) return s;
  const Expr all = conjunction(conditions);
  return Stmt(copy_with(*n, [&](Kernel& copy) { copy.body = if_then(all, n->body, renewed(n->body)); }));
}

}  // namespace

FunctionRef split_full_blocks(const FunctionRef& f, const PassOptions&) {
  return with_body(f, rewrite(f->body, split));
}

}  // namespace helve
