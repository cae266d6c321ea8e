// The parts of a kernel.
// Statements are counted as the access model counts them, so that each part takes the accesses of its own statements.
#include "part.h"

#include "block_accesses.h"
#include "helve/ir/tensor/copy_queue.h"
#include "helve/ir/tensor/visit.h"
#include "helve/support/diagnostic.h"

namespace helve::barriers {

namespace {

bool is_barrier(const TileOp& op) {
  return op.op == TileOpcode::SyncThreads || op.op == TileOpcode::SyncCluster || op.row().is_collective();
}

class Builder {
 public:
  Builder(const Function& f, const Kernel& kernel, AccessTable& table)
      : table_(table), accesses_(kernel, f.may_alias, table), loop_(table.kernel_loop()) {
    ++visits_;  // the kernel itself
  }

  PartRef body(const Stmt& s) {
    PartRef out = std::make_unique<Part>();
    if (const Seq* n = as<Seq>(s)) {
      ++visits_;
      for (const Stmt& each : n->stmts) statement(each, *out);
    } else if (s) {
      statement(s, *out);
    }
    close(*out);
    return out;
  }

 private:
  void statement(const Stmt& s, Part& sequence) {
    if (const If* n = as<If>(s)) return conditional(*n, s, sequence);
    if (const While* n = as<While>(s)) return while_loop(*n, s, sequence);
    const For* loop = as<For>(s);
    if (loop && loop->loop != LoopKind::Thread) return for_loop(*loop, s, sequence);
    walk(s, [&](const Stmt&) { ++visits_; });
    const Accesses own = accesses_.take(visits_, loop_);
    const TileOp* op = as<TileOp>(s);
    if (op && is_barrier(*op)) {
      add_part(sequence, Part::Kind::Barrier, s);
    } else if (op && op->row().rule == TileRule::Wait) {
      add_part(sequence, Part::Kind::Wait, s).queue = table_.queue(copy_queue(*op));
    } else {
      add_accesses(sequence, s, own);
    }
    const Bind* n = as<Bind>(s);
    if (n && accesses_.stays(n->var.get())) table_.define_unknown(n->var, loop_);
  }

  static Part& add_part(Part& sequence, Part::Kind kind, const Stmt& s) {
    sequence.parts.push_back(std::make_unique<Part>());
    sequence.parts.back()->kind = kind;
    sequence.parts.back()->stmt = s;
    return *sequence.parts.back();
  }

  static Part& add_accesses(Part& sequence, const Stmt& s, const Accesses& own) {
    Part& part = add_part(sequence, Part::Kind::Accesses, s);
    part.accesses = own.all;
    part.copies = own.copies;
    part.queue = own.queue;
    for (AccessId id : part.accesses) part.all.add(id);
    return part;
  }

  /// The values of a condition or bounds, which all threads read.
  static void add_head(Part& sequence, const Stmt& s, const Accesses& own) {
    add_accesses(sequence, s, own).is_head = true;
  }

  void conditional(const If& n, const Stmt& s, Part& sequence) {
    add_head(sequence, s, accesses_.take(++visits_, loop_));
    Part& part = add_part(sequence, Part::Kind::Branch, s);
    part.parts.push_back(body(n.then_body));
    part.parts.push_back(body(n.else_body));
    close(part);
  }

  void while_loop(const While& n, const Stmt& s, Part& sequence) {
    const BlockLoop* outer = loop_;
    loop_ = table_.loop(outer, n.condition.get(), {});
    const Accesses inside = accesses_.take(++visits_, loop_);
    Accesses before = inside;
    for (AccessId& id : before.all) id = table_.seen_from(id, outer->depth);
    add_head(sequence, s, before);
    Part& part = add_part(sequence, Part::Kind::Loop, s);
    part.loop = loop_;
    part.parts.push_back(body(n.body));
    add_head(*part.parts[0], s, inside);  // the condition is evaluated again
    close(*part.parts[0]);
    loop_ = outer;
    close(part);
  }

