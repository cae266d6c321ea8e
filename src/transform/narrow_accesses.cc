// Every access of global memory becomes one of a single element.
// Input: the program of the threads of a block. Output: the same computation by code that assumes no more of a
// tensor's address than the alignment of an element, and needs no tensor map.
// Before:  T.cp_async(A[tx * 4:tx * 4 + 4], X[tx * 4:tx * 4 + 4])
//          T.commit_async()
//          T.wait_async()
// After:   for i in T.unroll(4):
//              X[tx * 4 + i] = A[tx * 4 + i]
// Vectors that access global memory become unrolled loops. What TMA copied, all threads of the block copy: barriers
// separate TMA from every thread (analysis/barriers.h), so that they separate the threads too. Then nothing is left to
// commit or to wait for; what tensor cores read from shared memory, threads have written now, so fences are placed
// anew. Roles become one sequence, and what a ring handed over is one buffer, between whose uses barriers are placed.
#include <algorithm>

#include "helve/analysis/async_run.h"
#include "helve/analysis/effects.h"
#include "helve/arith/simplify.h"
#include "helve/ir/expr/number.h"
#include "helve/ir/tensor/copy_queue.h"
#include "helve/ir/tensor/memory_hints.h"
#include "helve/ir/tensor/region.h"
#include "helve/ir/tensor/ring.h"
#include "helve/ir/tensor/visit.h"
#include "helve/transform/passes.h"
#include "scope_facts.h"

namespace helve {

namespace {

bool accesses_global(const Stmt& s) {
  const std::vector<ElementUse> uses = element_uses(s);
  return std::any_of(uses.begin(), uses.end(), [](const ElementUse& use) { return is_global(*use.buffer); });
}

/// The element of a region whose coordinates in the dimensions that are not points are `at`.
std::vector<Expr> element_of(const Region& region, const std::vector<Expr>& at, const Facts& facts) {
  std::vector<Expr> out;
  size_t next = 0;
  for (const Range& range : region.ranges) {
    out.push_back(simplify(range.point ? range.begin : range.begin + at[next++], facts));
  }
  return out;
}

Stmt copy_element(const TileOp& copy, const std::vector<Expr>& from, const std::vector<Expr>& to) {
  return store(copy.region(1).buffer, to, load(copy.region(0).buffer, from), copy.span);
}

Stmt fill_element(const TileOp& copy, const std::vector<Expr>& to) {
  return store(copy.region(1).buffer, to, number_imm(0, copy.region(1).buffer->dtype), copy.span);
}

class Narrowing final : public ScopedRewriter {
 public:
  using ScopedRewriter::ScopedRewriter;

 protected:
  Stmt leave(const Stmt& s, const Facts& facts) override {
    if (const For* loop = as<For>(s); loop && loop->loop == LoopKind::Vectorized && accesses_global(s)) {
      return Stmt(copy_with(*loop, [](For& copy) {
        copy.loop = LoopKind::Unroll;
        copy.body = lane_by_lane(copy.body);
      }));
    }
    const TileOp* op = as<TileOp>(s);
    if (!op) return s;
    if (op->op == TileOpcode::CpAsync) return run(*op, facts);
    if (op->is_by_tma()) return box(*op, facts);
    const bool orders = op->row().rule == TileRule::Wait || op->row().rule == TileRule::Sync;
    const bool orders_copies =
        orders && op->op != TileOpcode::SyncThreads && copy_queue(*op).kind != CopyQueue::Kind::Products;
    const bool counts = op->barriers() && counts_bytes(enclosing_kernel()->body, *op->barriers()->buffer);
    return orders_copies && !counts ? seq({}, s->span) : s;
  }

