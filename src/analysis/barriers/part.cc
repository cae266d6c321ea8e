// The accesses of statements, and the parts of a kernel.
// Only this file reads the program; barriers depend on the accesses that it finds.
#include "part.h"

#include "helve/ir/expr/build.h"
#include "helve/ir/tensor/copy_queue.h"
#include "helve/ir/tensor/matrix_move.h"
#include "helve/ir/tensor/visit.h"
#include "helve/layout/warp.h"
#include "helve/support/diagnostic.h"

namespace helve::barriers {

namespace {

bool is_shared_memory(const Buffer& b) { return b.scope == MemoryScope::Shared || is_global(b); }

/// The context of a statement: loops of the block, values of names, conditions.
struct Context {
  const BlockLoop* loop = nullptr;
  Substitution names;
  std::vector<Expr> conditions;

  Expr now(const Expr& e) const { return substitute(e, names); }

  /// Replaces a name by its value if that is small, does not load and can be part of an index; any other name is
  /// unknown. Returns whether the name is replaced. A name is defined before it is used, so none has to be forgotten.
  bool define(const Bind& n) {
    names.erase(n.var.get());
    const DType type = n.value->dtype;
    if (!type.is_index() && !type.is_data_int() && !type.is_bool()) return false;
    return !has_load(n.value) && add_value(names, n.var, n.value);
  }
};

/// The accesses of one statement of the block: a loop over threads, or scalar code that all threads run.
class Collector {
 public:
  Collector(Context& context, AccessTable& table) : context_(context), table_(table) {}

  void expression(const Expr& e) {
    walk(e, [&](const Expr& node) {
      if (const Load* l = as<Load>(node)) add(buffer_ref(l->buffer), l->indices, false);
    });
  }

  void statement(const Stmt& s) {
    if (!s) return;
    if (const Store* n = as<Store>(s)) {
      for (const Expr& index : n->indices) expression(index);
      expression(n->value);
      if (n->is_update()) add(n->buffer, n->indices, false);
      return add(n->buffer, n->indices, true, n->mode);
    }
    if (const Bind* n = as<Bind>(s)) {
      expression(n->value);
      if (!context_.define(*n)) inner_.push_back({n->var, {}, {}});
      return;
    }
    if (const For* n = as<For>(s)) return loop(*n);
    if (const If* n = as<If>(s)) return conditional(*n);
    if (const TileOp* n = as<TileOp>(s)) {
      const TileRule rule = n->row().rule;
      if (rule == TileRule::Copy || rule == TileRule::CopyInstruction) return copy(*n);
      if (moves_matrices(*n)) return matrices(*n);
    }
    for_each_part(s, [&](const Expr& e) { expression(e); }, [&](const Stmt& part) { statement(part); });
  }

  std::vector<AccessId> take() { return std::move(out_); }
  std::vector<AccessId> take_copies() { return std::move(copies_); }
  /// The queue of the copies: those of one statement are of one instruction.
  QueueId queue() const { return queue_; }

 private:
  void loop(const For& n) {
    for (size_t d = 0; d < n.vars.size(); ++d) {
      expression(n.begins[d]);
      expression(n.extents[d]);
    }
    const size_t depth = inner_.size();
    for (size_t d = 0; d < n.vars.size(); ++d) {
      inner_.push_back({n.vars[d], context_.now(n.begins[d]), context_.now(n.extents[d])});
    }
    if (n.loop == LoopKind::Thread) thread_ = n.vars[0];
    statement(n.body);
    if (n.loop == LoopKind::Thread) thread_ = {};
    inner_.resize(depth);
  }

  /// A box of elements, as loops over them.
  void copy(const TileOp& n) {
    asynchronous_ = n.begins_copy();
    if (asynchronous_) queue_ = table_.queue(copy_queue(n));
    by_tma_ = n.is_by_tma();
    for (size_t i : {0, 1}) {
      const Region& region = n.region(i);
      std::vector<Expr> indices;
      const size_t depth = inner_.size();
      for (const Range& range : region.ranges) {
        expression(range.begin);
        indices.push_back(range.begin);
        const int64_t* extent = int_value(range.extent);
        if (extent && *extent == 1) continue;
        inner_.push_back({make_var("run"), int_imm(0), context_.now(range.extent)});
        indices.back() = range.begin + Expr(inner_.back().var);
      }
      add(region.buffer, indices, i == 1);
      inner_.resize(depth);
    }
    asynchronous_ = by_tma_ = false;
  }

