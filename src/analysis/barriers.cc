// Which threads of a block touch one element without a barrier between them.
// A run of the kernel keeps the accesses since the last barrier; a loop of the block is run twice, so that its second
// iteration meets the first one's accesses. The pairs that meet are decided by isl.
#include "helve/analysis/barriers.h"

#include <cstdlib>
#include <map>
#include <optional>

#include "helve/arith/facts.h"
#include "helve/arith/relation.h"
#include "helve/arith/simplify.h"
#include "helve/ir/tensor/matrix_move.h"
#include "helve/ir/tensor/visit.h"
#include "helve/support/diagnostic.h"

namespace helve {

namespace {

constexpr int kQuestions = 2000;            // of one function; what is asked beyond is unknown
constexpr int64_t kOperations = 20'000;     // of isl for one question, a few milliseconds
constexpr int64_t kWarp = 32;

struct LoopRange {
  VarRef var;
  Expr begin;
  Expr extent;
};

/// One access, with all that decides when and by which thread it is made. A null thread: by all threads, or by the copy
/// engine, which is ordered with no thread by the program.
struct ThreadAccess {
  Stmt stmt;  ///< the statement of the block that it belongs to
  size_t number;  ///< of the access in that statement
  BufferRef buffer;
  bool write;
  StoreMode mode;  ///< of a write
  std::vector<Expr> indices;
  bool asynchronous;  ///< it is made at any time up to the thread's wait, which it is pending after once more
  VarRef thread;
  std::vector<LoopRange> outer;  ///< loops of the block
  std::vector<LoopRange> inner;  ///< loops of the thread
  std::vector<Expr> conditions;
};

/// An access that no barrier follows yet. `carried` is the loop, by its variable, that has gone on to a later iteration
/// since.
struct Pending {
  std::shared_ptr<const ThreadAccess> access;
  const Var* carried = nullptr;
};

/// What a place of the program finds. A barrier ends what is pending, but not what is in flight: a copy that a thread
/// has begun is seen by others behind a barrier after the thread's wait. Which copies a wait covers is not asked, so
/// that all of them count as done and, unless it waits for all, as in flight.
struct State {
  std::vector<Pending> pending;
  std::vector<Pending> in_flight;
};

bool is_shared_memory(const Buffer& b) { return b.scope == MemoryScope::Shared || is_global(b); }

bool is_barrier(const Stmt& s) {
  const TileOp* op = as<TileOp>(s);
  return op && (op->op == TileOpcode::SyncThreads || op->row().is_collective());
}

Stmt barrier(const Span& span) { return tile_op(TileOpcode::SyncThreads, {}, span); }

/// The accesses of one statement of the block: a loop over threads, or scalar code that all threads run.
class Accesses {
 public:
  Accesses(const Stmt& stmt, std::vector<LoopRange> outer, Substitution names, std::vector<Expr> conditions)
      : stmt_(stmt), outer_(std::move(outer)), names_(std::move(names)), conditions_(std::move(conditions)) {}

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
      return add(n->buffer, n->indices, true, n->mode);
    }
    if (const Bind* n = as<Bind>(s)) {
      expression(n->value);
      return define(*n);
    }
    if (const For* n = as<For>(s)) return loop(*n);
    if (const If* n = as<If>(s)) return conditional(*n);
    if (const TileOp* n = as<TileOp>(s); n && n->row().rule == TileRule::Copy) return copy(*n);
    if (const TileOp* n = as<TileOp>(s); n && n->row().rule == TileRule::MatrixMove) return matrices(*n);
    for_each_part(
        s, [&](const Expr& e) { expression(e); }, [&](const Stmt& part) { statement(part); });
  }

  /// A value without loads replaces its name; another one is some value.
  static void define(const Bind& n, Substitution* names) {
    const Expr value = substitute(n.value, *names);
    if (!has_load(value)) names->insert_or_assign(n.var.get(), value);
  }

  std::vector<std::shared_ptr<const ThreadAccess>> take() { return std::move(out_); }

