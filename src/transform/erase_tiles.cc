// Tiled buffers become plain ones of the logical shape.
// Input: element accesses X[i, j] of tiled buffers. Output: no buffer has a tile; indices stay what they are.
// Before:  X = T.alloc_shared_tiles((100, 64), "float32")
// After:   X = T.alloc_shared((100, 64), "float32")
// The address of an element in shared memory cannot be observed, so a target may choose layouts of its own.
#include "helve/ir/tensor/visit.h"
#include "helve/transform/passes.h"

namespace helve {

FunctionRef erase_tiles(const FunctionRef& f, const PassOptions&) {
  BufferMap plain;
  walk(f->body, [&](const Stmt& s) {
    const Alloc* a = as<Alloc>(s);
    if (!a || !is_tiled(*a->buffer)) return;
    const Buffer& b = *a->buffer;
    Ref<Buffer> untiled = make_ref<Buffer>(b);
    untiled->tile.clear();
    plain.emplace(&b, BufferRef(untiled));
  });
  return plain.empty() ? f : with_body(f, redeclare_buffers(f->body, plain));
}

}  // namespace helve
