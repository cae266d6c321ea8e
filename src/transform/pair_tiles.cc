// The blocks of a cluster take neighbouring tiles.
// Input: kernels of clusters with rings, before Persistent loops are dealt to blocks. Output: a Persistent loop around
// a ring has a last dimension, the place of a block in its cluster: the blocks of a cluster have in the same turn tiles
// that differ in the last dimension but one of the program's domain. So what does not depend on that dimension is the
// same for all of them, and they make the same turns. The set of iterations is unchanged; where the extent is no
// multiple of the cluster there are some more, in which nothing global is accessed, but by copies of what is not there.
//
// Before:  for i, j in T.Persistent([M, N]):          (clusters of 2)
//              T.ring_acquire(ring)
//              T.cp_async_bulk_tensor(A[i * 128 : i * 128 + 128, :], a, barriers=ring)
//              ...
//              T.copy(c, C[i * 128 : i * 128 + 128, :])
// After:   for p, j, r in T.Persistent([T.ceildiv(M, 2), N, 2]):
//              i = p * 2 + r
//              T.ring_acquire(ring)
//              T.cp_async_bulk_tensor(A[i * 128 : i * 128 + 128, :], a, barriers=ring)
//              ...
//              if i < M:
//                  T.copy(c, C[i * 128 : i * 128 + 128, :])
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "helve/analysis/effects.h"
#include "helve/analysis/multiple.h"
#include "helve/analysis/rings.h"
#include "helve/arith/simplify.h"
#include "helve/ir/tensor/visit.h"
#include "helve/transform/passes.h"
#include "scope_facts.h"

namespace helve {

namespace {

bool has_loads(const Stmt& s) {
  bool out = false;
  for_each_part(
      s,
      [&](const Expr& e) {
        walk(e, [&](const Expr& node) { out |= as<Load>(node) != nullptr; });
      },
      [](const Stmt&) {});
  return out;
}

/// A copy of tensors to a block's memory: what is not there is padding.
bool reads_padded(const Stmt& s) {
  const TileOp* op = as<TileOp>(s);
  const bool copies = op && op->row().find("src") && op->row().find("dst");
  return copies && op->may_pass_end(0) && !is_global(*op->region(1).buffer);
}

/// Does an execution of the statement in a tile that is not there matter?
bool matters(const Stmt& s) {
  if (!s || reads_padded(s)) return false;
  const std::vector<RegionAccess> direct = direct_accesses(s);
  bool out = std::any_of(direct.begin(), direct.end(),
                         [](const RegionAccess& access) { return is_global(*access.region.buffer); });
  for_each_part(s, [](const Expr&) {}, [&](const Stmt& part) { out |= matters(part); });
  return out;
}

/// Is it to be executed in all tiles: does it order copies, of which a group may be empty, or define what follows?
bool must_run(const Stmt& s) {
  const TileOp* op = as<TileOp>(s);
  if (s->kind == StmtKind::Alloc || s->kind == StmtKind::Bind) return true;
  return op && (op->row().rule == TileRule::Sync || op->row().rule == TileRule::Wait);
}

bool has_must_run(const Stmt& s) {
  bool out = false;
  walk(s, [&](const Stmt& each) { out |= as<TileOp>(each) && must_run(each); });
  return out;
}

/// The statement, of which in a tile that is not there only what keeps the turns of rings is executed; nothing where
/// they cannot be told apart.
std::optional<Stmt> only_where(const Expr& there, const Stmt& s) {
  if (!matters(s)) return s;
  if (!has_must_run(s) && !must_run(s)) return if_then(there, s, {}, s->span);
  if (must_run(s) || has_loads(s)) return std::nullopt;
  if (s->kind != StmtKind::Seq && s->kind != StmtKind::For && s->kind != StmtKind::If) return std::nullopt;
  bool fine = true;
  const Stmt out = map_parts(
      s, [](const Expr& e) { return e; },
      [&](const Stmt& part) {
        const std::optional<Stmt> inside = only_where(there, part);
        fine &= inside.has_value();
        return inside.value_or(part);
      });
  return fine ? std::optional(out) : std::nullopt;
}

class Pairs final : public ScopedRewriter {
 public:
  Pairs(const Function& f, const PassOptions& options) : ScopedRewriter(f), options_(options) {}

 protected:
  Stmt leave(const Stmt& s, const Facts& facts) override {
    const For* loop = as<For>(s);
    if (!loop || loop->loop != LoopKind::Persistent || loop->vars.size() < 2 || loop->scheduled) return s;
    const int64_t blocks = enclosing_kernel() ? enclosing_kernel()->cluster : 1;
    if (blocks == 1 || blocks > options_.machine.cluster_blocks || !has_ring_events(loop->body)) return s;
    const std::optional<Stmt> out = paired(*loop, blocks, facts);
    if (options_.choices) {
      ScheduleChoice choice{"T.Persistent", s->span, "tiles of each block", {}};
      const std::string wanted = fmt::format("neighbouring tiles for {} blocks", blocks);
      if (out) choice.schedule = wanted;
      if (!out) choice.declined.push_back({wanted, "a block without a tile would access global memory"});
      options_.choices->push_back(std::move(choice));
    }
    return out.value_or(s);
  }

 private:
  static std::optional<Stmt> paired(const For& loop, int64_t blocks, const Facts& facts) {
    const size_t d = loop.vars.size() - 2;
    const Expr extent = loop.extents[d], size = int_imm(blocks);
    const VarRef group = make_var("group"), place = make_var("place"), var = loop.vars[d];
    std::optional<Stmt> body = loop.body;
    if (!is_multiple(extent, blocks, facts)) {
      body = only_where(less(Expr(var), simplify(loop.begins[d] + extent)), loop.body);
    }
    if (!body) return std::nullopt;
    std::vector<VarRef> vars = loop.vars;
    std::vector<Expr> begins = loop.begins, extents = loop.extents;
    vars[d] = group;
    begins[d] = int_imm(0);
    extents[d] = simplify(ceil_div(extent, size), facts);
    vars.push_back(place);
    begins.push_back(int_imm(0));
    extents.push_back(size);
    const Stmt tile = bind(var, simplify(loop.begins[d] + Expr(group) * size + Expr(place)), loop.span);
    return for_loop(LoopKind::Persistent, vars, begins, extents, seq({tile, *body}, loop.span), 1, loop.span);
  }

  const PassOptions& options_;
};

}  // namespace

FunctionRef pair_tiles(const FunctionRef& f, const PassOptions& options) {
  if (!options.machine.is_gpu() || f->mesh) return f;
  return with_body(f, Pairs(*f, options).rewrite(f->body));
}

}  // namespace helve
