// Asynchronous copies get what the machine counts them by.
// Input: the program of the threads of a block, whose copies T.wait_async counts. Output: the same where copies by TMA
// are in groups of their own kind: those to shared memory of an array of mbarriers, those from shared memory of bulk
// groups. Every commit of the program is one of each kind that the kernel has, so that all waits count alike. The array
// is as long as a loop needs that keeps as many groups in flight as its waits allow. Copies that name their groups are
// left as they are.
//
// Before:  T.cp_async_bulk(A[k, :], S)         After:  T.cp_async_bulk(A[k, :], S, barriers=arrivals)
//          T.wait_async()                              T.mbarrier_commit(arrivals)
//                                                      T.mbarrier_wait(arrivals)
//          ... S ...                                   ... S ...
//          T.cp_async_bulk(S, B[k, :], wait=True)      T.cp_async_bulk(S, B[k, :], bulk_group=True)
//                                                      T.commit_bulk()
//                                                      T.wait_bulk()
#include <algorithm>
#include <bit>

#include "helve/ir/tensor/copy_queue.h"
#include "helve/ir/tensor/shared_place.h"
#include "helve/ir/tensor/visit.h"
#include "helve/transform/passes.h"

namespace helve {

namespace {

constexpr int64_t kMinBarriers = 16, kMaxBarriers = 64;  // mbarriers of an array

bool is_store(const TileOp& copy) { return is_global(*copy.region(1).buffer); }

/// What the kernel's copies need, those aside that name their groups.
struct Kinds {
  bool threads = false;  ///< a commit by the threads
  bool loads = false;  ///< mbarriers
  bool stores = false;  ///< bulk groups that a commit makes
  bool returns = false;  ///< copies from shared memory that are waited for where they are issued
  bool arrives = false;  ///< of these, some only until they have read their sources
  int64_t groups = 0;  ///< that a wait leaves unfinished, and places that commit one
};

Kinds kinds_of(const Stmt& body) {
  Kinds out;
  int64_t most = 0;
  walk(body, [&](const Stmt& s) {
    const TileOp* op = as<TileOp>(s);
    if (!op) return;
    out.threads |= op->op == TileOpcode::CpAsync;
    out.groups += op->op == TileOpcode::CommitAsync || is_group(*op);
    if (op->op == TileOpcode::WaitAsync) most = std::max(most, op->pending());
    if (!op->is_by_tma() || copy_queue(*op).kind != CopyQueue::Kind::Block) return;
    out.arrives |= op->waits_for_sources();
    (!is_store(*op) ? out.loads : op->begins_copy() ? out.stores : out.returns) = true;
  });
  out.groups += most;
  return out;
}

class Grouping {
 public:
  Grouping(const Kinds& kinds, const Stmt& body) : kinds_(kinds) {
    if (!kinds.loads) return;
    const int64_t wanted = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(kinds.groups)));
    const int64_t end = shared_bytes(body);
    const BufferRef memory = make_buffer("arrivals", {TypeCode::UInt, 64}, MemoryScope::Shared,
                                         {int_imm(std::clamp(wanted, kMinBarriers, kMaxBarriers))});
    array_ = at_offset(memory, end, {});
  }

  Stmt kernel_body(const Stmt& body) const {
    const Stmt grouped = rewrite(body, [&](const Stmt& s) { return statement(s); });
    if (!array_) return grouped;
    return seq({alloc(array_), tile_op(TileOpcode::MbarrierInit, {barriers()}), grouped});
  }

 private:
  Region barriers() const { return whole_region(array_); }

  Stmt statement(const Stmt& s) const {
    const TileOp* op = as<TileOp>(s);
    if (!op) return s;
    if (op->op == TileOpcode::CommitAsync) return seq(commits(s->span), s->span);
    if (op->op == TileOpcode::WaitAsync) return wait(*op);
    if (!op->is_by_tma() || copy_queue(*op).kind != CopyQueue::Kind::Block) return s;
    return op->begins_copy() ? counted(*op) : waited(*op);
  }

  std::vector<Stmt> commits(const Span& span) const {
    std::vector<Stmt> out;
    if (kinds_.threads) out.push_back(tile_op(TileOpcode::CommitAsync, {}, span));
    if (kinds_.loads) out.push_back(tile_op(TileOpcode::MbarrierCommit, {barriers()}, span));
    if (kinds_.stores) out.push_back(tile_op(TileOpcode::CommitBulk, {}, span));
    return out;
  }

  Stmt wait(const TileOp& op) const {
    const int64_t pending = op.pending();
    std::vector<Stmt> out;
    if (kinds_.threads) out.push_back(tile_op(TileOpcode::WaitAsync, {pending}, op.span));
    if (kinds_.loads) out.push_back(tile_op(TileOpcode::MbarrierWait, {barriers(), pending}, op.span));
    if (kinds_.stores || (kinds_.arrives && !op.waits_for_sources())) {
      out.push_back(tile_op(TileOpcode::WaitBulk, {pending, op.waits_for_sources()}, op.span));
    }
    return seq(std::move(out), op.span);
  }

  Stmt in_group(const TileOp& op) const {
    const TileOperand array = is_store(op) ? TileOperand(false) : TileOperand(barriers());
    return tile_op(op.op, {op.region(0), op.region(1), false, false, array, is_store(op)}, op.span, op.places);
  }

  Stmt counted(const TileOp& op) const {
    std::vector<Stmt> out = commits(op.span);
    out.insert(out.begin(), in_group(op));
    return seq(std::move(out), op.span);
  }

  /// Loads of this kind wait as T.wait_async does.
  Stmt waited(const TileOp& op) const {
    if (!is_store(op)) return seq({counted(op), wait(*as<TileOp>(tile_op(TileOpcode::WaitAsync, {}, op.span)))});
    return seq({in_group(op), tile_op(TileOpcode::CommitBulk, {}, op.span),
                tile_op(TileOpcode::WaitBulk, {int64_t{0}, op.waits_for_sources()}, op.span)},
               op.span);
  }

  Kinds kinds_;
  BufferRef array_;
};

}  // namespace

FunctionRef group_copies(const FunctionRef& f, const PassOptions&) {
  return with_body(f, rewrite(f->body, [&](const Stmt& s) -> Stmt {
                     const Kernel* kernel = as<Kernel>(s);
                     if (!kernel) return s;
                     const Kinds kinds = kinds_of(kernel->body);
                     if (!kinds.loads && !kinds.stores && !kinds.returns) return s;
                     const Stmt body = Grouping(kinds, kernel->body).kernel_body(kernel->body);
                     return Stmt(copy_with(*kernel, [&](Kernel& out) { out.body = body; }));
                   }));
}

}  // namespace helve
