// Are the iterations of a loop independent?
// Two iterations conflict if one writes an element that the other reads or writes, in memory that both share. The
// second iteration is a copy of the first with every variable renamed that the loop binds.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "helve/analysis/iteration_scratch.h"
#include "helve/arith/simplify.h"
#include "helve/ir/expr/text.h"
#include "helve/ir/expr/visit.h"
#include "helve/ir/tensor/visit.h"
#include "helve/support/text.h"
#include "hulls.h"
#include "obligations.h"

namespace helve::proofs {

namespace {

/// A pair of accesses by two iterations; `first` belongs to the iteration whose variables keep their names.
struct Pair {
  const Access* first;
  const Access* second;
};

class LoopRace {
 public:
  LoopRace(const AccessModel& model, const IndependentLoop& loop, PathFacts& facts, Budget& budget)
      : model_(model),
        loop_(loop.path),
        first_(loop.first),
        last_(loop.last),
        step_(*loop_.back()),
        at_(loop_.size() - 1),
        facts_(facts),
        budget_(budget) {
    const StmtNode& stmt = *step_.stmt;
    is_kernel_ = stmt.kind == StmtKind::Kernel;
    is_persistent_ = stmt.kind == StmtKind::For && static_cast<const For&>(stmt).loop == LoopKind::Persistent;
    mesh_ = model.function->mesh.has_value();
    // Without a mesh the iterations of a Persistent loop are distributed over blocks, so two of them may belong to two
    // blocks.
    from_ = at_;
    for (size_t i = 0; i < at_ && is_persistent_ && !mesh_; ++i) {
      if (loop_[i]->stmt && loop_[i]->stmt->kind == StmtKind::Kernel) from_ = i;
    }
  }

  Proof run() {
    Proof proof;
    proof.kind = ProofKind::Race;
    proof.span = step_.span;
    proof.question = fmt::format("{} {} are independent", is_kernel_ ? (mesh_ ? "cores" : "blocks") : "iterations",
                                 join(step_.vars, ", ", [](const VarRef& v) { return v->name; }));
    proof.verdict = ProofVerdict::Proved;
    if (trivial()) return proof;
    for (const Pair& pair : conflicts()) {
      ask(pair, proof);
      if (proof.verdict == ProofVerdict::Refuted) break;
    }
    return proof;
  }

 private:
  // Pairs of accesses that may conflict.

  /// At most one iteration.
  bool trivial() const {
    int64_t count = 1;
    for (const Expr& extent : step_.extents) {
      const int64_t* v = int_value(extent);
      if (!v || (count > 0 && *v > 1)) return false;
      count = std::min(count, *v);
    }
    return true;
  }

  bool shared(const Buffer& buffer) const {
    const bool global = buffer.scope == MemoryScope::Param || buffer.scope == MemoryScope::Global;
    if (is_kernel_) return buffer.scope == MemoryScope::Param || (global && !mesh_);
    if (is_persistent_) return global;  // memory that the block allocates outside is private to an iteration
    auto home = model_.home.find(&buffer);
    if (home == model_.home.end()) return true;
    return home->second.size() <= at_ || home->second[at_] != loop_.back();
  }

  std::vector<const Access*> accesses() const {
    std::vector<const Access*> out;
    std::unordered_map<size_t, std::vector<const Access*>> of;  // repetitions are within one visit of a statement
    for (size_t i = first_; i < last_; ++i) {
      const Access& t = model_.accesses[i];
      if (!shared(*t.buffer)) continue;
      std::vector<const Access*>& known = of[t.visit];
      if (std::any_of(known.begin(), known.end(), [&](const Access* other) { return repeats(t, *other); })) continue;
      known.push_back(&t);
      out.push_back(&t);
    }
    return out;
  }

  static bool repeats(const Access& a, const Access& b) {
    if (a.buffer != b.buffer || a.write != b.write || a.visit != b.visit || a.path != b.path) return false;
    for (size_t d = 0; d < a.ranges.size(); ++d) {
      if (!same_expr(a.ranges[d].begin, b.ranges[d].begin) || !same_expr(a.ranges[d].extent, b.ranges[d].extent))
        return false;
    }
    return true;
  }

