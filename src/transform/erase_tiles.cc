// Tiled buffers become plain ones of the logical shape, and private memory has no layout any more.
// Input: element accesses X[i, j]. Output: no buffer has a tile, none of private memory a layout; indices stay.
// Before:  X = T.alloc_shared_tiles((100, 64), "float32")
// After:   X = T.alloc_shared((100, 64), "float32")
// The address of an element cannot be observed, so a target may choose layouts of its own; private memory is registers,
// which have no order.
#include "helve/ir/tensor/visit.h"
#include "helve/transform/passes.h"

namespace helve {

FunctionRef erase_tiles(const FunctionRef& f, const PassOptions&) {
  BufferMap plain;
  walk(f->body, [&](const Stmt& s) {
    const Alloc* a = as<Alloc>(s);
    if (!a) return;
    const Buffer& b = *a->buffer;
    const bool in_registers = b.layout && b.scope == MemoryScope::Local;
    if (!is_tiled(b) && !in_registers) return;
    Ref<Buffer> untiled = make_ref<Buffer>(b);
    untiled->tile.clear();
    if (in_registers) untiled->layout.reset();
    plain.emplace(&b, BufferRef(untiled));
  });
  return plain.empty() ? f : with_body(f, redeclare_buffers(f->body, plain));
}

}  // namespace helve
