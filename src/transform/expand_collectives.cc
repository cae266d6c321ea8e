// Collectives of a kernel become what each core does.
// Input: the program of the threads of a block, which is a core of the mesh; the sources of its collectives are where
// the cores of a group can read them. Output: the same with barriers of groups, loops in which each core reads the
// memory of the others, and, where the cores are a cluster and the values are few, stores to their memory.
// Before:  T.comm.broadcast(row, all, root=2, axis="y")
// After:   T.comm.barrier("y")
//          for tx in T.threads(128):
//              row_peer = T.peer(row, (bx, 2))
//              all[tx] = row_peer[tx]
//          T.comm.barrier("y")
// The result of a store to the others is computed before the first statement that needs it; the statements up to there
// run during the transfer. A block barrier precedes the stores; those statements need no other order with what precedes
// the collective.
#include <algorithm>

#include "exchange.h"
#include "helve/analysis/effects.h"
#include "helve/ir/tensor/group_operands.h"
#include "helve/ir/tensor/shared_place.h"
#include "helve/ir/tensor/visit.h"
#include "helve/transform/passes.h"
#include "push_buffers.h"

namespace helve {

namespace {

/// Does a statement access the collective's result, write its source, or contain a collective?
bool needs_result(const Stmt& s, const TileOp& collective) {
  if (has_collective(s)) return true;
  const std::vector<BufferEffect> effects = buffer_effects(s);
  return std::any_of(effects.begin(), effects.end(), [&](const BufferEffect& effect) {
    return effect.buffer == collective.region(1).buffer ||
           (effect.written && effect.buffer == collective.region(0).buffer);
  });
}

class Expansion {
 public:
  Expansion(const Kernel& kernel, const MeshShape& mesh, bool is_cluster) : kernel_(kernel), mesh_(mesh) {
    if (is_cluster) push_.emplace(kernel, mesh, shared_end(kernel.body));
  }

  Stmt body() {
    std::vector<Stmt> out;
    if (push_) out = push_->begin();
    out.push_back(visit(kernel_.body));
    return seq(std::move(out));
  }

 private:
  Stmt visit(const Stmt& s) {
    if (const Seq* n = as<Seq>(s)) return sequence(*n);
    const TileOp* op = as<TileOp>(s);
    if (!op) return map_parts(s, [](const Expr& e) { return e; }, [&](const Stmt& part) { return visit(part); });
    if (!op->row().is_collective() || op->op == TileOpcode::CommBarrier) return s;
    if (is_pushed(*op)) return seq({push_->push(*op), push_->receive(*op)});
    return pulled(*op);
  }

  bool is_pushed(const TileOp& op) const { return push_ && push_->pushes(op); }

  Stmt sequence(const Seq& n) {
    const TileOp* pushed = nullptr;
    std::vector<Stmt> out;
    const auto finish = [&] {
      if (pushed) out.push_back(push_->receive(*pushed));
      pushed = nullptr;
    };
    for (const Stmt& each : n.stmts) {
      if (pushed && needs_result(each, *pushed)) finish();
      const TileOp* op = as<TileOp>(each);
      if (op && is_pushed(*op)) {
        out.push_back(push_->push(*op));
        pushed = op;
      } else {
        out.push_back(visit(each));
      }
    }
    finish();
    return seq(std::move(out), n.span);
  }

  /// A parameter is the same memory for all cores; a core that is alone reads its own.
  Stmt pulled(const TileOp& given) const {
    std::vector<Stmt> named;
    const Ref<const TileOp> known = with_known_operands(given, named);
    const TileOp& op = *known;
    const BufferRef& source = op.region(0).buffer;
    const bool own =
        source->scope == MemoryScope::Param || group_of(op, mesh_, kernel_.vars, whole_span(mesh_)).members == 1;
    const auto element = [&](const std::vector<Expr>& core, const Expr&, const std::vector<Expr>& indices,
                             std::vector<Stmt>& before) {
      if (own) return load(source, indices);
      const BufferRef there = on_other_core(source);
      before.push_back(peer(there, source, core));
      return load(there, indices);
    };
    const std::string axis = op.axis() ? *op.axis() : "all";
    const Stmt barrier = tile_op(TileOpcode::CommBarrier, {axis}, op.span);
    const ThreadLoop loop{make_var("tx"), kernel_.threads, op.span};
    std::vector<Stmt> out = {barrier};
    out.insert(out.end(), named.begin(), named.end());
    out.push_back(exchange(op, mesh_, kernel_.vars, loop, element));
    out.push_back(barrier);
    return seq(std::move(out), op.span);
  }

  /// Operands that read memory get their values before threads write the result.
  static Ref<const TileOp> with_known_operands(const TileOp& op, std::vector<Stmt>& named) {
    bool overwrites = false;
    const Ref<const TileOp> out = map_of_group(op, [&](size_t i, const Expr& e) {
      if (!has_load(e)) return e;
      walk(e, [&](const Expr& node) {
        const Load* load = as<Load>(node);
        overwrites |= load && &buffer_of(load->buffer) == op.region(1).buffer.get();
      });
      const VarRef var = make_var(std::string(op.row().params[i].name), e->dtype);
      named.push_back(bind(var, e, op.span));
      return Expr(var);
    });
    if (overwrites) named.push_back(tile_op(TileOpcode::SyncThreads, {}, op.span));
    return out;
  }

  const Kernel& kernel_;
  const MeshShape& mesh_;
  std::optional<PushBuffers> push_;
};

}  // namespace

FunctionRef expand_collectives(const FunctionRef& f, const PassOptions& options) {
  if (!f->mesh) return f;
  return with_body(f, rewrite(f->body, [&](const Stmt& s) -> Stmt {
                     const Kernel* kernel = as<Kernel>(s);
                     if (!kernel || !has_collective(kernel->body)) return s;
                     const bool is_cluster = core_sync(*kernel, *f->mesh, options.machine.cluster_blocks).cluster;
                     const Stmt body = Expansion(*kernel, *f->mesh, is_cluster).body();
                     return Stmt(copy_with(*kernel, [&](Kernel& out) { out.body = body; }));
                   }));
}

}  // namespace helve
