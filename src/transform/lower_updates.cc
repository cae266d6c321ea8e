// Updates become plain stores.
// Input: any function. Output: no store is an update.
// Before:  T.update(s[i], x, "add")
// After:   s[i] = s[i] + x
// It is the first pass of every target: schedules, which alone may change the order of updates, transform the program
// before it, and all that divides, fuses or vectorizes loops after it has one form of a store that reads its element.
// The order of updates and the type in which each is computed stay, so every bit of the result does.
#include "helve/ir/tensor/update.h"
#include "helve/ir/tensor/visit.h"
#include "helve/transform/passes.h"

namespace helve {

FunctionRef lower_updates(const FunctionRef& f, const PassOptions&) {
  const auto plain = [](const Stmt& s) -> Stmt {
    const Store* n = as<Store>(s);
    return n && n->is_update() ? store(n->buffer, n->indices, stored_value(*n), s->span) : s;
  };
  return with_body(f, rewrite(f->body, plain, [](const Expr& e) { return e; }));
}

}  // namespace helve
