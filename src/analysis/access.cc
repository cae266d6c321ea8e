// From statements to accesses with their paths.
// Conditions that an expression evaluates lazily (and, or, selections) guard the loads behind them like an `if`. A step
// of a path is made once, where the walk enters what it stands for, and shared by all that stands below it.
#include "helve/analysis/access.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "helve/analysis/effects.h"
#include "helve/arith/simplify.h"
#include "helve/ir/expr/text.h"
#include "helve/ir/tensor/matrix_move.h"
#include "helve/ir/tensor/update.h"
#include "helve/ir/tensor/visit.h"
#include "helve/support/text.h"

namespace helve {

bool is_independent(const StmtNode& loop) {
  if (loop.kind == StmtKind::Kernel) return true;
  if (loop.kind == StmtKind::ForTiles) return static_cast<const ForTiles&>(loop).parallel;
  if (loop.kind != StmtKind::For) return false;
  const LoopKind kind = static_cast<const For&>(loop).loop;
  return kind == LoopKind::Parallel || kind == LoopKind::Vectorized || kind == LoopKind::Persistent ||
         kind == LoopKind::Thread;
}

bool changes(const Expr& e, const std::unordered_set<const Storage*>& constant) {
  bool found = false;
  walk(e, [&](const Expr& node) {
    const Load* load = as<Load>(node);
    found |= node->kind == ExprKind::TileLoad || (load && !constant.contains(load->buffer.get()));
  });
  return found;
}

void learn(Facts& facts, const Step& step, const std::unordered_set<const Storage*>& constant) {
  for (size_t d = 0; d < step.begins.size(); ++d) {
    if (!changes(step.begins[d], constant) && !changes(step.extents[d], constant)) {
      facts.bind_loop(step.vars[d], step.begins[d], step.extents[d]);
    } else if (const int64_t* begin = int_value(step.begins[d])) {
      facts.bind(step.vars[d], {*begin, std::nullopt});
    }
  }
  if (step.value) facts.bind_value(step.vars[0].get(), step.value);
  if (step.condition && !changes(step.condition, constant)) facts.assume(step.condition);
}

namespace {

class Collector {
 public:
  /// `f` is null for a part.
  Collector(const Function* f, const Stmt& part, const std::vector<MayAlias>& may_alias,
            BufferFilter is_asked = nullptr)
      : f_(f), may_alias_(may_alias), is_asked_(is_asked) {
    out_.function = f;
    set_constant(part);
    visit(part);
  }
  /// Of a region, or of what stands in its place.
  Collector(const Function& f, const Stmt& region, const Stmt& instead)
      : f_(&f), may_alias_(f.may_alias), is_asked_(nullptr) {
    out_.function = &f;
    HELVE_CHECK(find(f.body, region), "a region that is no part of the function");
    set_constant(f.body);
    approach(f.body, 0);
    out_.around = path_;
    set_constant(instead ? instead : region);
    keeps_visits_ = true;
    visit(instead ? instead : region);
  }

  AccessModel take() { return std::move(out_); }

 private:
  void set_constant(const Stmt& part) {
    out_.constant.clear();
    for (const Buffer* buffer : constant_memory(part, may_alias_)) out_.constant.insert(buffer);
  }

  // The way to a region.

  /// Finds the first place of the region; the statements around it become `way_`, outermost first.
  bool find(const Stmt& s, const Stmt& region) {
    way_.push_back(s.get());
    if (s == region) return true;
    bool found = false;
    for_each_part(s, [](const Expr&) {}, [&](const Stmt& part) { found = found || find(part, region); });
    if (!found) way_.pop_back();
    return found;
  }

  /// Adds to the path what holds in `s`, which is way_[at], around the region.
  void approach(const Stmt& s, size_t at) {
    if (at + 1 == way_.size()) return;
    const StmtNode* next = way_[at + 1];
    dispatch(s, [&](const auto& node) { pass(s, node, next); });
    for_each_part(
        s, [](const Expr&) {},
        [&](const Stmt& part) {
          if (part.get() == next && at + 1 < way_.size() && std::exchange(next, nullptr)) approach(part, at + 1);
        });
  }