  /// In program order of the first access, then of the second; of equivalent pairs only the first.
  std::vector<Pair> conflicts() const {
    std::vector<Pair> out;
    const std::vector<const Access*> all = accesses();
    const std::vector<Alike> groups = alike(all);
    std::vector<const Access*> firsts;
    for (const Alike& group : groups) firsts.push_back(all[group.first]);
    std::vector<std::pair<size_t, size_t>> pairs = intersecting_hulls(firsts, facts_);
    if (!model_.function->may_alias.empty()) add_aliases(firsts, pairs);
    for (auto& [i, k] : pairs) std::tie(i, k) = std::pair(groups[i].first, groups[k].first);
    for (const Alike& group : groups) {
      if (group.second != group.first && all[group.first]->write) pairs.emplace_back(group.first, group.second);
    }
    std::sort(pairs.begin(), pairs.end());
    for (const auto& [i, k] : pairs) {
      const Access &a = *all[i], &b = *all[k];
      if (commute(a, b) || (!a.write && !b.write)) continue;
      if (in_blocks(a, b) && replica_axes(*a.placed).empty()) continue;  // of two cores, whose blocks are disjoint
      if (a.buffer != b.buffer || !forced_apart(a, b)) out.push_back({&a, &b});
    }
    return out;
  }

  /// Are both accesses to tiles of the cores' own blocks of one tensor?
  bool in_blocks(const Access& a, const Access& b) const {
    return is_kernel_ && a.placed && b.placed && a.buffer == b.buffer;
  }

  /// The axes of the mesh along which cores hold copies of one block, which are one memory if the tensor is one array.
  std::vector<size_t> replica_axes(const MeshTensor& tensor) const {
    std::vector<size_t> out;
    const MeshShape& mesh = *model_.function->mesh;
    for (size_t d = 0; d < mesh.extents.size(); ++d) {
      const bool cut = std::any_of(tensor.sharding.begin(), tensor.sharding.end(),
                                   [&](const auto& each) { return each.first == mesh.names[d]; });
      if (!cut && mesh.extents[d] > 1) out.push_back(d);
    }
    return out;
  }

  /// Accesses of two buffers that may share memory.
  void add_aliases(const std::vector<const Access*>& all, std::vector<std::pair<size_t, size_t>>& pairs) const {
    for (size_t i = 0; i < all.size(); ++i) {
      for (size_t k = i + 1; k < all.size(); ++k) {
        const Buffer *a = all[i]->buffer.get(), *b = all[k]->buffer.get();
        if (a != b && may_overlap(model_.function->may_alias, a, b)) pairs.emplace_back(i, k);
      }
    }
  }

  static bool commute(const Access& a, const Access& b) {
    return a.buffer == b.buffer && a.write && b.write && a.mode == b.mode && a.mode != StoreMode::Write;
  }

  /// Is it proved without isl that equal elements mean equal iterations? A subscript that both accesses share, and that
  /// varies with one variable of the loop only, forces that variable to be the same.
  bool forced_apart(const Access& a, const Access& b) const {
    if (a.tiles != b.tiles || a.placed != b.placed || from_ != at_) return false;
    std::vector<const Var*> forced;
    for (size_t d = 0; d < step_.vars.size(); ++d) {
      const int64_t* extent = int_value(step_.extents[d]);
      if (extent && *extent <= 1) forced.push_back(step_.vars[d].get());
    }
    for (size_t d = 0; d < a.ranges.size(); ++d) {
      const Range &x = a.ranges[d], &y = b.ranges[d];
      if (!x.point || !y.point || !same_expr(x.begin, y.begin)) continue;
      if (const Var* var = only_inner(x.begin, a.path)) forced.push_back(var);
    }
    return std::all_of(step_.vars.begin(), step_.vars.end(), [&](const VarRef& var) {
      return std::find(forced.begin(), forced.end(), var.get()) != forced.end();
    });
  }

  /// The only variable of this loop by which `e` differs between iterations, if it has a constant factor.
  const Var* only_inner(const Expr& e, const Path& path) const {
    if (changes(e, model_.constant)) return nullptr;
    const Var* found = nullptr;
    for (const Term& term : sum_of(e).terms) {
      for (size_t i = at_; i < path.size(); ++i) {
        for (const VarRef& var : path[i]->vars) {
          const bool inside = std::any_of(term.factors.begin(), term.factors.end(),
                                          [&](const Expr& factor) { return mentions(factor, var.get()); });
          if (!inside) continue;
          if (found || i != at_ || term.factors.size() != 1 || as<Var>(term.factors[0]) != var.get()) return nullptr;
          found = var.get();
        }
      }
    }
    return found;
  }