 private:
  void define(const Bind& n) { define(n, &names_); }

  void loop(const For& n) {
    for (size_t d = 0; d < n.vars.size(); ++d) {
      expression(n.begins[d]);
      expression(n.extents[d]);
    }
    if (n.loop == LoopKind::Thread) {
      threads_ = {n.vars[0], n.begins[0], n.extents[0]};
      statement(n.body);
      threads_ = {};
      return;
    }
    const size_t depth = inner_.size();
    for (size_t d = 0; d < n.vars.size(); ++d) inner_.push_back({n.vars[d], now(n.begins[d]), now(n.extents[d])});
    statement(n.body);
    inner_.resize(depth);
  }

  /// A box of elements as loops over them.
  void copy(const TileOp& n) {
    asynchronous_ = n.op == TileOpcode::CopyAsync;
    for (size_t i : {0, 1}) {
      const Region& region = n.region(i);
      std::vector<Expr> indices;
      const size_t depth = inner_.size();
      for (const Range& range : region.ranges) {
        expression(range.begin);
        indices.push_back(range.begin);
        const int64_t* extent = int_value(range.extent);
        if (extent && *extent == 1) continue;
        inner_.push_back({make_var("run"), int_imm(0), now(range.extent)});
        indices.back() = range.begin + Expr(inner_.back().var);
      }
      add(region.buffer, indices, i == 1);
      inner_.resize(depth);
    }
    asynchronous_ = false;
  }

  /// A warp moves its matrices as one: it counts as a thread of its own, after those of the block, since no lane's
  /// access is ordered with those of the others.
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
    threads_ = {warp, int_imm(threads), int_imm(threads / kWarp)};
    add(region.buffer, region_elements(region, at), op.op == TileOpcode::StoreMatrix);
    threads_ = {};
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
    const Expr condition = now(n.condition);
    conditions_.push_back(condition);
    statement(n.then_body);
    conditions_.back() = apply(Op::Not, {condition});
    statement(n.else_body);
    conditions_.pop_back();
  }

  Expr now(const Expr& e) const { return substitute(e, names_); }

  void add(const BufferRef& buffer, const std::vector<Expr>& indices, bool write, StoreMode mode = StoreMode::Write) {
    if (!is_shared_memory(*buffer)) return;
    auto access = std::make_shared<ThreadAccess>();
    access->stmt = stmt_;
    access->number = out_.size();
    access->buffer = buffer;
    access->write = write;
    access->asynchronous = asynchronous_;
    access->mode = mode;
    for (const Expr& index : indices) access->indices.push_back(now(index));
    access->thread = threads_.var;
    access->outer = outer_;
    access->inner = inner_;
    if (threads_.var) access->inner.push_back(threads_);
    access->conditions = conditions_;
    out_.push_back(std::move(access));
  }

  Stmt stmt_;
  std::vector<LoopRange> outer_;
  std::vector<LoopRange> inner_;
  Substitution names_;
  std::vector<Expr> conditions_;
  bool asynchronous_ = false;
  LoopRange threads_;  ///< those of the loop around; no variable: all of them, alike
  std::vector<std::shared_ptr<const ThreadAccess>> out_;
};

}  // namespace

class BarrierAnalysis::Impl {
 public:
  explicit Impl(const FunctionRef& f) : function_(f) {}

  std::vector<UnorderedAccesses> unordered(const Kernel& kernel) {
    begin(kernel, false);
    State state;
    run(kernel.body, state);
    return std::move(found_);
  }

  Ref<const Kernel> with_barriers(const Ref<const Kernel>& kernel) {
    begin(*kernel, true);
    State state;
    Stmt body = run(kernel->body, state);
    body = without_superfluous(*kernel, body);
    if (body == kernel->body) return kernel;
    return with(*kernel, body);
  }

 private:
  static Ref<const Kernel> with(const Kernel& kernel, const Stmt& body) {
    Ref<Kernel> out = make_ref<Kernel>(kernel);
    out->body = body;
    return out;
  }

