// Where a CPU keeps the buffers of a block: on the stack, or in the scratch memory of the worker that executes it.
// Input: a lowered function. Output: the same; small buffers of a kernel have their place on the stack, in program
// order as far as it reaches.
// Before:  t = T.alloc_shared((64,), "float32")
//          u = T.alloc_shared((64, 4096), "float32")
// After:   t = T.alloc_shared((64,), "float32", place="stack")
//          u = T.alloc_shared((64, 4096), "float32")
// The compiler of machine code knows who reaches what is on the stack, and keeps it in registers where it can; a large
// buffer would not fit there in any case, and the stack of a thread is not for it.
#include "helve/ir/tensor/code_hints.h"
#include "helve/ir/tensor/visit.h"
#include "helve/transform/passes.h"

namespace helve {

namespace {

constexpr int64_t kSmallBuffer = 8192;  // bytes

void add_places(const Kernel& kernel, BufferMap* out) {
  int64_t used = 0;
  walk(kernel.body, [&](const Stmt& s) {
    const Alloc* n = as<Alloc>(s);
    if (!n) return;
    const int64_t bytes = block_bytes(*n->buffer);
    if (bytes > kSmallBuffer || used + bytes > kStackBytes) return;
    used += bytes;
    if (n->buffer->place != ArrayPlace::Stack) out->emplace(n->buffer.get(), at_place(n->buffer, ArrayPlace::Stack));
  });
}

}  // namespace

FunctionRef place_buffers(const FunctionRef& f, const PassOptions&) {
  BufferMap places;
  walk(f->body, [&](const Stmt& s) {
    if (const Kernel* kernel = as<Kernel>(s)) add_places(*kernel, &places);
  });
  return places.empty() ? f : with_body(f, redeclare_buffers(f->body, places));
}

}  // namespace helve