  void for_loop(const For& n, const Stmt& s, Part& sequence) {
    const size_t visit = visits_++;
    const BlockLoop* outer = loop_;
    add_head(sequence, s, accesses_.take(visits_, outer));
    Part& part = add_part(sequence, Part::Kind::Loop, s);
    loop_ = part.loop = table_.loop(outer, n.vars[0].get(), accesses_.ranges(visit));
    part.parts.push_back(body(n.body));
    loop_ = outer;
    close(part);
  }

  /// All accesses of a part, from those of its parts.
  void close(Part& part) {
    const size_t outer = part.kind == Part::Kind::Loop ? part.loop->parent->depth : loop_->depth;
    for (const PartRef& each : part.parts) {
      part.all.add(part.kind == Part::Kind::Loop ? each->all.seen_from(outer, table_) : each->all);
    }
  }

  AccessTable& table_;
  BlockAccesses accesses_;
  const BlockLoop* loop_;  ///< around the statement that is being read
  size_t visits_ = 0;  ///< before it
};

}  // namespace

bool is_sync_threads(const Part& part) {
  return part.kind == Part::Kind::Barrier && as<TileOp>(part.stmt)->op == TileOpcode::SyncThreads;
}

PartRef parts_of(const Function& f, const Kernel& kernel, AccessTable& table) {
  return Builder(f, kernel, table).body(kernel.body);
}

namespace {

Stmt statement_of_part(const Part& part) {
  if (part.kind == Part::Kind::Branch) {
    const If& n = *as<If>(part.stmt);
    const Stmt then_body = statement_of(*part.parts[0], n.then_body);
    const Stmt else_body = n.else_body ? statement_of(*part.parts[1], n.else_body) : n.else_body;
    if (then_body == n.then_body && else_body == n.else_body) return part.stmt;
    return if_then(n.condition, then_body, else_body, part.stmt->span);
  }
  if (part.kind == Part::Kind::Loop) {
    return map_parts(
        part.stmt, [](const Expr& e) { return e; },
        [&](const Stmt& body) { return statement_of(*part.parts[0], body); });
  }
  return part.stmt;
}

}  // namespace

Stmt statement_of(const Part& sequence, const Stmt& before) {
  std::vector<Stmt> out;
  for (const PartRef& part : sequence.parts) {
    if (!part->is_head && !part->is_dropped) out.push_back(statement_of_part(*part));
  }
  const Seq* several = as<Seq>(before);
  if (several ? several->stmts == out : out == std::vector<Stmt>{before}) return before;
  return seq(std::move(out), before->span);
}

const Part* part_with(const Part& part, AccessId id, AccessTable& table) {
  for (AccessId each : part.accesses) {
    if (table.depth(each) >= table.depth(id) && table.seen_from(each, table.depth(id)) == id) return &part;
  }
  for (const PartRef& each : part.parts) {
    if (const Part* found = part_with(*each, id, table)) return found;
  }
  return nullptr;
}

Effect effect_of(const Part& part, AccessTable& table, const std::function<const Effect&(size_t)>& of_part) {
  Effect out;
  switch (part.kind) {
    case Part::Kind::Accesses:
      for (AccessId id : part.accesses) out.exposed.add(id);
      for (AccessId id : part.copies) out.flight[part.queue].add(id);
      out.pending = out.exposed;
      return out;
    case Part::Kind::Barrier: out.barrier = !part.is_dropped; return out;
    case Part::Kind::Wait:
      out.lands = {part.queue};
      if (as<TileOp>(part.stmt)->pending() == 0) out.drains = out.lands;
      return out;
    case Part::Kind::Sequence:
      for (size_t i = 0; i < part.parts.size(); ++i) append(out, of_part(i));
      return out;
    case Part::Kind::Branch: return one_of(of_part(0), of_part(1));
    case Part::Kind::Loop: return repeated(of_part(0), *part.loop, table);
  }
  HELVE_FAIL("a part of no kind");
}

Effect effect_of(const Part& part, AccessTable& table) {
  return effect_of(part, table, [&](size_t i) -> const Effect& { return part.parts[i]->effect; });
}

}  // namespace helve::barriers