  template <class N>
  void pass(const Stmt&, const N&, const StmtNode*) {
    HELVE_FAIL("a statement without parts around a region");
  }
  void pass(const Stmt&, const Seq& n, const StmtNode* next) {
    for (const Stmt& s : n.stmts) {
      if (s.get() == next) return;
      if (const Bind* bind = as<Bind>(s)) name(*bind);
      if (const Store* fetch = as<Store>(s); fetch && fetch->previous) name_unknown(fetch->previous);
      if (const Alloc* alloc = as<Alloc>(s)) out_.home[alloc->buffer.get()] = path_;
      if (const Peer* peer = as<Peer>(s)) out_.home[peer->buffer.get()] = path_;
    }
  }
  void pass(const Stmt& s, const For& n, const StmtNode*) { pass_loop(s, n.vars, n.begins, n.extents); }
  void pass(const Stmt& s, const ForTiles& n, const StmtNode*) {
    pass_loop(s, n.vars, std::vector<Expr>(n.vars.size(), int_imm(0)), tile_counts(*n.buffer));
  }
  void pass(const Stmt& s, const Kernel& n, const StmtNode*) {
    kernel_ = &n;
    pass_loop(s, n.vars, std::vector<Expr>(n.vars.size(), int_imm(0)), n.extents);
  }
  void pass(const Stmt& s, const If& n, const StmtNode* next) {
    const bool holds = n.then_body.get() == next;
    if (!changes(resolved(n.condition), out_.constant)) push_guard(n.condition, holds, s.get());
  }
  void pass(const Stmt& s, const While& n, const StmtNode*) {
    if (!changes(resolved(n.condition), out_.constant)) push_guard(n.condition, true, s.get());
  }
  /// A bound that is read from memory which changes is not known inside.
  void pass_loop(const Stmt& s, const std::vector<VarRef>& vars, const std::vector<Expr>& begins,
                 const std::vector<Expr>& extents) {
    Step step = loop_step(s, vars, begins, extents);
    const auto varies = [&](const Expr& e) { return changes(e, out_.constant); };
    if (std::any_of(step.begins.begin(), step.begins.end(), varies) ||
        std::any_of(step.extents.begin(), step.extents.end(), varies)) {
      step.begins.clear();
      step.extents.clear();
    }
    push(std::move(step));
  }

  // The path.

  void push(Step step) { path_.push_back(std::make_shared<Step>(std::move(step))); }
  void push_guard(const Expr& condition, bool holds, const StmtNode* stmt = nullptr) {
    Step step;
    step.stmt = stmt;
    step.visit = visit_.number;
    const Expr value = resolved(condition);
    step.condition = holds ? value : apply(Op::Not, {value});
    push(std::move(step));
  }
  template <class F>
  void scoped(F&& f) {
    const size_t depth = path_.size();
    f();
    path_.resize(depth);
  }
  /// What an expression evaluates under a condition; parts that were seen in front of it are seen.
  template <class F>
  void guarded(F&& f) {
    const Seen before = seen_;
    scoped(f);
    seen_ = before;
  }

  Expr resolved(const Expr& e) const { return values_.empty() ? e : substitute(e, values_); }
  std::vector<Expr> resolved(const std::vector<Expr>& exprs) const {
    std::vector<Expr> out;
    for (const Expr& e : exprs) out.push_back(resolved(e));
    return out;
  }

  Step loop_step(const Stmt& s, const std::vector<VarRef>& vars, const std::vector<Expr>& begins,
                 const std::vector<Expr>& extents) const {
    Step step;
    step.stmt = s.get();
    step.visit = visit_.number;
    step.span = s->span;
    step.vars = vars;
    step.begins = resolved(begins);
    step.extents = resolved(extents);
    return step;
  }

  /// The body of a loop under the loop's step.
  void visit_loop(const Stmt& s, const std::vector<VarRef>& vars, const std::vector<Expr>& begins,
                  const std::vector<Expr>& extents, const Stmt& body) {
    scoped([&] {
      push(loop_step(s, vars, begins, extents));
      out_.loop_at.emplace(visit_.number, path_.back());
      const size_t at = out_.loops.size();
      const bool independent = is_independent(*s);
      if (independent) out_.loops.push_back({path_, out_.accesses.size(), 0});
      visit(body);
      if (independent) out_.loops[at].last = out_.accesses.size();
    });
  }

  static std::vector<Expr> tile_counts(const Buffer& buffer) {
    std::vector<Expr> out;
    for (size_t d = 0; d < buffer.rank(); ++d) {
      out.push_back(simplify(ceil_div(buffer.shape[d], int_imm(buffer.tile[d]))));
    }
    return out;
  }

  // Accesses.

  Access box(const BufferRef& buffer, std::vector<Range> ranges, bool write, const Span& span) {
    Access t;
    t.buffer = buffer;
    t.limits = buffer->shape;
    t.write = write;
    t.stmt = visit_.stmt;
    t.visit = visit_.number;
    t.span = span;
    t.written = ranges;
    for (Range& r : ranges) {
      r.begin = resolved(r.begin);
      r.extent = resolved(r.extent);
    }
    t.ranges = std::move(ranges);
    t.path = path_;
    return t;
  }