  void begin(const Kernel& kernel, bool insert) {
    kernel_ = &kernel;
    insert_ = insert;
    outer_.clear();
    names_.clear();
    conditions_.clear();
    found_.clear();
  }

  // The run.

  /// Runs a statement of the block; returns it with barriers where they are inserted.
  Stmt run(const Stmt& s, State& state) {
    if (!s) return s;
    if (is_barrier(s)) {
      state.pending.clear();
      return s;
    }
    if (const TileOp* op = as<TileOp>(s); op && op->op == TileOpcode::WaitAsync) {
      for (const Pending& copied : state.in_flight) add(state.pending, copied);
      if (op->integer(0) == 0) state.in_flight.clear();
      return s;
    }
    if (const Seq* n = as<Seq>(s)) return run_sequence(*n, s, state);
    if (const If* n = as<If>(s)) return run_conditional(*n, s, state);
    if (const While* n = as<While>(s)) return run_while(*n, s, state);
    const For* loop = as<For>(s);
    if (loop && loop->loop != LoopKind::Thread) return run_loop(*loop, s, state);
    Accesses accesses(s, outer_, names_, conditions_);
    accesses.statement(s);
    if (const Bind* n = as<Bind>(s)) Accesses::define(*n, &names_);
    return meet(s, accesses.take(), state);
  }

  /// The statement after the pending accesses, behind a barrier where one is needed and may be inserted.
  Stmt meet(const Stmt& s, std::vector<std::shared_ptr<const ThreadAccess>> accesses, State& state) {
    Stmt out = s;
    if (std::optional<UnorderedAccesses> conflict = first_conflict(accesses, state)) {
      if (insert_) {
        out = seq({barrier(s->span), s}, s->span);
        state.pending.clear();
      } else {
        found_.push_back(std::move(*conflict));
      }
    }
    for (const auto& access : accesses) {
      add(state.pending, {access, nullptr});
      if (access->asynchronous) add(state.in_flight, {access, nullptr});
    }
    return out;
  }

  /// An access that is known already is not two.
  static void add(std::vector<Pending>& list, Pending pending) {
    for (const Pending& known : list) {
      if (known.access->stmt == pending.access->stmt && known.access->number == pending.access->number &&
          known.carried == pending.carried) {
        return;
      }
    }
    list.push_back(std::move(pending));
  }

  /// Does the order of two accesses of one element matter? Not of reads, nor of atomic stores of one mode.
  static bool conflict(const ThreadAccess& a, const ThreadAccess& b) {
    if (a.write && b.write) return a.mode != b.mode || a.mode == StoreMode::Write;
    return a.write || b.write;
  }

  std::optional<UnorderedAccesses> first_conflict(const std::vector<std::shared_ptr<const ThreadAccess>>& accesses,
                                                  const State& state) {
    for (const auto& access : accesses) {
      for (const Pending& pending : state.pending) {
        if (pending.access->buffer != access->buffer || !conflict(*pending.access, *access)) continue;
        const Verdict apart = are_apart(*pending.access, pending.carried, *access);
        if (apart == Verdict::Proved) continue;
        return UnorderedAccesses{access->buffer, pending.access->stmt, access->stmt, apart == Verdict::Refuted};
      }
    }
    return std::nullopt;
  }

  Stmt run_sequence(const Seq& n, const Stmt& self, State& state) {
    const Substitution names = names_;
    std::vector<Stmt> out;
    bool changed = false;
    for (const Stmt& part : n.stmts) {
      out.push_back(run(part, state));
      changed |= out.back() != part;
    }
    names_ = names;
    return changed ? seq(std::move(out), self->span) : self;
  }

  /// The value of a condition or a bound, which all threads read.
  Stmt run_scalars(const Stmt& s, const std::vector<Expr>& values, State& state) {
    Accesses accesses(s, outer_, names_, conditions_);
    for (const Expr& e : values) accesses.expression(e);
    return meet(s, accesses.take(), state);
  }

