// Fragments get the layouts that the schedules of their operations demand.
// Input: any stage before tile operations are lowered. Output: the same, with layouts on such fragments. It runs before
// layouts are inferred, so the loops over a fragment follow the operation. Layouts of the program, or of an operation
// before, are kept; a schedule that will decline gives none. Fragments that are copies of placed ones are placed alike.
// Before:  C = T.alloc_fragment((64, 64), "float32")
//          T.gemm(A, B, C, dispatch="mma")
// After:   C = T.alloc_fragment((64, 64), "float32", layout="S[(2, 2, 2, 8, ...) : (...)]")
//          T.gemm(A, B, C, dispatch="mma")
#include "helve/ir/tensor/buffer_layout.h"
#include "helve/ir/tensor/visit.h"
#include "helve/transform/passes.h"

namespace helve {

namespace {

/// A fragment without a layout that a placed one is copied to or from gets the same one, so that the copy moves nothing
/// and what follows (T.stmatrix) finds it.
void place_copies(const Stmt& body, BufferMap* fragments) {
  const auto is_fragment = [](const Region& region) {
    return region.buffer->scope == MemoryScope::Fragment && region.whole();
  };
  for (bool news = true; news;) {
    news = false;
    walk(body, [&](const Stmt& s) {
      const TileOp* op = as<TileOp>(s);
      if (!op || op->op != TileOpcode::Copy || !is_fragment(op->region(0)) || !is_fragment(op->region(1))) return;
      for (const size_t i : {0, 1}) {
        const BufferRef &from = op->region(i).buffer, &to = op->region(1 - i).buffer;
        const auto placed = fragments->find(from.get());
        if (placed == fragments->end() || to->layout || fragments->contains(to.get())) continue;
        if (!constant_shape(to->shape) || constant_shape(to->shape) != constant_shape(from->shape)) continue;
        fragments->emplace(to.get(), with_layout(declare_again(*to), *placed->second->layout, op->span));
        news = true;
      }
    });
  }
}

}  // namespace

FunctionRef place_operands(const FunctionRef& f, const PassOptions& options) {
  const auto placed = [&](const Stmt& s) {
    const Kernel* kernel = as<Kernel>(s);
    if (!kernel) return s;
    BufferMap fragments;
    walk(kernel->body, [&](const Stmt& inner) {
      const TileOp* op = as<TileOp>(inner);
      const TileSchedule* schedule = op ? asked_schedule(*op, *options.schedules) : nullptr;
      if (!schedule || !schedule->place) return;
      for (const auto& [buffer, layout] : schedule->place(*op, *kernel)) {
        if (buffer->layout || fragments.contains(buffer.get())) continue;
        fragments.emplace(buffer.get(), with_layout(declare_again(*buffer), layout, op->span));
      }
    });
    if (fragments.empty()) return s;
    place_copies(kernel->body, &fragments);
    return Stmt(copy_with(*kernel, [&](Kernel& copy) { copy.body = redeclare_buffers(kernel->body, fragments); }));
  };
  return with_body(f, rewrite(f->body, placed));
}

}  // namespace helve