  static std::vector<Range> points(const std::vector<Expr>& indices) {
    std::vector<Range> out;
    for (const Expr& index : indices) out.push_back({index, int_imm(1), true});
    return out;
  }

  bool asked(const Buffer& buffer) const { return !is_asked_ || is_asked_(buffer); }

  void add(Access t) {
    if (f_) out_.bounds.push_back(t);
    out_.accesses.push_back(std::move(t));
  }

  /// The span of an expression, of its statement where it has none.
  Span span_of(const Expr& e) const { return e->span.known() ? e->span : visit_.stmt->span; }

  /// The loads below `e`, each under the conditions that its evaluation waits for; those of a shared large part once.
  void visit(const Expr& e) {
    if (!seen_.is_new(e)) return;
    if (const Load* load = as<Load>(e)) {
      for (const Expr& index : load->indices) visit(index);
      const BufferRef buffer = buffer_ref(load->buffer);
      if (!asked(*buffer)) return;
      Access t = box(buffer, points(load->indices), false, span_of(e));
      t.load = e.get();
      return add(std::move(t));
    }
    if (const TileLoad* load = as<TileLoad>(e)) return visit_tile(*load, span_of(e));
    if (!loads_.of(e, [&] { return has_load(e); })) return;
    if (as_op(e, Op::And) || as_op(e, Op::Or)) return visit_chain(e, as<Apply>(e)->op);
    if (const Apply* node = as_op(e, Op::Select)) return visit_selection(*node);
    for_each_child(e, [&](const Expr& child) { visit(child); });
  }

  /// Each operand is evaluated where all before it do not decide.
  void visit_chain(const Expr& e, Op op) {
    guarded([&] {
      for (const Expr& operand : operands_of_chain(e, op)) {
        visit(operand);
        push_guard(operand, op == Op::And);
      }
    });
  }

  void visit_selection(const Apply& node) {
    visit(node.args[0]);
    for (const bool holds : {true, false}) {
      guarded([&] {
        push_guard(node.args[0], holds);
        visit(node.args[holds ? 1 : 2]);
      });
    }
  }

  Access tile_box(const BufferRef& buffer, const std::vector<Expr>& indices, bool write, const Span& span) {
    Access t = box(buffer, points(indices), write, span);
    t.tiles = true;
    for (size_t d = 0; d < t.limits.size(); ++d) t.limits[d] = ceil_div(t.limits[d], int_imm(buffer->tile[d]));
    return t;
  }

  /// A tile of an operand is read where the tile that is stored has elements: dimension d of one follows dimension d of
  /// the other.
  void visit_tile(const TileLoad& load, const Span& span) {
    for (const Expr& index : load.indices) visit(index);
    const BufferRef buffer = buffer_ref(load.buffer);
    if (asked(*buffer)) out_.accesses.push_back(tile_box(buffer, load.indices, false, span));
    if (!target_ || !f_) return;
    scoped([&] {
      std::vector<Range> ranges;
      for (size_t d = 0; d < buffer->rank(); ++d) {
        const Expr tile = int_imm(buffer->tile[d]);
        Expr element = load.indices[d] * tile;
        if (buffer->tile[d] != 1) element = element + push_inside(d);
        ranges.push_back({element, int_imm(1), true});
      }
      Access t = box(buffer, std::move(ranges), false, span);
      t.written = points(load.indices);
      out_.bounds.push_back(std::move(t));
    });
  }

  /// A variable for the place along dimension d inside the stored tile, cut at the target's end.
  Expr push_inside(size_t d) {
    const Buffer& target = *target_->buffer;
    const Expr tile = int_imm(target.tile[d]);
    const VarRef inside = make_var(d + 1 == target.rank() && d > 0 ? "c" : "r");
    Step step;
    step.vars = {inside};
    step.begins = {int_imm(0)};
    step.extents = {tile};
    push(std::move(step));
    push_guard(less(target_->indices[d] * tile + Expr(inside), target.shape[d]), true);
    return Expr(inside);
  }

  // Statements.

  void visit(const Stmt& s) {
    const Place outer = std::exchange(visit_, {s.get(), visits_++});
    const Seen seen = std::exchange(seen_, {});
    const size_t number = visit_.number;
    if (keeps_visits_) out_.visits.push_back({s.get(), 0, path_});
    dispatch(s, [&](const auto& node) { collect(s, node); });
    if (keeps_visits_) out_.visits[number].end = visits_;
    seen_ = seen;
    visit_ = outer;
  }
  void visit_body(const Stmt& s) {
    scoped([&] { visit(s); });
  }

