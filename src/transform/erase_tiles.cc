// Tiled buffers become plain ones of the logical shape.
// Input: element accesses X[i, j] of tiled buffers. Output: no buffer has a tile; indices stay what they are.
// Before:  X = T.alloc_shared_tiles((100, 64), "float32")
// After:   X = T.alloc_shared((100, 64), "float32")
// Where an element stands in block memory cannot be observed; targets that place buffers by layouts of their own start
// from here.
#include "helve/ir/tensor/visit.h"
#include "helve/transform/passes.h"

namespace helve {

FunctionRef erase_tiles(const FunctionRef& f, const PassOptions&) {
  BufferMap plain;
  walk(f->body, [&](const Stmt& s) {
    const Alloc* a = as<Alloc>(s);
    if (!a || !is_tiled(*a->buffer)) return;
    const Buffer& b = *a->buffer;
    plain.emplace(&b, make_buffer(b.name, b.dtype, b.scope, b.shape, {}, {}, b.span));
  });
  if (plain.empty()) return f;
  const Stmt renamed = replace_buffers(f->body, plain);
  return with_body(f, rewrite(renamed, [&](const Stmt& s) -> Stmt {
                     const Alloc* a = as<Alloc>(s);
                     auto it = a ? plain.find(a->buffer.get()) : plain.end();
                     return it == plain.end() ? s : alloc(it->second, s->span);
                   }));
}

}  // namespace helve
