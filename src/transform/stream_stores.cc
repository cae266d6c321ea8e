// Large tensors are written around the caches.
// Input: lowered loops of a kernel, vectors of powers of two of lanes. Output: the same; loops over vectors that write
// a tensor once, and never read it, in two forms, of which the call chooses by the size of the tensor.
// Before:  for v in T.serial(8):                         # Y: 1024 float32; large are those of 4 KiB and more
//              for l in T.vectorized(64): Y[v * 64 + l] = X[v * 64 + l]
// After:   skip = -(T.misalignment(Y, 64) // 4) % 16     # up to the first whole line of the cache
//          for v in T.serial(8 - T.min(skip, 1)):
//              for l in T.vectorized(64): T.store_nontemporal(Y[v * 64 + skip + l], X[v * 64 + skip + l], 64)
//          if skip > 0:
//              for w in T.serial(3):
//                  for l in T.vectorized(16): ...         # lines that are no whole vector, in the same way
//              for end in T.serial(2):
//                  for l in T.vectorized(16):
//                      if ...: Y[...] = X[...]            # parts of lines, through the caches
// A tensor that does not fit into the caches pays for each line twice when it is written through them: the line is
// fetched first. A store of a whole line goes around the caches for the price of its bytes, one of a part waits for the
// rest of the line. So a loop whose elements depend on their position alone (analysis/vector_walk.h) is shifted to the
// first line, and takes turns over the quarters of a long row: memory serves several pages at a time better than one.
// Others store pieces of 16 bytes where all rows of the tensor begin at multiples of them. Scheduled loops, and those
// around them, stay as they are.
#include <algorithm>
#include <set>
#include <unordered_set>

#include "helve/analysis/element_address.h"
#include "helve/analysis/memory_traffic.h"
#include "helve/analysis/vector_walk.h"
#include "helve/arith/simplify.h"
#include "helve/ir/expr/chain.h"
#include "helve/ir/tensor/renewed.h"
#include "helve/ir/tensor/visit.h"
#include "helve/transform/passes.h"
#include "line_walk.h"

namespace helve {

namespace {

constexpr int64_t kPiece = 16;  // bytes of the least store around the caches

/// Tensors, in the order in which the program names them.
using Tensors = std::vector<BufferRef>;

bool contains(const Tensors& tensors, const Buffer* buffer) {
  return std::any_of(tensors.begin(), tensors.end(), [&](const BufferRef& each) { return each.get() == buffer; });
}

/// Calls `f` on each store that all lanes of a vectorized loop make.
template <class F>
void whole_stores(const Stmt& body, F&& f) {
  if (const Store* n = as<Store>(body)) f(*n);
  if (const Seq* n = as<Seq>(body)) {
    for (const Stmt& part : n->stmts) whole_stores(part, f);
  }
}

/// Calls `f(store, loop, direct)` with every store of the vector loops in `s` and its loop; `direct` says that no other
/// loop, and no condition, stands around it.
template <class F>
void vector_stores(const Stmt& s, bool direct, F&& f) {
  if (!s) return;
  const For* loop = as<For>(s);
  if (loop && loop->loop == LoopKind::Vectorized) {
    return whole_stores(loop->body, [&](const Store& store) { f(store, *loop, direct); });
  }
  const bool still = direct && as<Seq>(s);
  for_each_part(s, [](const Expr&) {}, [&](const Stmt& part) { vector_stores(part, still, f); });
}

class Streams {
 public:
  Streams(const Kernel& kernel, const std::vector<MayAlias>& may_alias, const PassOptions& options)
      : line_(options.machine.store_line), large_(options.stream_bytes) {
    for (const Buffer* buffer : streamed_params(kernel, may_alias)) {
      if (buffer->dtype.bits < 8) continue;  // packed
      const Expr large = is_large(*buffer);
      const int64_t* always = int_value(large);
      if (!always || *always) written_.insert(buffer);
    }
  }

  Stmt rewrite(const Stmt& s) const {
    if (!s || written_.empty()) return s;
    const For* loop = as<For>(s);
    if (loop && loop->loop == LoopKind::Vectorized && loop->scheduled) return s;
    if (loop && !has_scheduled_loop(s)) {
      if (const std::optional<VectorWalk> walk = walk_of_lines(*loop)) {
        const Stmt lines = line_walk(*walk, line_);
        return either(is_large(*walk->store->buffer), lines, s);
      }
      if (const Tensors tensors = streamed_by(s); !tensors.empty()) {
        std::vector<Expr> conditions;
        for (const BufferRef& each : tensors) {
          conditions.push_back(is_large(*each));
          conditions.push_back(lies_well(each));
        }
        return either(simplify(conjunction(conditions)), in_pieces(renewed(s), tensors), s);
      }
      if (loop->loop == LoopKind::Vectorized) return s;
    }
    return map_parts(s, [](const Expr& e) { return e; }, [&](const Stmt& part) { return rewrite(part); });
  }