 private:
  /// A run of one thread, which is past the end of its tensor either entirely or not at all.
  static Stmt run(const TileOp& op, const Facts& facts) {
    const auto elements = [&](bool exist) {
      const VarRef i = make_var("i");
      Facts inside = facts;
      inside.bind_loop(i, int_imm(0), int_imm(run_length(op)));
      const std::vector<Expr> from = run_element(op.region(0), i, inside), to = run_element(op.region(1), i, inside);
      return for_loop(LoopKind::Unroll, i, int_imm(run_length(op)),
                      exist ? copy_element(op, from, to) : fill_element(op, to), op.span);
    };
    const Expr exists = begins_inside(op.region(0), facts);
    return exists ? if_then(exists, elements(true), elements(false), op.span) : elements(true);
  }

  /// The run is along the last dimension.
  static std::vector<Expr> run_element(const Region& region, const VarRef& i, const Facts& facts) {
    std::vector<Expr> out = region_begin(region);
    out.back() = simplify(out.back() + Expr(i), facts);
    return out;
  }

  /// A copy by TMA: elements past the tensor's end become zero in shared memory, and are not written in the tensor.
  Stmt box(const TileOp& op, const Facts& facts) const {
    const Region &src = op.region(0), &dst = op.region(1);
    const std::vector<Expr> extents = dst.shape();
    const int64_t threads = enclosing_kernel()->threads;
    Expr count = int_imm(1);
    for (const Expr& extent : extents) count = count * extent;
    count = simplify(count, facts);
    const Expr turns = simplify(floor_div(count + int_imm(threads - 1), int_imm(threads)), facts);
    const VarRef tx = make_var("tx"), turn = make_var("turn");
    Facts inside = facts;
    inside.bind_loop(tx, int_imm(0), int_imm(threads));
    inside.bind_loop(turn, int_imm(0), turns);
    const Expr place = simplify(Expr(turn) * int_imm(threads) + Expr(tx), inside);
    const Expr counts = less(place, count);
    const bool surplus = !can_prove(counts, inside);
    if (surplus) inside.assume(counts);
    const std::vector<Expr> at = unravel(place, extents);
    const std::vector<Expr> from = element_of(src, at, inside), to = element_of(dst, at, inside);
    const bool loads = is_global(*src.buffer);
    const Region& tensor = loads ? src : dst;
    const std::vector<Expr>& in_tensor = loads ? from : to;
    Expr exists;
    for (size_t d = 0; d < in_tensor.size(); ++d) {
      const Expr one = simplify(less(in_tensor[d], tensor.buffer->shape[d]), inside);
      if (!can_prove(one, inside)) exists = exists ? logical_and(exists, one) : one;
    }
    Stmt element = copy_element(op, from, to);
    if (exists) element = if_then(exists, element, loads ? fill_element(op, to) : Stmt(), op.span);
    if (surplus) element = if_then(counts, element, {}, op.span);
    const Stmt all = same_expr(turns, int_imm(1)) ? element : for_loop(LoopKind::Serial, turn, turns, element, op.span);
    return for_loop(LoopKind::Thread, tx, int_imm(threads), all, op.span);
  }
};

}  // namespace

namespace {

/// The function with one instance of each buffer that a ring hands over.
FunctionRef without_slots(const FunctionRef& f) {
  BufferMap plain;
  walk(f->body, [&](const Stmt& s) {
    const Alloc* memory = as<Alloc>(s);
    if (!memory || memory->buffer->slots == 0) return;
    Ref<Buffer> one = make_ref<Buffer>(*memory->buffer);
    one->slots = 0;
    plain.emplace(memory->buffer.get(), BufferRef(one));
  });
  return with_body(f, redeclare_buffers(f->body, plain));
}

}  // namespace

FunctionRef narrow_accesses(const FunctionRef& f, const PassOptions& options) {
  if (rings_of(f->body).empty()) return insert_fences(with_body(f, Narrowing(*f).rewrite(f->body)), options);
  const FunctionRef joined = without_slots(join_roles(f, options));
  const FunctionRef narrow = with_body(joined, Narrowing(*joined).rewrite(joined->body));
  return insert_fences(insert_barriers(overlap_products(narrow, options), options), options);
}

}  // namespace helve
