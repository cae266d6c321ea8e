// Removal of what a lowered program tells the memory system.
// A lowered program may be compiled again, for another machine: what suits that one is decided anew. What a schedule
// decided stays.
#include "helve/ir/tensor/memory_hints.h"

#include "helve/ir/expr/visit.h"
#include "helve/ir/tensor/visit.h"

namespace helve {

namespace {

class Removal {
 public:
  explicit Removal(bool keeps_scheduled) : keeps_scheduled_(keeps_scheduled) {}

  Stmt operator()(const Stmt& s, bool scheduled) const {
    if (as<Prefetch>(s)) return keeps_scheduled_ && scheduled ? s : seq({}, s->span);
    const Store* store = as<Store>(s);
    if (store && store->piece) return Stmt(copy_with(*store, [](Store& out) { out.piece = 0; }));
    const For* loop = as<For>(s);
    const bool below = loop ? loop->scheduled : scheduled;
    return map_parts(s, [](const Expr& e) { return e; }, [&](const Stmt& part) { return (*this)(part, below); });
  }

 private:
  const bool keeps_scheduled_;
};

}  // namespace

FunctionRef without_memory_hints(const FunctionRef& f, bool keeps_scheduled) {
  return with_body(f, Removal(keeps_scheduled)(lane_by_lane(f->body), false));
}

Stmt lane_by_lane(const Stmt& s) {
  const auto statement = [](const Stmt& each) {
    const Store* store = as<Store>(each);
    return store && store->width ? Stmt(copy_with(*store, [](Store& out) { out.width = 0; })) : each;
  };
  return rewrite(s, statement, [](const Expr& whole) {
    return rewrite(whole, [](const Expr& e) {
      const Load* load = as<Load>(e);
      return load && load->width ? Expr(copy_with(*load, [](Load& out) { out.width = 0; })) : e;
    });
  });
}

}  // namespace helve
