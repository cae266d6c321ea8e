// Bounds of a nest's loops by isl.
// Instances of the nest that an iteration of the loop needs are a set; the first and the last of them, given the loops
// around, are the bounds. Conditions that are not affine are left out: they stay in the nest.
#include "narrow.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "helve/analysis/path_conditions.h"
#include "helve/arith/lexicographic.h"
#include "helve/arith/relation_algebra.h"
#include "helve/arith/set_bounds.h"
#include "helve/arith/simplify.h"
#include "helve/ir/expr/chain.h"
#include "helve/ir/tensor/visit.h"
#include "loop_form.h"

namespace helve {

namespace {

/// The largest expression of a bound.
constexpr int kBoundLimit = 24;

bool contains(const std::vector<VarRef>& all, const VarRef& var) {
  return std::find(all.begin(), all.end(), var) != all.end();
}

/// The visits of a statement and of all below it.
struct Visits {
  size_t first, end;
  bool hold(size_t visit) const { return first <= visit && visit < end; }
};

class Narrowing {
 public:
  Narrowing(const FunctionRef& f, const Cursor& nest, const Cursor& loop, NestRole role)
      : model_(access_model(*f, body_around(*f, nest))), role_(role), old_(statement_at(*f, nest)) {
    nest_ = visits_of(*old_);
    loop_ = visits_of(*statement_at(*f, loop));
    loop_step_ = model_.loop_at.at(loop_.first);
  }

  Narrowed run() {
    for (const Access& inside : model_.accesses) {
      if (nest_.hold(inside.visit) && inside.write == (role_ == NestRole::Producer)) add_needs_of(inside);
      if (!out_.reason.empty()) return out_;
    }
    if (needs_.empty()) return out_;
    for (auto& [visit, need] : needs_) finish(need);
    const Stmt nest = rebuilt(old_, {});
    if (out_.reason.empty()) out_.nest = nest;
    return out_;
  }

 private:
  /// Which instances of a statement are needed: a set over the variables of the loop, and of those around it, and then
  /// those of the loops around the statement in the nest.
  struct Need {
    std::vector<VarRef> vars;
    std::optional<IntegerSet> set;
  };

  Visits visits_of(const StmtNode& s) const {
    const auto at =
        std::find_if(model_.visits.begin(), model_.visits.end(), [&](const Visit& visit) { return visit.stmt == &s; });
    HELVE_CHECK(at != model_.visits.end(), "a statement outside of its block");
    return {static_cast<size_t>(at - model_.visits.begin()), at->end};
  }

  /// The variables of the loop and of those around it; `loops` is a path through the loop.
  std::vector<VarRef> outer_vars(const Path& loops) const {
    std::vector<VarRef> out;
    for (size_t i = model_.around.size(); i < loops.size(); ++i) {
      if (!loops[i]->begins.empty()) out.insert(out.end(), loops[i]->vars.begin(), loops[i]->vars.end());
      if (loops[i] == loop_step_) break;
    }
    return out;
  }
  std::vector<VarRef> nest_vars(const Path& path) const {
    std::vector<VarRef> out;
    for (size_t i = model_.around.size(); i < path.size(); ++i) {
      if (!path[i]->begins.empty()) out.insert(out.end(), path[i]->vars.begin(), path[i]->vars.end());
    }
    return out;
  }

  void add_needs_of(const Access& inside) {
    for (const Access& other : model_.accesses) {
      const bool below_loop = loop_.hold(other.visit) && other.visit != loop_.first;
      if (other.buffer != inside.buffer || !below_loop || other.write == inside.write) continue;
      if (inside.tiles || inside.placed || other.tiles || other.placed) {
        out_.reason = fmt::format("'{}' is an access of whole tiles", text_of(inside.tiles ? inside : other));
        return;
      }
      if (std::find(out_.through.begin(), out_.through.end(), inside.buffer) == out_.through.end()) {
        out_.through.push_back(inside.buffer);
      }
      Need& need = needs_[inside.visit];
      outer_ = outer_vars(other.path);
      need.vars = outer_;
      const std::vector<VarRef> own = nest_vars(inside.path);
      need.vars.insert(need.vars.end(), own.begin(), own.end());
      const IntegerSet one = meeting(inside, other, need.vars);
      if (!one.inexact().empty()) {
        out_.reason = one.inexact();
        return;
      }
      need.set = need.set ? union_of(*need.set, one) : one;
    }
  }