  // The proof.

  void ask(const Pair& pair, Proof& proof) {
    if (pair.first->buffer != pair.second->buffer) {
      return weaken(proof, ProofVerdict::Unknown,
                    fmt::format("'{}' and '{}' may share memory", pair.first->buffer->name, pair.second->buffer->name));
    }
    const bool is_private = pair.first->buffer->scope == MemoryScope::Local;
    const bool accumulates = is_private && may_accumulate(pair);
    if (is_private && !accumulates && !shows_order(pair)) return doubt_private(pair, proof);
    Query query(model_);
    Substitution renamed;
    for (size_t i = from_; i < pair.second->path.size(); ++i) {
      for (const VarRef& var : pair.second->path[i]->vars) {
        renamed[var.get()] = Expr(make_var(var->name, var->dtype, var->span));
      }
    }
    for (size_t i = 0; i < from_; ++i) query.add(*pair.first->path[i]);
    for (size_t i = from_; i < pair.first->path.size(); ++i) query.add(*pair.first->path[i]);
    for (size_t i = from_; i < pair.second->path.size(); ++i) query.add(*pair.second->path[i], renamed);
    for (size_t i = from_; i < at_; ++i) agree(query, *loop_[i], renamed);
    deal(query, *pair.first, {});
    deal(query, *pair.second, renamed);
    if (is_kernel_ && mesh_ && has_collective(static_cast<const Kernel&>(*step_.stmt).body)) {
      query.doubt("collectives may order the cores");
    }
    query.require(different(pair, renamed));
    const bool copies = in_blocks(*pair.first, *pair.second);
    if (copies) query.require(of_one_block(*pair.first->placed, renamed));
    if (is_persistent_ && !mesh_) query.require(on_other_blocks(renamed));
    std::vector<Expr> element;
    const Expr conflict = access_same_element(query, pair, renamed, element);
    const Finding found = query.excludes(conflict, budget_);
    if (is_private) {
      if (accumulates && found.verdict != ProofVerdict::Proved) warn_of_accumulation(pair, proof);
      if (found.verdict != ProofVerdict::Refuted || !shows_order(pair)) return doubt_private(pair, proof);
      if (pair.first->write && pair.second->write) return refute_scratch(pair, renamed, found.witness, proof);
      return refute(pair, renamed, element, found.witness, proof);
    }
    if (found.verdict == ProofVerdict::Proved || found.verdict == ProofVerdict::Unknown) {
      return weaken(proof, found.verdict, found.reason);
    }
    if (is_kernel_ && pair.first == pair.second && stores_constant(*pair.first->stmt)) {
      weaken(proof, ProofVerdict::Unknown,
             fmt::format("several store to '{}', each time the same constant", pair.first->buffer->name));
    } else if (copies) {
      weaken(proof, ProofVerdict::Unknown,
             fmt::format("copies of one block of '{}' are one memory where it is one array, and several cores use them",
                         pair.first->buffer->name));
    } else if (is_kernel_ && mesh_ && pair.first->write && pair.second->write) {
      // Cores with copies of the same block may store equal values, which is no race.
      weaken(proof, ProofVerdict::Unknown, "cores may store equal values there");
    } else if (found.verdict == ProofVerdict::Checked) {
      weaken(proof, ProofVerdict::Checked);
      const Span& span = later(pair).span;
      std::vector<Note> notes;
      if (step_.span != span) notes.push_back({step_.span, is_kernel_ ? "the kernel" : "the loop"});
      proof.conditions.push_back(
          call_condition(*model_.function, found.condition, proof.question, span, std::move(notes)));
    } else {
      refute(pair, renamed, element, found.witness, proof);
    }
  }

  /// The two cores differ only along axes on which the tensor is replicated.
  Expr of_one_block(const MeshTensor& tensor, const Substitution& renamed) const {
    const std::vector<size_t> axes = replica_axes(tensor);
    Expr out = bool_imm(true);
    for (size_t d = 0; d < step_.vars.size(); ++d) {
      if (std::find(axes.begin(), axes.end(), d) != axes.end()) continue;
      out = logical_and(out, apply(Op::Eq, {Expr(step_.vars[d]), renamed.at(step_.vars[d].get())}));
    }
    return out;
  }