  Stmt run_conditional(const If& n, const Stmt& self, State& state) {
    const Stmt ordered = run_scalars(self, {n.condition}, state);
    State otherwise = state;
    conditions_.push_back(substitute(n.condition, names_));
    const Stmt then_body = run(n.then_body, state);
    conditions_.back() = apply(Op::Not, {conditions_.back()});
    const Stmt else_body = run(n.else_body, otherwise);
    conditions_.pop_back();
    for (Pending& pending : otherwise.pending) add(state.pending, std::move(pending));
    for (Pending& copied : otherwise.in_flight) add(state.in_flight, std::move(copied));
    Stmt out = then_body == n.then_body && else_body == n.else_body
                   ? self
                   : if_then(n.condition, then_body, else_body, self->span);
    return ordered == self ? out : seq({barrier(self->span), out}, self->span);
  }

  Stmt run_while(const While& n, const Stmt& self, State& state) {
    const VarRef turn = make_var("turn");
    const Stmt ordered = run_scalars(self, {n.condition}, state);
    outer_.push_back({turn, int_imm(0), {}});
    Stmt body = n.body;
    for (int pass = 0; pass < 2; ++pass) {
      body = run(body, state);
      carry(state, turn.get());
      // Before the condition is read again.
      Accesses accesses(self, outer_, names_, conditions_);
      accesses.expression(n.condition);
      auto reads = accesses.take();
      if (first_conflict(reads, state) && insert_) {
        body = seq({body, barrier(self->span)}, self->span);
        state.pending.clear();
      } else if (std::optional<UnorderedAccesses> conflict = first_conflict(reads, state)) {
        found_.push_back(std::move(*conflict));
      }
      for (auto& access : reads) add(state.pending, {std::move(access), nullptr});
    }
    outer_.pop_back();
    const Stmt out = body == n.body ? self : while_loop(n.condition, body, self->span);
    return ordered == self ? out : seq({barrier(self->span), out}, self->span);
  }

  Stmt run_loop(const For& n, const Stmt& self, State& state) {
    std::vector<Expr> bounds = n.begins;
    bounds.insert(bounds.end(), n.extents.begin(), n.extents.end());
    const Stmt ordered = run_scalars(self, bounds, state);
    const size_t depth = outer_.size();
    for (size_t d = 0; d < n.vars.size(); ++d) outer_.push_back({n.vars[d], now(n.begins[d]), now(n.extents[d])});
    bool in_front = ordered != self;
    if (insert_ && !in_front && body_meets(n.body, state)) {
      in_front = true;
      state.pending.clear();
    }
    Stmt body = run(n.body, state);
    carry(state, n.vars[0].get());
    body = run(body, state);
    outer_.resize(depth);
    const Stmt out = body == n.body ? self : map_parts(
        self, [](const Expr& e) { return e; }, [&](const Stmt&) { return body; });
    return in_front ? seq({barrier(self->span), out}, self->span) : out;
  }

  /// Does a statement of the first iteration, in front of the body's own barriers, meet what is pending?
  bool body_meets(const Stmt& body, const State& state) {
    const Seq* several = as<Seq>(body);
    for (const Stmt& s : several ? several->stmts : std::vector<Stmt>{body}) {
      if (is_barrier(s)) return false;
      Accesses accesses(s, outer_, names_, conditions_);
      accesses.statement(s);
      if (first_conflict(accesses.take(), state)) return true;
    }
    return false;
  }

  Expr now(const Expr& e) const { return substitute(e, names_); }

  /// What was done in the loop is now an earlier iteration's.
  static void carry(State& state, const Var* var) {
    carry(state.pending, var);
    carry(state.in_flight, var);
  }

