// Fragments get the layouts that the schedules of their operations demand.
// Input: any stage before tile operations are lowered. Output: the same, with layouts on such fragments. It runs before
// layouts are inferred, so the loops over a fragment follow the operation. Layouts of the program, or of an operation
// before, are kept; a schedule that will decline gives none.
// Before:  C = T.alloc_fragment((64, 64), "float32")
//          T.gemm(A, B, C, dispatch="mma")
// After:   C = T.alloc_fragment((64, 64), "float32", layout="S[(2, 2, 2, 8, ...) : (...)]")
//          T.gemm(A, B, C, dispatch="mma")
#include "helve/ir/tensor/buffer_layout.h"
#include "helve/ir/tensor/visit.h"
#include "helve/transform/passes.h"

namespace helve {

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
    return Stmt(copy_with(*kernel, [&](Kernel& copy) { copy.body = redeclare_buffers(kernel->body, fragments); }));
  };
  return with_body(f, rewrite(f->body, placed));
}

}  // namespace helve