  /// Each iteration has private memory of its own. The order of iterations is visible in the values that are read after
  /// the loop, and in an element that each iteration updates from its previous value.
  bool shows_order(const Pair& pair) const {
    const Buffer& buffer = *pair.first->buffer;
    if (pair.first->write && pair.second->write) {
      return read_after_loop(model_.function->body, *step_.stmt, buffer) == ReadFirst::Always;
    }
    const bool single = std::all_of(buffer.shape.begin(), buffer.shape.end(), [](const Expr& e) {
      const int64_t* extent = int_value(e);
      return extent && *extent == 1;
    });
    return single && step_.stmt->kind == StmtKind::For &&
           reads_before_writing(static_cast<const For&>(*step_.stmt).body, buffer) == ReadFirst::Always;
  }

  /// Do iterations combine an element that may come from before the loop with values of theirs, and is it read after
  /// the loop? Each then starts from that old value, and at most one of the results is kept.
  bool may_accumulate(const Pair& pair) const {
    const Buffer& buffer = *pair.first->buffer;
    return step_.stmt->kind == StmtKind::For && updated_by(*pair.first) && updated_by(*pair.second) &&
           reads_before_writing(static_cast<const For&>(*step_.stmt).body, buffer) != ReadFirst::Never &&
           read_after_loop(model_.function->body, *step_.stmt, buffer) != ReadFirst::Never;
  }

  void warn_of_accumulation(const Pair& pair, Proof& proof) const {
    const Access& store = *pair.first;
    if (std::any_of(proof.warnings.begin(), proof.warnings.end(),
                    [&](const Diagnostic& each) { return each.notes[0].span == store.buffer->span; }))
      return;
    const std::string vars = join(step_.vars, ", ", [](const VarRef& v) { return v->name; });
    proof.warnings.push_back(
        {Code::PrivateAccumulation,
         store.span,
         {{"buffer", store.buffer->name}, {"variables", vars}},
         {{store.buffer->span, fmt::format("'{}' is allocated here", store.buffer->name)}, {step_.span, "the loop"}},
         {}});
  }

  static void doubt_private(const Pair& pair, Proof& proof) {
    weaken(proof, ProofVerdict::Unknown,
           fmt::format("'{}' is private to a thread, which runs several iterations", pair.first->buffer->name));
  }

  static bool stores_constant(const StmtNode& stmt) {
    if (stmt.kind != StmtKind::Store) return false;
    const ExprKind kind = static_cast<const Store&>(stmt).value->kind;
    return kind == ExprKind::IntImm || kind == ExprKind::FloatImm;
  }

  /// Iterations of one block are sequential.
  Expr on_other_blocks(const Substitution& renamed) const {
    Expr out;
    for (const VarRef& var : loop_[from_]->vars) {
      const Expr other = apply(Op::Ne, {Expr(var), renamed.at(var.get())});
      out = out ? apply(Op::Or, {out, other}) : other;
    }
    return out;
  }

  /// Serial loops between kernel and Persistent loop: both iterations belong to one execution of the Persistent loop.
  static void agree(Query& query, const Step& step, const Substitution& renamed) {
    if (!step.stmt || step.stmt->kind == StmtKind::Kernel) return;
    for (const VarRef& var : step.vars) query.require(apply(Op::Eq, {Expr(var), renamed.at(var.get())}));
  }

  /// Iteration n of a Persistent loop belongs to block n modulo the number of blocks.
  void deal(Query& query, const Access& access, const Substitution& renamed) const {
    if (mesh_ || !(is_kernel_ || is_persistent_)) return;
    const Step* kernel = nullptr;
    for (const StepRef& step : access.path) {
      if (step->stmt && step->stmt->kind == StmtKind::Kernel) kernel = step.get();
      const bool persistent = step->stmt && step->stmt->kind == StmtKind::For &&
                              static_cast<const For&>(*step->stmt).loop == LoopKind::Persistent;
      if (!persistent || !kernel) continue;
      Expr count = int_imm(1), number = int_imm(0), iteration = int_imm(0);
      for (size_t d = 0; d < kernel->vars.size(); ++d) {
        count = count * kernel->extents[d];
        number = number * kernel->extents[d] + Expr(kernel->vars[d]);
      }
      for (size_t d = 0; d < step->vars.size(); ++d) {
        iteration = iteration * step->extents[d] + (Expr(step->vars[d]) - step->begins[d]);
      }
      query.require(
          substitute(apply(Op::Eq, {floor_mod(simplify(iteration), simplify(count)), simplify(number)}), renamed));
    }
  }

