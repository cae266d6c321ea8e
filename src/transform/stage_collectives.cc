// The sources of collectives are placed where the other cores can read them.
// Input: mesh kernels with collectives. Output: the same, with copies before collectives: if groups span more cores
// than a cluster has blocks, sources are Global buffers, one instance per core; and no collective writes the buffer
// that the others read.
// Before:  T.comm.all_reduce(part, total, axis="x")                  (groups of 64 cores)
// After:   part_home = T.alloc_global(...)                           in the host body
//          T.copy(part, part_home); T.comm.all_reduce(part_home, total, axis="x")
// The meaning of collectives is unchanged; expand_collectives lets every core read its peers' sources in place.
#include <unordered_map>

#include "helve/analysis/core_groups.h"
#include "helve/ir/tensor/visit.h"
#include "helve/transform/passes.h"

namespace helve {

namespace {

class Staging {
 public:
  Staging(const Stmt& kernel, bool is_cluster)
      : kernel_(*as<Kernel>(kernel)), self_(kernel), scope_(is_cluster ? MemoryScope::Shared : MemoryScope::Global) {}

  Stmt run() {
    const Stmt body = rewrite(kernel_.body, [&](const Stmt& s) { return staged(s); });
    if (body == kernel_.body) return self_;
    std::vector<Stmt> out;
    for (const BufferRef& home : order_) out.push_back(alloc(home, home->span));
    const auto with = [&](Stmt stmts) {
      return Stmt(copy_with(kernel_, [&](Kernel& kernel) { kernel.body = std::move(stmts); }));
    };
    if (scope_ == MemoryScope::Shared) {
      out.push_back(body);
      return with(seq(std::move(out)));
    }
    out.push_back(with(body));
    return seq(std::move(out), kernel_.span);
  }

 private:
  Stmt staged(const Stmt& s) {
    const TileOp* op = as<TileOp>(s);
    if (!op || !op->row().is_collective() || op->op == TileOpcode::CommBarrier) return s;
    const Region &src = op->region(0), &dst = op->region(1);
    const bool reachable = scope_ == MemoryScope::Shared || is_global(*src.buffer);
    if (reachable && src.buffer != dst.buffer) return s;
    Region home = src;
    home.buffer = home_of(*src.buffer);
    Ref<TileOp> out = make_ref<TileOp>(*op);
    out->operands[0] = home;
    return seq({tile_op(TileOpcode::Copy, {src, home}, s->span), Stmt(out)}, s->span);
  }

  BufferRef home_of(const Buffer& b) {
    auto [it, fresh] = homes_.try_emplace(&b);
    if (fresh) {
      it->second = make_buffer(b.name + "_home", b.dtype, scope_, b.shape, {}, {}, b.span);
      order_.push_back(it->second);
    }
    return it->second;
  }

  const Kernel& kernel_;
  const Stmt& self_;
  const MemoryScope scope_;
  std::unordered_map<const Buffer*, BufferRef> homes_;
  std::vector<BufferRef> order_;
};

}  // namespace

FunctionRef stage_collectives(const FunctionRef& f, const PassOptions& options) {
  if (!f->mesh) return f;
  return with_body(f, rewrite(f->body, [&](const Stmt& s) -> Stmt {
                     const Kernel* k = as<Kernel>(s);
                     if (!k || !has_collective(k->body)) return s;
                     return Staging(s, core_sync(*k, *f->mesh, options.machine.cluster_blocks).cluster).run();
                   }));
}

}  // namespace helve