  /// { variables : the two access one element }.
  IntegerSet meeting(const Access& inside, const Access& other, const std::vector<VarRef>& tuple) const {
    PathConditions query = around();
    const size_t outside = query.vars().size();
    for (const Access* access : {&inside, &other}) {
      for (size_t i = model_.around.size(); i < access->path.size(); ++i) {
        if (says_something(*access->path[i])) query.add(*access->path[i]);
      }
    }
    std::vector<VarRef> locals;
    for (size_t i = outside; i < query.vars().size(); ++i) {
      if (!contains(tuple, query.vars()[i])) locals.push_back(query.vars()[i]);
    }
    const Translation translation = query.translation();
    std::vector<Expr> conditions;
    for (const Expr& condition : query.conditions()) {
      if (inexact_parts(condition, translation).empty()) conditions.push_back(condition);
    }
    for (size_t d = 0; d < inside.ranges.size(); ++d) {
      const Range &a = inside.ranges[d], &b = other.ranges[d];
      const auto end = [](const Range& r) { return r.begin + (r.point ? int_imm(1) : r.extent); };
      if (a.point && b.point) {
        conditions.push_back(apply(Op::Eq, {a.begin, b.begin}));
      } else {
        conditions.push_back(less(a.begin, end(b)));
        conditions.push_back(less(b.begin, end(a)));
      }
    }
    return IntegerSet(engine_, tuple, conjunction(conditions), locals, translation);
  }

  PathConditions around() const {
    PathConditions query(model_);
    for (const VarRef& dim : model_.function->dims) query.require(apply(Op::Le, {int_imm(0), Expr(dim)}));
    for (const StepRef& step : model_.around) {
      if (says_something(*step)) query.add(*step);
    }
    return query;
  }

  /// A consumer's instance is needed in the last iteration that writes what it reads.
  void finish(Need& need) const {
    if (role_ == NestRole::Producer) return;
    const IntegerRelation writers = inverse_of(relation_of(*need.set, outer_.size()));
    need.set = renamed(pairs_of(inverse_of(greatest_images(writers))), need.vars);
  }

  /// `s` with narrow loops; `around` has the variables and the new ranges of the nest's loops around it.
  struct Around {
    std::vector<VarRef> vars = {};
    std::vector<Expr> ranges = {};
  };
  Stmt rebuilt(const Stmt& s, Around around) {
    const For* loop = as<For>(s);
    std::vector<Expr> begins, extents;
    if (loop) {
      const bool narrow = new_ranges(*loop, around, begins, extents);
      if (!narrow) {
        begins = loop->begins;
        extents = loop->extents;
      }
      for (size_t d = 0; d < begins.size(); ++d) {
        const Expr var(loop->vars[d]);
        around.ranges.push_back(apply(Op::Le, {begins[d], var}));
        around.ranges.push_back(less(var, begins[d] + extents[d]));
      }
      around.vars.insert(around.vars.end(), loop->vars.begin(), loop->vars.end());
      const Stmt body = rebuilt(loop->body, around);
      if (narrow) return with_header(*loop, loop->loop, loop->vars, begins, extents, body);
      return map_parts(s, [](const Expr& e) { return e; }, [&](const Stmt&) { return body; });
    }
    return map_parts(s, [](const Expr& e) { return e; }, [&](const Stmt& part) { return rebuilt(part, around); });
  }

  /// False if the loop keeps its ranges.
  bool new_ranges(const For& loop, const Around& around, std::vector<Expr>& begins, std::vector<Expr>& extents) {
    const Visits below = visits_of(loop);
    if (loop.loop == LoopKind::Thread || !out_.reason.empty()) return false;
    bool narrow = false;
    for (size_t d = 0; d < loop.vars.size(); ++d) {
      const std::optional<IntegerSet> all = needed(below, loop.vars[d], around.vars);
      if (!all) return false;
      narrow |= add_range(loop, d, *all, around, begins, extents);
    }
    return narrow;
  }