  /// The two iterations differ; in order, if the pair is symmetric.
  Expr different(const Pair& pair, const Substitution& renamed) const {
    Expr out;
    Expr before;  // earlier variables agree
    for (const VarRef& var : step_.vars) {
      const Expr one = Expr(var), two = renamed.at(var.get());
      Expr here = pair.first == pair.second ? less(one, two) : apply(Op::Ne, {one, two});
      if (before) here = logical_and(before, here);
      out = out ? apply(Op::Or, {out, here}) : here;
      const Expr same = apply(Op::Eq, {one, two});
      before = before ? logical_and(before, same) : same;
    }
    return out;
  }

  /// A box in coordinates that both accesses of a pair share, with the end of the accessed part (null if it is inside).
  struct Side {
    Expr begin;
    Expr extent;
    bool point;
    Expr end;
  };

  static Side side(const Access& t, size_t d, bool elements, bool absolute, const Substitution& renamed) {
    Side s{t.ranges[d].begin, t.ranges[d].extent, t.ranges[d].point, {}};
    if (t.tiles && elements) {
      const Expr tile = int_imm(t.buffer->tile[d]);
      s = {s.begin * tile, tile, false, t.buffer->shape[d]};
    }
    if (t.may_pass_end) s.end = t.limits[d];
    if (t.placed && absolute) {
      s.begin = s.begin + t.block_begin[d];
      s.end = min(t.limits[d] + t.block_begin[d], t.buffer->shape[d]);
    }
    auto now = [&](const Expr& e) { return e && !renamed.empty() ? substitute(e, renamed) : e; };
    return {now(s.begin), now(s.extent), s.point, now(s.end)};
  }

  /// The condition under which both accesses touch the same element, whose subscripts are returned in `element`.
  Expr access_same_element(Query& query, const Pair& pair, const Substitution& renamed,
                           std::vector<Expr>& element) const {
    const Access &a = *pair.first, &b = *pair.second;
    const bool elements = a.tiles != b.tiles, absolute = a.placed != b.placed;
    Expr all;
    auto need = [&](const Expr& condition) { all = all ? logical_and(all, condition) : condition; };
    for (size_t d = 0; d < a.ranges.size(); ++d) {
      const Side x = side(a, d, elements, absolute, {}), y = side(b, d, elements, absolute, renamed);
      Expr place = x.point ? x.begin : y.point ? y.begin : Expr();
      if (!place) {
        const VarRef var = make_var("e");
        query.add_variable(var);
        place = Expr(var);
      }
      for (const Side* s : {&x, &y}) {
        if (s->point) {
          if (s->begin != place) need(apply(Op::Eq, {s->begin, place}));
          // The subscript depends on no variable of the iterations, but on memory that they change.
          if (changes(s->begin, model_.constant)) query.doubt("a subscript reads memory that is written");
        } else {
          need(apply(Op::Le, {s->begin, place}));
          need(less(place, s->begin + s->extent));
        }
        if (s->end) need(less(place, s->end));
      }
      element.push_back(place);
    }
    return all ? all : bool_imm(true);
  }

  // The error of a refuted proof.

  std::string iteration_text(const Witness& witness, const Substitution& renamed) const {
    return join(step_.vars, ", ", [&](const VarRef& var) {
      auto it = renamed.find(var.get());
      const Var* named = it == renamed.end() ? var.get() : as<Var>(it->second);
      return fmt::format("{}={}", var->name, value_in(witness, named).value_or(0));
    });
  }

  std::string element_text(const Access& access, const std::vector<Expr>& element, const Witness& witness) const {
    return access.buffer->name + "[" +
           join(element, ", ",
                [&](const Expr& e) {
                  const std::optional<int64_t> value = evaluate(e, witness);
                  return value ? std::to_string(*value) : std::string("...");
                }) +
           "]";
  }