  static void carry(std::vector<Pending>& list, const Var* var) {
    for (Pending& pending : list) {
      for (const LoopRange& range : pending.access->outer) {
        if (range.var.get() == var && !pending.carried) pending.carried = var;
      }
      // Carried by an outer loop says less than by this one; the outer one is kept, for which both variables are free.
      if (pending.carried && pending.carried != var) {
        bool outside = false;
        for (const LoopRange& range : pending.access->outer) {
          if (range.var.get() == var) outside = true;
          if (range.var.get() == pending.carried) break;
        }
        if (outside) pending.carried = var;
      }
    }
  }

  // The question.

  /// Is no element touched by `a`, of an earlier iteration of `carried` if that is set, and by another thread in `b`?
  Verdict are_apart(const ThreadAccess& a, const Var* carried, const ThreadAccess& b) {
    const auto key = std::tuple(a.stmt.get(), a.number, b.stmt.get(), b.number, carried);
    auto known = answers_.find(key);
    if (known == answers_.end()) {
      keep_.push_back(a.stmt);
      keep_.push_back(b.stmt);
      known = answers_.emplace(key, ask(a, carried, b)).first;
    }
    return known->second;
  }

  Verdict ask(const ThreadAccess& a, const Var* carried, const ThreadAccess& b) {
    if (--questions_ < 0) return Verdict::Unknown;
    std::vector<VarRef> vars = free_variables();
    Expr all = bool_imm(true);
    bool exact = true;
    const auto require = [&](const Expr& e) {
      if (has_load(e)) {
        exact = false;
        return;
      }
      all = logical_and(all, e);
    };
    const auto bound = [&](const LoopRange& range, const Substitution& renamed) {
      auto it = renamed.find(range.var.get());
      const VarRef var = it == renamed.end() ? range.var : VarRef(as<Var>(it->second));
      vars.push_back(var);
      const Expr begin = substitute(range.begin, renamed);
      require(apply(Op::Le, {begin, Expr(var)}));
      if (range.extent) require(less(Expr(var), begin + substitute(range.extent, renamed)));
    };
    // The loops around b keep their names; those around a are the same ones up to the carried one.
    Substitution renamed;
    bool same = true;
    for (size_t d = 0; d < a.outer.size(); ++d) {
      same = same && d < b.outer.size() && a.outer[d].var == b.outer[d].var && a.outer[d].var.get() != carried;
      if (!same) renamed.emplace(a.outer[d].var.get(), Expr(make_var(a.outer[d].var->name)));
    }
    for (const LoopRange& range : a.inner) renamed.emplace(range.var.get(), Expr(make_var(range.var->name)));
    if (a.thread && b.thread && name_threads(a, b, renamed)) return Verdict::Proved;
    for (const LoopRange& range : b.outer) bound(range, {});
    for (const LoopRange& range : b.inner) bound(range, {});
    for (const LoopRange& range : a.outer) {
      if (renamed.contains(range.var.get())) bound(range, renamed);
      if (range.var.get() == carried && in_loop(b, carried)) require(less(renamed.at(carried), Expr(range.var)));
    }
    for (const LoopRange& range : a.inner) bound(range, renamed);
    for (const Expr& e : b.conditions) require(e);
    for (const Expr& e : a.conditions) require(substitute(e, renamed));
    if (a.thread && b.thread) require(apply(Op::Ne, {renamed.at(a.thread.get()), Expr(b.thread)}));
    for (size_t d = 0; d < a.indices.size(); ++d) {
      require(apply(Op::Eq, {substitute(a.indices[d], renamed), b.indices[d]}));
    }
    const IntegerSet meeting(engine_, vars, simplify(all));
    const Answer answer = meeting.is_empty();
    if (answer.verdict == Verdict::Refuted && !exact) return Verdict::Unknown;
    return answer.verdict;
  }