  /// The variable's values that an iteration of the loop needs, given the variables `around` of the nest; nothing if no
  /// statement that is needed stands below.
  std::optional<IntegerSet> needed(const Visits& below, const VarRef& var, const std::vector<VarRef>& around) const {
    std::vector<VarRef> kept = outer_;
    kept.insert(kept.end(), around.begin(), around.end());
    kept.push_back(var);
    std::optional<IntegerSet> all;
    for (const auto& [visit, need] : needs_) {
      if (!below.hold(visit) || !contains(need.vars, var)) continue;
      const IntegerSet one = need.set->projected(kept);
      all = all ? union_of(*all, one) : one;
    }
    return all;
  }

  /// The first and the last value.
  struct Ends {
    Expr least, greatest;
  };
  static std::optional<Ends> ends_of(const IntegerSet& all, const VarRef& var) {
    const std::optional<Expr> least = least_value(all, var, kBoundLimit),
                              greatest = greatest_value(all, var, kBoundLimit);
    return least && greatest ? std::optional(Ends{simplify(*least), simplify(*greatest)}) : std::nullopt;
  }
  static bool has_cases(const Ends& ends) {
    bool found = false;
    for (const Expr& end : {ends.least, ends.greatest}) {
      walk(end, [&](const Expr& e) { found |= as_op(e, Op::Select) != nullptr; });
    }
    return found;
  }

  /// Those of a producer's loop are of a box where they differ from case to case: a stencil that reads a cross gets the
  /// square around it.
  std::optional<Ends> ends(const For& loop, size_t d, const IntegerSet& all, const Around& around) const {
    const std::optional<Ends> exact = ends_of(all, loop.vars[d]);
    if (role_ == NestRole::Consumer || around.vars.empty() || (exact && !has_cases(*exact))) return exact;
    const std::optional<Ends> box = ends_of(*needed(visits_of(loop), loop.vars[d], {}), loop.vars[d]);
    return box && (!exact || !has_cases(*box)) ? box : exact;
  }

  /// Adds the range of one variable; false if it is the old one.
  bool add_range(const For& loop, size_t d, const IntegerSet& all, const Around& around, std::vector<Expr>& begins,
                 std::vector<Expr>& extents) {
    const Expr old_begin = loop.begins[d], old_end = old_begin + loop.extents[d];
    begins.push_back(old_begin);
    extents.push_back(loop.extents[d]);
    if (all.emptiness().verdict == Verdict::Proved) {
      extents.back() = int_imm(0);
      return true;
    }
    const std::optional<Ends> found = ends(loop, d, all, around);
    if (!found) {
      out_.reason = all.inexact().empty()
                        ? fmt::format("the bounds of '{}' there are no short expressions", loop.vars[d]->name)
                        : all.inexact();
      return false;
    }
    // Where nothing is needed the bounds have any value, so that they must be kept inside of the old ones.
    Expr begin = found->least, end = simplify(found->greatest + int_imm(1));
    const Expr some = less(begin, end);
    if (!never(logical_and(some, less(begin, old_begin)), around)) begin = simplify(max(begin, old_begin));
    if (!never(logical_and(some, less(old_end, end)), around)) end = simplify(min(end, old_end));
    const Expr extent = simplify(end - begin);
    if (never(apply(Op::Or, {less(old_begin, begin), less(end, old_end)}), around)) return false;
    begins.back() = begin;
    extents.back() = never(less(extent, int_imm(0)), around) ? extent : max(extent, int_imm(0));
    return true;
  }

  /// Is the condition false wherever the nest's loops are reached in the body of the loop?
  bool never(const Expr& condition, const Around& around) const {
    PathConditions query = this->around();
    for (const StepRef& step : model_.visits[loop_.first].path) {
      if (says_something(*step)) query.add(*step);
    }
    query.add(*loop_step_);
    for (const Expr& range : around.ranges) query.require(range);
    query.require(condition);
    const IntegerSet where(engine_, {}, conjunction(query.conditions()), {}, query.translation());
    return where.emptiness().verdict == Verdict::Proved;
  }

  const AccessModel model_;
  const NestRole role_;
  const Stmt old_;
  Visits nest_, loop_;
  StepRef loop_step_;
  std::vector<VarRef> outer_;
  std::map<size_t, Need> needs_;  ///< by visit
  ExactEngine engine_;
  Narrowed out_;
};

}  // namespace

Narrowed narrowed(const FunctionRef& f, const Cursor& nest, const Cursor& loop, NestRole role) {
  return Narrowing(f, nest, loop, role).run();
}

}  // namespace helve