  void collect(const Stmt&, const Seq& n) {
    scoped([&] {
      for (const Stmt& s : n.stmts) visit(s);
    });
  }

  void collect(const Stmt&, const Alloc& n) { out_.home[n.buffer.get()] = path_; }

  /// What a changing value names is a variable of its own, one for each time it is bound.
  void collect(const Stmt&, const Bind& n) {
    visit(n.value);
    name(n);
  }
  void name(const Bind& n) {
    const Expr value = resolved(n.value);
    const bool known = !changes(value, out_.constant);
    const bool is_float = value->dtype.is_float();
    if (known && !is_float && add_value(values_, n.var, is_large(value) ? simplify(value) : value)) return;
    values_.erase(n.var.get());  // a copy of this statement may have had a smaller value
    out_.names.insert(n.var.get());
    if (is_float) return;
    Step step;
    step.vars = {n.var};
    if (known && value->dtype.is_index()) step.value = value;
    push(std::move(step));
  }

  /// What is found in memory is another value each time.
  void name_unknown(const VarRef& var) {
    values_.erase(var.get());
    out_.names.insert(var.get());
    if (var->dtype.is_float()) return;
    Step step;
    step.vars = {var};
    push(std::move(step));
  }

  void collect(const Stmt& s, const Store& n) {
    for (const Expr& index : n.indices) visit(index);
    visit(n.value);
    store_access(s, n);
    if (n.previous) name_unknown(n.previous);
  }
  void store_access(const Stmt& s, const Store& n) {
    if (!asked(*n.buffer)) return;
    Access t = box(n.buffer, points(n.indices), true, s->span);
    t.mode = n.mode;
    if (n.is_update()) {
      t.write = false;
      out_.accesses.push_back(t);
      t.write = true;
    }
    t.value = resolved(n.is_update() ? stored_value(n) : n.value);
    add(std::move(t));
  }

  /// Accesses nothing, but evaluates its subscripts.
  void collect(const Stmt&, const Prefetch& n) {
    for (const Expr& index : n.indices) visit(index);
  }
  void collect(const Stmt&, const Report& n) {
    for (const Expr& value : n.values) visit(value);
  }
  void collect(const Stmt&, const Breakpoint& n) {
    for (const Expr& value : n.values) visit(value);
  }
  void collect(const Stmt&, const Peer& n) {
    for (const Expr& e : n.core) visit(e);
    out_.home[n.buffer.get()] = path_;
  }

  void collect(const Stmt& s, const TileStore& n) {
    for (const Expr& index : n.indices) visit(index);
    target_ = &n;
    visit(n.value);
    target_ = nullptr;
    if (asked(*n.buffer)) add(tile_box(n.buffer, n.indices, true, s->span));
  }

  void collect(const Stmt& s, const For& n) {
    for (const Expr& e : n.begins) visit(e);
    for (const Expr& e : n.extents) visit(e);
    visit_loop(s, n.vars, n.begins, n.extents, n.body);
  }

  void collect(const Stmt& s, const ForTiles& n) {
    visit_loop(s, n.vars, std::vector<Expr>(n.vars.size(), int_imm(0)), tile_counts(*n.buffer), n.body);
  }

  void collect(const Stmt& s, const While& n) {
    scoped([&] {
      Step step;  // how often it runs is not known
      step.stmt = s.get();
      step.visit = visit_.number;
      push(std::move(step));
      out_.loop_at.emplace(visit_.number, path_.back());
      visit(n.condition);
      push_guard(n.condition, true, s.get());
      visit(n.body);
    });
  }

  void collect(const Stmt& s, const If& n) {
    visit(n.condition);
    scoped([&] {
      push_guard(n.condition, true, s.get());
      visit(n.then_body);
    });
    if (!n.else_body) return;
    scoped([&] {
      push_guard(n.condition, false, s.get());
      visit(n.else_body);
    });
  }

  void collect(const Stmt& s, const Kernel& n) {
    for (const Expr& e : n.extents) visit(e);
    kernel_ = &n;
    visit_loop(s, n.vars, std::vector<Expr>(n.vars.size(), int_imm(0)), n.extents, n.body);
    kernel_ = nullptr;
  }

  void collect(const Stmt&, const Role& n) { visit_body(n.body); }

  void collect(const Stmt&, const Outline& n) { visit_body(n.body); }

