// Removal of what a lowered program tells the memory system.
// A lowered program may be compiled again, for another machine: what suits that one is decided anew.
#include "helve/ir/tensor/memory_hints.h"

#include "helve/ir/tensor/visit.h"

namespace helve {

FunctionRef without_memory_hints(const FunctionRef& f) {
  const auto plain = [](const Stmt& s) -> Stmt {
    if (as<Prefetch>(s)) return seq({}, s->span);
    const Store* n = as<Store>(s);
    return n && n->piece ? Stmt(copy_with(*n, [](Store& out) { out.piece = 0; })) : s;
  };
  return with_body(f, rewrite(f->body, plain, [](const Expr& e) { return e; }));
}

}  // namespace helve
