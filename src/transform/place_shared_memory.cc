// Layouts of shared memory without bank conflicts.
// Input: the program of the threads of a block. Output: the same, where buffers of shared memory whose accesses have
// bank conflicts have layouts with fewer. A layout only changes addresses: subscripts and results are unchanged.
// Before:  x = T.alloc_shared((64, 64), "float32")
// After:   x = T.alloc_shared((64, 64), "float32", layout="S[(64, 64) : (64, 1)] ^ Swizzle(5, 0, 6)")
#include "helve/ir/tensor/buffer_layout.h"
#include "helve/ir/tensor/visit.h"
#include "helve/threads/shared_layouts.h"
#include "helve/transform/passes.h"

namespace helve {

FunctionRef place_shared_memory(const FunctionRef& f, const PassOptions& options) {
  BufferMap placed;
  walk(f->body, [&](const Stmt& s) {
    const Kernel* kernel = as<Kernel>(s);
    if (!kernel) return;
    for (const SharedLayout& each : choose_shared_layouts(*kernel, options.machine)) {
      placed.emplace(each.buffer.get(), with_layout(each.buffer, each.layout, each.buffer->span));
    }
  });
  return placed.empty() ? f : with_body(f, redeclare_buffers(f->body, placed));
}

}  // namespace helve
