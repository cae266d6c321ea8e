// Upward-exposed reads of buffers.
// A forward walk keeps the set of buffers that are certainly written in full; a read of any other buffer is exposed.
#include "crossing.h"

#include "helve/analysis/effects.h"
#include "helve/ir/expr/equal.h"
#include "helve/ir/tensor/group_operands.h"
#include "helve/ir/tensor/visit.h"

namespace helve {

namespace {

class Walk {
 public:
  Touch touch;

  void run(const Stmt& s, BufferSet& whole) {
    if (!s) return;
    dispatch(s, [&](const auto& node) { visit(node, s, whole); });
  }

 private:
  void read(const Buffer* b, const BufferSet& whole) {
    touch.used.insert(b);
    if (!whole.contains(b)) touch.exposed.insert(b);
  }
  void write(const Buffer* b) {
    touch.used.insert(b);
    touch.written.insert(b);
  }
  /// What the statement itself accesses, its parts aside.
  void own(const Stmt& s, const BufferSet& whole) {
    const TileOp* op = as<TileOp>(s);
    const Region* barriers = op ? op->barriers() : nullptr;
    for (const RegionAccess& access : direct_accesses(s)) {
      const Buffer* buffer = access.region.buffer.get();
      if (barriers && barriers->buffer.get() == buffer) {
        touch.used.insert(buffer);
      } else if (access.write) {
        write(buffer);
      } else {
        read(buffer, whole);
      }
    }
  }

  void visit(const Seq& n, const Stmt&, BufferSet& whole) {
    for (const Stmt& s : n.stmts) run(s, whole);
  }
  void visit(const Alloc&, const Stmt&, BufferSet&) {}
  void visit(const Peer&, const Stmt& s, BufferSet& whole) { own(s, whole); }
  void visit(const Bind&, const Stmt& s, BufferSet& whole) { own(s, whole); }
  void visit(const Store&, const Stmt& s, BufferSet& whole) { own(s, whole); }
  void visit(const Prefetch&, const Stmt& s, BufferSet& whole) { own(s, whole); }
  void visit(const Report&, const Stmt& s, BufferSet& whole) { own(s, whole); }
  void visit(const Breakpoint&, const Stmt& s, BufferSet& whole) { own(s, whole); }
  void visit(const TileStore&, const Stmt& s, BufferSet& whole) { own(s, whole); }
  void visit(const While& n, const Stmt& s, BufferSet& whole) {
    own(s, whole);
    BufferSet inside = whole;
    run(n.body, inside);
  }
  void visit(const If& n, const Stmt& s, BufferSet& whole) {
    own(s, whole);
    BufferSet yes = whole;
    BufferSet no = whole;
    run(n.then_body, yes);
    run(n.else_body, no);
    for (const Buffer* b : yes) {
      if (no.contains(b)) whole.insert(b);
    }
  }
  void visit(const Kernel& n, const Stmt& s, BufferSet& whole) {
    own(s, whole);
    BufferSet inside = whole;
    run(n.body, inside);
  }
  void visit(const For& n, const Stmt& s, BufferSet& whole) {
    own(s, whole);
    BufferSet inside = whole;
    run(n.body, inside);
    if (runs(n)) whole = inside;
    for (const Stmt& part : top_of(n.body)) {
      const Store* t = as<Store>(part);
      if (t && covers(n, *t)) whole.insert(t->buffer.get());
    }
  }
  static std::vector<Stmt> top_of(const Stmt& body) {
    if (const Seq* n = as<Seq>(body)) return n->stmts;
    return {body};
  }
  /// A store to each element at the loop's own variables.
  static bool covers(const For& loop, const Store& s) {
    if (s.mode != StoreMode::Write || s.buffer->rank() != loop.vars.size()) return false;
    for (size_t d = 0; d < loop.vars.size(); ++d) {
      const int64_t* begin = int_value(loop.begins[d]);
      if (!begin || *begin != 0 || s.indices[d].get() != loop.vars[d].get()) return false;
      if (!structural_equal(s.buffer->shape[d], loop.extents[d])) return false;
    }
    return true;
  }
  static bool runs(const For& n) {
    for (const Expr& e : n.extents) {
      const int64_t* v = int_value(e);
      if (!v || *v < 1) return false;
    }
    return true;
  }

  void visit(const ForTiles& n, const Stmt&, BufferSet& whole) {
    touch.used.insert(n.buffer.get());
    BufferSet inside = whole;
    run(n.body, inside);
    // A store to every tile at the loop's own tile numbers covers a buffer of the loop's shape.
    for (const Stmt& s : top_of(n.body)) {
      const TileStore* t = as<TileStore>(s);
      if (t && covers(n, *t)) whole.insert(t->buffer.get());
    }
  }
  static bool covers(const ForTiles& loop, const TileStore& s) {
    if (s.buffer->rank() != loop.vars.size() || s.buffer->tile != loop.buffer->tile) return false;
    for (size_t d = 0; d < loop.vars.size(); ++d) {
      if (s.indices[d].get() != loop.vars[d].get()) return false;
      if (!structural_equal(s.buffer->shape[d], loop.buffer->shape[d])) return false;
    }
    return true;
  }

  void visit(const Role& n, const Stmt&, BufferSet& whole) { run(n.body, whole); }

  void visit(const Outline& n, const Stmt&, BufferSet& whole) { run(n.body, whole); }

  void visit(const TileOp& n, const Stmt& s, BufferSet& whole) {
    own(s, whole);
    for (size_t i = 0; i < n.operands.size(); ++i) {
      const bool writes = n.is_region(i) && n.row().params[i].writes() && !keeps_destinations(n);
      if (writes && n.region(i).whole()) whole.insert(n.region(i).buffer.get());
    }
  }
};

}  // namespace

Touch touch_of(const std::vector<Stmt>& stmts) {
  Walk walk;
  BufferSet whole;
  for (const Stmt& s : stmts) walk.run(s, whole);
  walk.touch.whole = std::move(whole);
  return std::move(walk.touch);
}

}  // namespace helve