  /// A warp moves its matrices together: it counts as an additional thread, since no lane's access is ordered with
  /// those of the others.
  void matrices(const TileOp& op) {
    const MatrixOperands operands = matrix_operands(op);
    const Region& region = *operands.memory;
    std::string reason;
    const std::optional<MatrixMove> move = matrix_move(operands.layout, *constant_shape(region.shape()), &reason);
    HELVE_CHECK(move, reason);
    const int64_t threads = operands.layout.span(axes::tx());
    const VarRef warp = make_var("warp");
    const Expr first = (Expr(warp) - int_imm(threads)) * int_imm(kWarp);
    std::vector<Expr> at(2, int_imm(0));
    const size_t depth = inner_.size();
    const auto count = [&](size_t dim, int64_t extent, int64_t step) {
      inner_.push_back({make_var("n"), int_imm(0), int_imm(extent)});
      at[dim] = at[dim] + Expr(inner_.back().var) * int_imm(step);
    };
    for (const MatrixMove::Digit& digit : move->warps) {
      const Expr value = floor_mod(floor_div(first, int_imm(digit.divisor)), int_imm(digit.extent));
      at[digit.dim] = at[digit.dim] + value * int_imm(digit.step);
    }
    for (const MatrixMove::Digit& digit : move->registers) count(digit.dim, digit.extent, digit.step);
    for (size_t dim : {0, 1}) count(dim, kMatrixRows, 1);
    inner_.push_back({warp, int_imm(threads), int_imm(threads / kWarp)});
    thread_ = warp;
    add(region.buffer, region_elements(region, at), op.op == TileOpcode::StoreMatrix);
    thread_ = {};
    inner_.resize(depth);
  }

  /// The element of the buffer at position `at` of the region.
  static std::vector<Expr> region_elements(const Region& region, const std::vector<Expr>& at) {
    std::vector<Expr> out;
    size_t next = 0;
    for (const Range& range : region.ranges) out.push_back(range.point ? range.begin : range.begin + at[next++]);
    return out;
  }

  void conditional(const If& n) {
    expression(n.condition);
    const Expr condition = context_.now(n.condition);
    context_.conditions.push_back(condition);
    statement(n.then_body);
    context_.conditions.back() = apply(Op::Not, {condition});
    statement(n.else_body);
    context_.conditions.pop_back();
  }

  void add(const BufferRef& buffer, const std::vector<Expr>& indices, bool write, StoreMode mode = StoreMode::Write) {
    if (!is_shared_memory(*buffer)) return;
    Access access;
    access.buffer = buffer;
    access.write = write;
    access.mode = mode;
    access.loop = context_.loop;
    access.inner = inner_;
    access.thread = thread_;
    access.by_tma = by_tma_;
    for (const Expr& index : indices) access.indices.push_back(context_.now(index));
    access.conditions = context_.conditions;
    out_.push_back(table_.intern(std::move(access)));
    if (asynchronous_) copies_.push_back(out_.back());
  }

  Context& context_;
  AccessTable& table_;
  std::vector<VarRange> inner_;
  VarRef thread_;  ///< of the loop over threads around; null: all threads
  bool asynchronous_ = false, by_tma_ = false;
  std::vector<AccessId> out_;
  std::vector<AccessId> copies_;
  QueueId queue_ = 0;
};

bool is_barrier(const Stmt& s) {
  const TileOp* op = as<TileOp>(s);
  return op && (op->op == TileOpcode::SyncThreads || op->row().is_collective());
}

class Builder {
 public:
  explicit Builder(AccessTable& table) : table_(table) { context_.loop = table.kernel_loop(); }

  PartRef body(const Stmt& s) {
    PartRef out = std::make_unique<Part>();
    if (const Seq* n = as<Seq>(s)) {
      for (const Stmt& each : n->stmts) statement(each, *out);
    } else if (s) {
      statement(s, *out);
    }
    close(*out);
    return out;
  }