 private:
  static Stmt either(const Expr& condition, const Stmt& around, const Stmt& through) {
    const int64_t* always = int_value(condition);
    if (always) return *always ? around : through;
    return if_then(condition, around, through, through->span);
  }

  Expr is_large(const Buffer& buffer) const {
    Expr elements = int_imm(1);
    for (const Expr& extent : buffer.shape) elements = elements * extent;
    const int64_t bytes = buffer.dtype.bytes();
    return simplify(apply(Op::Ge, {elements, int_imm((large_ + bytes - 1) / bytes)}));
  }

  /// All rows of the tensor begin where a piece may.
  static Expr lies_well(const BufferRef& buffer) {
    const Expr unit = int_imm(kPiece / buffer->dtype.bytes());
    std::vector<Expr> conditions = {apply(Op::Eq, {misalignment(buffer, kPiece), int_imm(0)})};
    Expr pitch = int_imm(1);
    for (size_t d = buffer->rank(); d-- > 1;) {
      pitch = pitch * buffer->shape[d];
      const Expr stride = buffer->strides.empty() ? pitch : buffer->strides[d - 1];
      conditions.push_back(apply(Op::Eq, {floor_mod(stride, unit), int_imm(0)}));
    }
    return simplify(conjunction(conditions));
  }

  /// The loop as a walk that can be moved, where it writes what may go around the caches in vectors of whole lines.
  std::optional<VectorWalk> walk_of_lines(const For& loop) const {
    std::optional<VectorWalk> out = vector_walk(loop);
    if (!out || !written_.contains(out->store->buffer.get())) return std::nullopt;
    return out->lanes * out->store->buffer->dtype.bytes() % line_ == 0 ? out : std::nullopt;
  }

  /// Does lane 0 of this store stand at a piece, if the rows of the tensor do, and are the lanes whole pieces?
  bool is_in_pieces(const Store& s, const For& vectors) const {
    const Buffer& buffer = *s.buffer;
    if (s.mode != StoreMode::Write || !written_.contains(&buffer) || s.indices.empty()) return false;
    const int64_t unit = kPiece / buffer.dtype.bytes();
    const int64_t* begin = int_value(vectors.begins[0]);
    const int64_t* lanes = int_value(vectors.extents[0]);
    const Var* lane = vectors.vars[0].get();
    if (!begin || *begin != 0 || !lanes || *lanes % unit != 0 || !starts_aligned(s.indices.back(), lane, unit)) {
      return false;
    }
    for (size_t d = 0; d + 1 < s.indices.size(); ++d) {
      if (mentions(s.indices[d], lane)) return false;
    }
    const int64_t* stride = buffer.strides.empty() ? nullptr : int_value(buffer.strides.back());
    return (buffer.strides.empty() || (stride && *stride == 1)) && coefficient_of(sum_of(s.indices.back()), lane) == 1;
  }

  /// The tensors that a form of this loop writes around the caches as its vectors stand. None where a loop deeper in it
  /// could write others so: then each loop decides for what it writes itself.
  Tensors streamed_by(const Stmt& s) const {
    Tensors own, deeper;
    const auto note = [&](const Store& each, const For& vectors, bool direct) {
      Tensors& found = direct ? own : deeper;
      if (is_in_pieces(each, vectors) && !contains(found, each.buffer.get())) found.push_back(each.buffer);
    };
    const For& loop = *as<For>(s);
    vector_stores(loop.loop == LoopKind::Vectorized ? s : loop.body, true, note);
    const bool alone =
        std::all_of(deeper.begin(), deeper.end(), [&](const BufferRef& b) { return contains(own, b.get()); });
    return alone ? own : Tensors();
  }

  Stmt in_pieces(const Stmt& s, const Tensors& tensors) const {
    std::set<const StmtNode*> stores;
    vector_stores(s, true, [&](const Store& each, const For& vectors, bool) {
      if (contains(tensors, each.buffer.get()) && is_in_pieces(each, vectors)) stores.insert(&each);
    });
    return helve::rewrite(s, [&](const Stmt& each) -> Stmt {
      if (!stores.contains(each.get())) return each;
      return Stmt(copy_with(*as<Store>(each), [](Store& out) { out.piece = kPiece; }));
    });
  }

  const int64_t line_;
  const int64_t large_;
  std::unordered_set<const Buffer*> written_;
};

}  // namespace

FunctionRef stream_stores(const FunctionRef& f, const PassOptions& options) {
  if (options.machine.store_line == 0 || options.stream_bytes == 0) return f;
  return with_body(f, rewrite(f->body, [&](const Stmt& s) -> Stmt {
                     const Kernel* kernel = as<Kernel>(s);
                     if (!kernel) return s;
                     const Streams streams(*kernel, f->may_alias, options);
                     const Stmt body = streams.rewrite(kernel->body);
                     if (body == kernel->body) return s;
                     return Stmt(copy_with(*kernel, [&](Kernel& out) { out.body = body; }));
                   }));
}

}  // namespace helve
