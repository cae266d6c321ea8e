// What the blocks of a cluster have in common.
// The number of a block is written as that of its cluster and its place there; an expression is the same in all blocks
// if the place is gone once it is simplified.
#include "helve/analysis/cluster.h"

#include "helve/arith/simplify.h"
#include "helve/ir/tensor/ring.h"
#include "helve/ir/tensor/visit.h"

namespace helve {

namespace {

class ClusterWalk {
 public:
  explicit ClusterWalk(const Kernel& kernel) {
    if (kernel.vars.empty()) return;
    const VarRef number = make_var("cluster");
    facts_.bind_loop(place_, int_imm(0), int_imm(kernel.cluster));
    facts_.bind_loop(number, int_imm(0), floor_div(kernel.extents.back(), int_imm(kernel.cluster)));
    block_.emplace(kernel.vars.back().get(), Expr(number) * int_imm(kernel.cluster) + Expr(place_));
  }

  void visit(const Stmt& s, bool even) {
    if (!s) return;
    if (const Bind* n = as<Bind>(s)) {
      if (!is_same(n->value)) differ_.insert(n->var.get());
      return;
    }
    if (const VarRef fetched = named_by(s)) differ_.insert(fetched.get());
    if (const TileOp* op = as<TileOp>(s)) return operation(*op, even);
    if (const For* n = as<For>(s)) {
      const bool bounds = all_same(n->begins) && all_same(n->extents);
      for (const VarRef& var : n->vars) {
        if (!bounds) differ_.insert(var.get());
      }
      return visit(n->body, even && bounds);
    }
    if (const If* n = as<If>(s)) even &= is_same(n->condition);
    if (const While* n = as<While>(s)) even &= is_same(n->condition);
    for_each_part(s, [](const Expr&) {}, [&](const Stmt& part) { visit(part, even); });
  }

  ClusterFacts found;

 private:
  void operation(const TileOp& op, bool even) {
    const Region* barriers = op.barriers();
    if (barriers && is_ring(*barriers->buffer) && !even) found.uneven.insert(barriers->buffer.get());
    if (!op.is_by_tma()) return;
    bool same = true;
    for (const Range& range : op.region(0).ranges) same &= is_same(range.begin) && is_same(range.extent);
    if (same) found.same.insert(&op);
  }

  bool all_same(const std::vector<Expr>& all) const {
    bool out = true;
    for (const Expr& e : all) out &= is_same(e);
    return out;
  }

  bool is_same(const Expr& e) const {
    bool out = true;
    walk(simplify(substitute(e, block_), facts_), [&](const Expr& node) {
      const Var* var = as<Var>(node);
      out &= !as<Load>(node) && (!var || (var != place_.get() && !differ_.contains(var)));
    });
    return out;
  }

  const VarRef place_ = make_var("place");
  Facts facts_;
  Substitution block_;
  std::unordered_set<const Var*> differ_;  ///< variables that may have different values
};

}  // namespace

ClusterFacts cluster_facts(const Kernel& kernel) {
  ClusterWalk walk(kernel);
  walk.visit(kernel.body, true);
  return std::move(walk.found);
}

}  // namespace helve