  void collect(const Stmt& s, const TileOp& n) {
    const Stmt known = values_.empty() ? s : substitute(s, values_);
    out_.operations.push_back({&n, Ref<const TileOp>(as<TileOp>(known)), path_});
    std::vector<Access> writes;  // after all reads
    for (size_t i = 0; i < n.operands.size(); ++i) {
      if (const Expr* e = std::get_if<Expr>(&n.operands[i])) visit(*e);
      if (const std::vector<Expr>* list = std::get_if<std::vector<Expr>>(&n.operands[i])) {
        for (const Expr& e : *list) visit(e);
      }
      if (!n.is_region(i)) continue;
      for (const Range& r : n.region(i).ranges) {
        visit(r.begin);
        visit(r.extent);
      }
      if (!asked(*n.region(i).buffer)) continue;
      const OperandEffect effect = operand_effect(n, i);
      Access t = operand(n, i);
      if (f_) out_.bounds.push_back(t);
      t.mode = effect.mode;
      if (effect.reads && !is_atomic(effect.mode)) out_.accesses.push_back(t);
      t.write = true;
      if (effect.writes) writes.push_back(std::move(t));
    }
    std::move(writes.begin(), writes.end(), std::back_inserter(out_.accesses));
  }

  Access operand(const TileOp& n, size_t i) {
    const Region& region = n.region(i);
    const bool may_be_placed = f_ && n.row().rule == TileRule::MeshTensorCopy;
    const MeshTensor* placed = may_be_placed ? f_->mesh_tensor(region.buffer.get()) : nullptr;
    if (placed) return block_tile(n, *placed);
    Access t = box(region.buffer, region.ranges, false, n.place(i));
    t.may_pass_end = n.may_pass_end(i);
    t.executor = n.in_async_proxy(i) ? Executor::Async : moves_matrices(n) ? Executor::Warps : Executor::Path;
    if (n.begins()) t.queue = copy_queue(n);
    return t;
  }

  /// A tile of the executing core's block.
  Access block_tile(const TileOp& n, const MeshTensor& tensor) {
    const std::vector<Expr>& coord = n.coord();
    std::vector<Range> ranges;
    for (size_t d = 0; d < coord.size(); ++d) {
      ranges.push_back({coord[d] * int_imm(tensor.tiling[d]), int_imm(tensor.tiling[d]), false});
    }
    Access t = box(tensor.buffer, std::move(ranges), false, n.place(n.row().index_of("coord")));
    t.written.clear();
    for (const Expr& c : coord) t.written.push_back({c, int_imm(1), true});
    t.placed = &tensor;
    t.limits = sharded_shape(*f_->mesh, tensor);
    t.block_begin = shard_begin(*f_->mesh, tensor, std::vector<Expr>(kernel_->vars.begin(), kernel_->vars.end()));
    t.may_pass_end = true;
    return t;
  }

  const Function* f_;
  const std::vector<MayAlias>& may_alias_;
  BufferFilter is_asked_;
  AccessModel out_;
  Path path_;
  Substitution values_;
  const Kernel* kernel_ = nullptr;
  const TileStore* target_ = nullptr;
  struct Place {
    const StmtNode* stmt = nullptr;
    size_t number = 0;
  };
  Place visit_;  ///< the statement that is being read
  size_t visits_ = 0;
  bool keeps_visits_ = false;
  std::vector<const StmtNode*> way_;  ///< from the body to the region
  Memo<bool> loads_;
  Seen seen_;  ///< parts of the statement's expressions
};

}  // namespace

bool AccessModel::names_stay(const Expr& e) const {
  if (names.empty()) return false;
  bool found = false;
  walk(e, [&](const Expr& node) {
    const Var* var = as<Var>(node);
    found |= var && names.contains(var);
  });
  return found;
}

std::string text_of(const Access& access) {
  const std::string places = join(access.written, ", ", [](const Range& r) {
    if (r.point) return to_text(r.begin);
    const int64_t* begin = int_value(r.begin);
    const Expr end = begin && *begin == 0 ? r.extent : simplify(r.begin + r.extent);
    return fmt::format("{}:{}", to_text(r.begin), to_text(end));
  });
  if (access.placed) return fmt::format("tile [{}] of {}", places, access.buffer->name);
  return fmt::format("{}[{}]", access.buffer->name, places);
}

AccessModel access_model(const Function& f) { return Collector(&f, f.body, f.may_alias).take(); }

AccessModel access_model(const Function& f, const Stmt& region, const Stmt& instead) {
  return Collector(f, region, instead).take();
}

AccessModel access_model(const Stmt& part, const std::vector<MayAlias>& may_alias, BufferFilter is_asked) {
  return Collector(nullptr, part, may_alias, is_asked).take();
}

}  // namespace helve