  /// Can an element be of one thread only? Of some pair of indices, step * thread + rest on both sides, the rests
  /// differ by less than the step. Most questions are of this kind, and isl takes a hundred times as long for them.
  static bool name_threads(const ThreadAccess& a, const ThreadAccess& b, const Substitution& renamed) {
    const Expr one = renamed.at(a.thread.get()), other = b.thread;
    Facts facts;
    for (const LoopRange& range : a.inner) {
      facts.bind_loop(VarRef(as<Var>(renamed.at(range.var.get()))), substitute(range.begin, renamed),
                      substitute(range.extent, renamed));
    }
    for (const LoopRange& range : b.inner) facts.bind_loop(range.var, range.begin, range.extent);
    for (size_t d = 0; d < a.indices.size(); ++d) {
      if (has_load(a.indices[d]) || has_load(b.indices[d])) continue;
      const int64_t step = coefficient_of(sum_of(b.indices[d]), other);
      if (step == 0 || step == INT64_MIN) continue;
      const Expr threads = (one - other) * int_imm(step);
      const Expr rest = simplify(substitute(a.indices[d], renamed) - b.indices[d] - threads);
      if (mentions(rest, as<Var>(one)) || mentions(rest, as<Var>(other))) continue;
      const Interval range = interval_of(rest, facts);
      const int64_t width = std::abs(step);
      if (range.low && range.high && -width < *range.low && *range.high < width) return true;
    }
    return false;
  }

  static int64_t coefficient_of(const Sum& sum, const Expr& var) {
    for (const Term& term : sum.terms) {
      if (term.factors.size() == 1 && term.factors[0].get() == var.get()) return term.coefficient;
    }
    return 0;
  }

  static bool in_loop(const ThreadAccess& access, const Var* var) {
    for (const LoopRange& range : access.outer) {
      if (range.var.get() == var) return true;
    }
    return false;
  }

  std::vector<VarRef> free_variables() const {
    std::vector<VarRef> out(function_->dims.begin(), function_->dims.end());
    out.insert(out.end(), kernel_->vars.begin(), kernel_->vars.end());
    return out;
  }

  // Superfluous barriers.

  bool suffices(const Kernel& kernel, const Stmt& body) {
    const Ref<const Kernel> trial = with(kernel, body);
    begin(*trial, false);
    State state;
    run(body, state);
    return found_.empty();
  }

  /// Drops barriers, one after the other, that the remaining ones make superfluous.
  Stmt without_superfluous(const Kernel& kernel, Stmt body) {
    for (size_t n = 0;;) {
      bool dropped = false;
      size_t seen = 0;
      const Stmt trial = drop_barrier(body, n, &seen, &dropped);
      if (!dropped) return body;
      if (suffices(kernel, trial)) body = trial;
      else ++n;
    }
  }

  /// Without the n-th T.sync_threads.
  static Stmt drop_barrier(const Stmt& s, size_t n, size_t* seen, bool* dropped) {
    if (!s || *dropped) return s;
    const TileOp* op = as<TileOp>(s);
    if (op && op->op == TileOpcode::SyncThreads && (*seen)++ == n) {
      *dropped = true;
      return seq({}, s->span);
    }
    return map_parts(
        s, [](const Expr& e) { return e; }, [&](const Stmt& part) { return drop_barrier(part, n, seen, dropped); });
  }

  FunctionRef function_;
  const Kernel* kernel_ = nullptr;
  bool insert_ = false;
  ExactEngine engine_{kOperations};
  int questions_ = kQuestions;
  std::vector<LoopRange> outer_;
  Substitution names_;
  std::vector<Expr> conditions_;
  std::vector<UnorderedAccesses> found_;
  std::map<std::tuple<const StmtNode*, size_t, const StmtNode*, size_t, const Var*>, Verdict> answers_;
  std::vector<Stmt> keep_;  ///< whose addresses are keys
};

BarrierAnalysis::BarrierAnalysis(const FunctionRef& f) : impl_(std::make_unique<Impl>(f)) {}
BarrierAnalysis::~BarrierAnalysis() = default;

std::vector<UnorderedAccesses> BarrierAnalysis::unordered(const Kernel& kernel) { return impl_->unordered(kernel); }

Ref<const Kernel> BarrierAnalysis::with_barriers(const Ref<const Kernel>& kernel) {
  return impl_->with_barriers(kernel);
}

}  // namespace helve