 private:
  void statement(const Stmt& s, Part& sequence) {
    if (is_barrier(s)) return add(sequence, Part::Kind::Barrier, s);
    if (const TileOp* op = as<TileOp>(s); op && op->row().rule == TileRule::Wait) {
      add_part(sequence, Part::Kind::Wait, s).queue = table_.queue(copy_queue(*op));
      return;
    }
    if (const If* n = as<If>(s)) return conditional(*n, s, sequence);
    if (const While* n = as<While>(s)) return while_loop(*n, s, sequence);
    const For* loop = as<For>(s);
    if (loop && loop->loop != LoopKind::Thread) return for_loop(*loop, s, sequence);
    Collector collector(context_, table_);
    collector.statement(s);
    add_accesses(sequence, s, collector);
    const Bind* n = as<Bind>(s);
    if (n && !context_.define(*n)) table_.define_unknown(n->var, context_.loop);
  }

  Part& add_part(Part& sequence, Part::Kind kind, const Stmt& s) {
    sequence.parts.push_back(std::make_unique<Part>());
    sequence.parts.back()->kind = kind;
    sequence.parts.back()->stmt = s;
    return *sequence.parts.back();
  }
  void add(Part& sequence, Part::Kind kind, const Stmt& s) { add_part(sequence, kind, s); }

  Part& add_accesses(Part& sequence, const Stmt& s, Collector& collector) {
    Part& part = add_part(sequence, Part::Kind::Accesses, s);
    part.accesses = collector.take();
    part.copies = collector.take_copies();
    part.queue = collector.queue();
    for (AccessId id : part.accesses) part.all.add(id);
    return part;
  }

  /// The values of a condition or bounds, which all threads read.
  void head(Part& sequence, const Stmt& s, const std::vector<Expr>& values) {
    Collector collector(context_, table_);
    for (const Expr& e : values) collector.expression(e);
    add_accesses(sequence, s, collector).is_head = true;
  }

  void conditional(const If& n, const Stmt& s, Part& sequence) {
    head(sequence, s, {n.condition});
    Part& part = add_part(sequence, Part::Kind::Branch, s);
    const Expr condition = context_.now(n.condition);
    context_.conditions.push_back(condition);
    part.parts.push_back(body(n.then_body));
    context_.conditions.back() = apply(Op::Not, {condition});
    part.parts.push_back(body(n.else_body));
    context_.conditions.pop_back();
    close(part);
  }

  void while_loop(const While& n, const Stmt& s, Part& sequence) {
    head(sequence, s, {n.condition});
    Part& part = add_part(sequence, Part::Kind::Loop, s);
    const BlockLoop* outer = context_.loop;
    context_.loop = part.loop = table_.loop(outer, n.condition.get(), {});
    part.parts.push_back(body(n.body));
    head(*part.parts[0], s, {n.condition});  // the condition is evaluated again
    close(*part.parts[0]);
    context_.loop = outer;
    close(part);
  }

  void for_loop(const For& n, const Stmt& s, Part& sequence) {
    std::vector<Expr> bounds = n.begins;
    bounds.insert(bounds.end(), n.extents.begin(), n.extents.end());
    head(sequence, s, bounds);
    std::vector<VarRange> ranges;
    for (size_t d = 0; d < n.vars.size(); ++d) {
      ranges.push_back({n.vars[d], known(context_.now(n.begins[d])), known(context_.now(n.extents[d]))});
    }
    Part& part = add_part(sequence, Part::Kind::Loop, s);
    const BlockLoop* outer = context_.loop;
    context_.loop = part.loop = table_.loop(outer, n.vars[0].get(), std::move(ranges));
    part.parts.push_back(body(n.body));
    context_.loop = outer;
    close(part);
  }

  /// The expression, or null if it loads.
  static Expr known(const Expr& e) { return has_load(e) ? Expr() : e; }

  /// All accesses of a part, from those of its parts.
  void close(Part& part) {
    const size_t outer = part.kind == Part::Kind::Loop ? part.loop->parent->depth : context_.loop->depth;
    for (const PartRef& each : part.parts) {
      part.all.add(part.kind == Part::Kind::Loop ? each->all.seen_from(outer, table_) : each->all);
    }
  }

  AccessTable& table_;
  Context context_;
};

}  // namespace

bool is_sync_threads(const Part& part) {
  return part.kind == Part::Kind::Barrier && as<TileOp>(part.stmt)->op == TileOpcode::SyncThreads;
}

PartRef parts_of(const Kernel& kernel, AccessTable& table) { return Builder(table).body(kernel.body); }

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
