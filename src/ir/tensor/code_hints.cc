// Removal of what a lowered program tells whoever makes machine code of it.
// A lowered program may be compiled again, for another machine: what suits that one is decided anew.
#include "helve/ir/tensor/code_hints.h"

#include <algorithm>

#include "helve/ir/tensor/visit.h"
#include "helve/support/diagnostic.h"

namespace helve {

int64_t block_bytes(const Buffer& buffer) {
  const std::optional<std::vector<int64_t>> shape = constant_shape(buffer.shape);
  HELVE_CHECK(shape, "buffer '" + buffer.name + "' of a block has a dynamic shape");
  int64_t elements = 1;
  for (int64_t extent : *shape) elements *= extent;
  const int64_t bytes = std::max<int64_t>(elements, 1) * buffer.dtype.bytes();
  return (bytes + kBlockAlignment - 1) / kBlockAlignment * kBlockAlignment;
}

FunctionRef without_code_hints(const FunctionRef& f) {
  BufferMap places;
  walk(f->body, [&](const Stmt& s) {
    const Alloc* n = as<Alloc>(s);
    if (!n || n->buffer->place != ArrayPlace::Stack) return;
    places.emplace(n->buffer.get(), at_place(n->buffer, ArrayPlace::Registers));
  });
  const Stmt body = rewrite(f->body, [](const Stmt& s) {
    if (const Outline* part = as<Outline>(s)) return part->body;
    const For* loop = as<For>(s);
    return loop && loop->rolled ? Stmt(copy_with(*loop, [](For& n) { n.rolled = false; })) : s;
  });
  return with_body(f, places.empty() ? body : redeclare_buffers(body, places));
}

}  // namespace helve