  /// The values outside of the loop on which the element depends.
  std::string outer_text(const Pair& pair, const Witness& witness) const {
    Witness outer;
    for (const auto& [var, value] : witness) {
      bool inner = false;
      for (const Access* t : {pair.first, pair.second}) {
        for (size_t i = from_; i < t->path.size(); ++i) {
          for (const VarRef& bound : t->path[i]->vars) inner |= bound == var;
        }
      }
      if (!inner) outer.emplace_back(var, value);
    }
    std::vector<Expr> exprs;
    for (const Access* t : {pair.first, pair.second}) {
      for (const Range& r : t->ranges) exprs.insert(exprs.end(), {r.begin, r.extent});
    }
    return mentioned_text(outer, exprs);
  }

  void refute(const Pair& pair, const Substitution& renamed, const std::vector<Expr>& element, const Witness& witness,
              Proof& proof) const {
    const Access &a = *pair.first, &b = *pair.second;
    const std::string noun = !is_kernel_ ? "iteration" : mesh_ ? "core" : "block";
    const std::string one = iteration_text(witness, {}), two = iteration_text(witness, renamed);
    const std::string place = element_text(a, element, witness);
    std::string text;
    if (a.write && b.write) {
      text = fmt::format("{}s {} and {} both write {}", noun, one, two, place);
    } else {
      text =
          fmt::format("{} {} writes {}, {} {} reads it", noun, a.write ? one : two, place, noun, a.write ? two : one);
    }
    const std::string outer = outer_text(pair, witness);
    if (!outer.empty()) text += fmt::format(", when {}", outer);
    weaken(proof, ProofVerdict::Refuted);
    proof.witness = text;
    const Access& last = later(pair);
    const Access& other = &last == &a ? b : a;
    std::vector<Note> notes = {{a.stmt == b.stmt ? Span{} : other.span, text}};
    if (step_.span != last.span) notes.push_back({step_.span, is_kernel_ ? "the kernel" : "the loop"});
    proof.fault = Diagnostic{Code::RacingLoop,
                             last.span,
                             {{"who", who()},
                              {"conflict", a.write && b.write ? "write" : "read and write"},
                              {"buffer", a.buffer->name},
                              {"remedy", remedy(pair)}},
                             std::move(notes),
                             {}};
  }

  void refute_scratch(const Pair& pair, const Substitution& renamed, const Witness& witness, Proof& proof) const {
    const Access& last = later(pair);
    std::vector<std::string> fixes;
    if (may_accumulate(pair)) fixes.emplace_back(diagnostic_row(Code::PrivateAccumulation).help);
    weaken(proof, ProofVerdict::Refuted);
    proof.witness = fmt::format("iterations {} and {} both leave a value", iteration_text(witness, {}),
                                iteration_text(witness, renamed));
    const std::string vars = join(step_.vars, ", ", [](const VarRef& v) { return v->name; });
    proof.fault = Diagnostic{Code::LoopScratch,
                             last.span,
                             {{"buffer", last.buffer->name}, {"variables", vars}},
                             {{last.buffer->span, fmt::format("'{}' is allocated here", last.buffer->name)},
                              {step_.span, "the loop"},
                              {{}, proof.witness}},
                             std::move(fixes)};
  }

  static bool same_element(const Access& a, const Access& b) {
    return std::equal(a.ranges.begin(), a.ranges.end(), b.ranges.begin(), b.ranges.end(),
                      [](const Range& x, const Range& y) { return same_expr(x.begin, y.begin); });
  }

  /// The later access in program order; the store, if both are in one statement.
  static const Access& later(const Pair& pair) {
    return pair.first->visit == pair.second->visit && pair.first->write ? *pair.first : *pair.second;
  }

  std::string who() const {
    if (is_kernel_) return mesh_ ? "cores of this kernel" : "blocks of this kernel";
    return is_persistent_ ? "iterations of this T.Persistent loop" : "iterations of this parallel loop";
  }

