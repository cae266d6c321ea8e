// Neighbouring blocks that traverse short rows become one block, which traverses them row by row.
// Input and output: lowered loops of a kernel without a mesh. Rows of a small tile are a page or more apart, and the
// processor's prefetching ends with each of them; neighbouring blocks continue each other's rows.
// Before:  with T.Kernel(64, 128) as (r, c):          After:  with T.Kernel(64, 4) as (r, c):
//              for i in T.Parallel(64):                           for i in T.Parallel(64):
//                  B[i, c * 64 + ...] = ...                           for c_1 in T.serial(32):
//                                                                         B[i, (c * 32 + c_1) * 64 + ...] = ...
// The blocks are independent, and so are the iterations of the loop that is a block's whole body: any order gives the
// same result. A scheduled loop is left as it is.
#include <algorithm>
#include <optional>

#include "helve/analysis/effects.h"
#include "helve/arith/sum.h"
#include "helve/ir/tensor/visit.h"
#include "helve/transform/passes.h"

namespace helve {

namespace {

constexpr int64_t kShortRow = 2048;   ///< bytes; longer rows amortize their start
constexpr int64_t kLongRow = 8192;    ///< bytes; no gain beyond
constexpr int64_t kBlocksLeft = 256;  ///< for the threads to share

/// The bytes of a row that a block owns: its last coordinate advances by so many, in the last dimension of all memory
/// that it indexes. Nothing if it indexes memory in another way.
class RowPiece {
 public:
  RowPiece(const Stmt& body, const Var* block) : block_(block) {
    walk(body, [&](const Stmt& s) {
      const Alloc* alloc = as<Alloc>(s);
      known_ &= !as<TileOp>(s) && !as<While>(s) && !(alloc && alloc->buffer->scope != MemoryScope::Local);
    });
    for (const ElementUse& use : element_uses(body)) access(*use.buffer, *use.indices);
  }

  std::optional<int64_t> bytes() const { return known_ && bytes_ > 0 ? std::optional(bytes_) : std::nullopt; }

 private:
  void access(const Buffer& buffer, const std::vector<Expr>& indices) {
    for (size_t d = 0; d < indices.size(); ++d) {
      if (!mentions(indices[d], block_)) continue;
      const std::optional<int64_t> step = coefficient_of(sum_of(indices[d]), block_);
      known_ &= d + 1 == indices.size() && step && *step > 0;
      bytes_ = std::max(bytes_, step.value_or(0) * int64_t{buffer.dtype.bytes()});
    }
  }

  const Var* block_;
  bool known_ = true;
  int64_t bytes_ = 0;
};

/// How many neighbours become one block: the largest divisor of the grid that fills a long row and leaves enough
/// blocks.
int64_t neighbours(const Kernel& kernel, int64_t row_bytes) {
  int64_t blocks = 1;
  for (const Expr& extent : kernel.extents) {
    const int64_t* known = int_value(extent);
    if (known && __builtin_mul_overflow(blocks, *known, &blocks)) return 1;
  }
  const int64_t* last = int_value(kernel.extents.back());
  if (!last || row_bytes >= kShortRow) return 1;
  int64_t count = std::min(kLongRow / row_bytes, blocks / kBlocksLeft);
  while (count > 1 && *last % count != 0) --count;
  return std::max<int64_t>(count, 1);
}

Stmt joined(const Stmt& s) {
  const Kernel* n = as<Kernel>(s);
  const For* rows = n && !n->vars.empty() ? as<For>(n->body) : nullptr;
  if (!rows || rows->loop != LoopKind::Parallel || rows->vars.size() != 1 || rows->scheduled) return s;
  const VarRef block = n->vars.back();
  if (mentions(rows->begins[0], block.get()) || mentions(rows->extents[0], block.get())) return s;
  const std::optional<int64_t> bytes = RowPiece(rows->body, block.get()).bytes();
  const int64_t count = bytes ? neighbours(*n, *bytes) : 1;
  if (count == 1) return s;
  const VarRef first = make_var(block->name, kIndex, block->span), next = make_var(block->name, kIndex, block->span);
  const Expr at = Expr(first) * int_imm(count) + Expr(next);
  const Stmt turns =
      for_loop(LoopKind::Serial, next, int_imm(count), substitute(rows->body, {{block.get(), at}}), s->span);
  return Stmt(copy_with(*n, [&](Kernel& joined) {
    joined.cluster = 1;
    joined.vars.back() = first;
    joined.extents.back() = int_imm(*int_value(n->extents.back()) / count);
    joined.body = Stmt(copy_with(*rows, [&](For& loop) { loop.body = turns; }));
  }));
}

}  // namespace

FunctionRef join_blocks(const FunctionRef& f, const PassOptions&) {
  return f->mesh ? f : with_body(f, rewrite(f->body, joined));
}

}  // namespace helve