  std::string remedy(const Pair& pair) const {
    const Access &a = *pair.first, &b = *pair.second;
    const std::string& buffer = a.buffer->name;
    const bool both_write = a.write && b.write;
    const Store* update = a.stmt == b.stmt && same_element(a, b) ? updated_by(a.write ? a : b) : nullptr;
    const std::string atomic = update ? atomic_text(*update) : "";
    if (is_kernel_) {
      return fmt::format("give each {} elements of its own, {}or split the work into two kernels",
                         mesh_ ? "core" : "block", atomic.empty() || mesh_ ? "" : "write " + atomic + ", ");
    }
    if (a.mode != StoreMode::Write || b.mode != StoreMode::Write) {
      return fmt::format("split the loop in two, so that {}, or make the loop {}",
                         !both_write ? fmt::format("'{}' is not read in the loop that updates it", buffer)
                                     : "each updates or stores in one way only",
                         serial());
    }
    if (update) {
      return fmt::format("reduce outside the loop, by T.reduce_sum (or max, min, ...) into '{}', {}or make the loop {}",
                         buffer, atomic.empty() ? "" : "write " + atomic + ", ", serial());
    }
    if (!both_write) return fmt::format("read from a copy of '{}', or make the loop {}", buffer, serial());
    const std::string vars = join(step_.vars, ", ", [](const VarRef& v) { return v->name; });
    return fmt::format("index '{}' with every loop variable ({}), or make the loop {}", buffer, vars, serial());
  }

  static bool loads_element_of(const Expr& e, const Store& store) {
    const Load* load = as<Load>(e);
    return load && &buffer_of(load->buffer) == store.buffer.get() &&
           std::equal(load->indices.begin(), load->indices.end(), store.indices.begin(), store.indices.end(),
                      [](const Expr& x, const Expr& y) { return same_expr(x, y); });
  }

  /// The store, if it computes the element's new value from the old one, as a reduction does.
  static const Store* updated_by(const Access& access) {
    if (!access.write || access.stmt->kind != StmtKind::Store) return nullptr;
    const auto& store = static_cast<const Store&>(*access.stmt);
    bool found = false;
    walk(store.value, [&](const Expr& e) { found |= loads_element_of(e, store); });
    return found && !store.is_atomic() ? &store : nullptr;
  }

  /// Does `op`, or a difference for sums, combine the old value with others?
  static bool combines_old(const Expr& value, Op op, const Store& update) {
    if (loads_element_of(value, update)) return true;
    const Apply* apply = as<Apply>(value);
    if (!apply) return false;
    if (apply->op == Op::Sub && op == Op::Add) return combines_old(apply->args[0], op, update);
    return apply->op == op && (combines_old(apply->args[0], op, update) || combines_old(apply->args[1], op, update));
  }

  /// The equivalent atomic operation, "T.atomic_add(S[0], ...)"; empty if there is none.
  static std::string atomic_text(const Store& update) {
    int64_t loads = 0;
    walk(update.value, [&](const Expr& e) {
      const Load* load = as<Load>(e);
      loads += load && &buffer_of(load->buffer) == update.buffer.get();
    });
    if (loads != 1 || !admits_atomics(*update.buffer)) return {};
    for (const StoreMode mode : {StoreMode::AtomicAdd, StoreMode::AtomicMax, StoreMode::AtomicMin}) {
      if (!combines_old(update.value, combining_operator(mode), update)) continue;
      return fmt::format("T.{}({}[{}], ...)", to_string(mode), update.buffer->name,
                         join(update.indices, ", ", [](const Expr& e) { return to_text(e); }));
    }
    return {};
  }

  const char* serial() const {
    return step_.stmt->kind == StmtKind::ForTiles ? "T.foreach_tiles(..., parallel=False)" : "T.serial";
  }

  const AccessModel& model_;
  const Path& loop_;
  size_t first_, last_;  ///< the accesses inside the loop
  const Step& step_;
  size_t at_;  ///< position of the loop on its path
  size_t from_;  ///< from here on the two iterations have different variables
  PathFacts& facts_;
  Budget& budget_;
  bool is_kernel_ = false;
  bool is_persistent_ = false;
  bool mesh_ = false;
};

}  // namespace

std::vector<Proof> prove_races(const AccessModel& model, PathFacts& facts, Budget& budget) {
  std::vector<Proof> out;
  for (const IndependentLoop& loop : model.loops) out.push_back(LoopRace(model, loop, facts, budget).run());
  return out;
}

}  // namespace helve::proofs
