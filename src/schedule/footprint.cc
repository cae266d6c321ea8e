// Boxes around the accesses of a statement.
// isl finds the least and the greatest subscript of each dimension, as expressions over the loops around it.
#include "footprint.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "helve/analysis/path_conditions.h"
#include "helve/analysis/region_order.h"
#include "helve/arith/relation_algebra.h"
#include "helve/arith/set_bounds.h"
#include "helve/arith/simplify.h"
#include "helve/ir/expr/chain.h"
#include "helve/ir/expr/visit.h"
#include "helve/ir/tensor/visit.h"
#include "legality/flow.h"
#include "loop_form.h"

namespace helve {

namespace {

/// Is the condition false wherever the region is reached?
bool never_around(const AccessModel& model, const Expr& condition) {
  PathConditions query = conditions_around(model);
  for (const VarRef& dim : model.function->dims) query.require(apply(Op::Le, {int_imm(0), Expr(dim)}));
  query.require(condition);
  const IntegerSet where(ExactEngine(), {}, conjunction(query.conditions()), {}, query.translation());
  return where.emptiness().verdict == Verdict::Proved;
}

class Bounds {
 public:
  Bounds(const AccessModel& model, const Buffer& buffer, const std::vector<Stmt>& within) : model_(model) {
    std::unordered_set<const StmtNode*> named;
    for (const Stmt& s : within) walk(s, [&](const Stmt& each) { named.insert(each.get()); });
    for (const Access& access : model.accesses) {
      if (access.buffer.get() == &buffer && (within.empty() || named.contains(access.stmt))) {
        accesses_.push_back(&access);
      }
    }
  }

  FootprintResult run(const Buffer& buffer) {
    if (accesses_.empty()) return {{}, fmt::format("the statement does not use '{}'", buffer.name)};
    Footprint out;
    for (const Access* access : accesses_) {
      const bool points = std::all_of(access->ranges.begin(), access->ranges.end(), [](auto& r) { return r.point; });
      if (!points || access->tiles || access->placed) {
        return {{}, fmt::format("'{}' is not the access of one element", text_of(*access))};
      }
      out.reads |= !access->write;
    }
    for (size_t d = 0; d < buffer.rank(); ++d) {
      const VarRef x = make_var(fmt::format("x{}", d));
      const IntegerSet all = elements(d, x);
      if (all.emptiness().verdict == Verdict::Proved) {
        return {{}, fmt::format("no element of '{}' is ever used there", buffer.name)};
      }
      if (!all.inexact().empty()) return {{}, all.inexact()};
      const std::optional<Expr> least = least_value(all, x, kBoxBoundLimit),
                                greatest = greatest_value(all, x, kBoxBoundLimit);
      if (!least || !greatest) {
        return {{}, fmt::format("the bounds of dimension {} of '{}' are no short expressions", d, buffer.name)};
      }
      out.begin.push_back(simplify(*least));
      const Expr extent = simplify(*greatest - *least + int_imm(1));
      out.extent.push_back(never(less(extent, int_imm(0))) ? extent : max(extent, int_imm(0)));
      out.most.push_back(most(out.extent.back()));
      if (!inside(out.begin.back(), out.extent.back(), buffer.shape[d])) {
        return {{}, fmt::format("a copy of dimension {} might reach past the end of '{}'", d, buffer.name)};
      }
    }
    return {out, {}};
  }

  /// Does a read see what stood there before, or does an element of the box keep it?
  bool needs_old(const Buffer& buffer, const Footprint& box) const {
    const std::vector<RegionStatement> statements = region_statements(model_);
    legality::Sources sources;
    size_t rank = buffer.rank(), vars = 0;
    for (const RegionStatement& s : statements) vars = std::max(vars, s.vars.size());
    sources.buffers = {&buffer};
    sources.arity = 1 + std::max(rank, vars);
    std::vector<legality::Writer> writers;
    for (size_t s = 0; s < statements.size(); ++s) {
      writers.push_back({s, {statements[s].vars.begin(), statements[s].vars.end()}});
    }
    legality::Flow flow(engine_, model_, statements, writers, sources);
    std::vector<VarRef> source;
    for (size_t n = 0; n < sources.arity; ++n) source.push_back(make_var("s"));
    const IntegerSet old(engine_, source, less(Expr(source[0]), int_imm(0)));
    for (size_t s = 0; s < statements.size(); ++s) {
      for (size_t a = statements[s].first; a < statements[s].last; ++a) {
        const Access& access = model_.accesses[a];
        if (access.write || access.buffer.get() != &buffer) continue;
        const IntegerSet seen = intersection_of(range_of(flow.seen(s, access)), old);
        if (seen.emptiness().verdict != Verdict::Proved) return true;
      }
    }
    std::vector<VarRef> element;
    std::vector<Expr> in_box = around().conditions();
    for (size_t d = 0; d < rank; ++d) {
      element.push_back(make_var("x"));
      in_box.push_back(apply(Op::Le, {box.begin[d], Expr(element[d])}));
      in_box.push_back(less(Expr(element[d]), box.begin[d] + box.extent[d]));
    }
    const IntegerSet all(engine_, element, conjunction(in_box));
    const Answer written = all.is_subset_of(flow.left(buffer, element).written);
    return written.verdict != Verdict::Proved || !flow.doubt().empty();
  }

 private:
  PathConditions around() const { return conditions_around(model_); }

  /// { the tuple : some access has the subscripts }: variables inside the statement are any of theirs.
  IntegerSet touched(const Access& access, const std::vector<VarRef>& tuple, const Expr& condition) const {
    PathConditions query = around();
    const size_t outside = query.vars().size();
    add_inside(query, model_, access.path);
    query.require(condition);
    const std::vector<VarRef> locals(query.vars().begin() + static_cast<int64_t>(outside), query.vars().end());
    const Translation translation = query.translation();
    return IntegerSet(engine_, tuple, conjunction(query.conditions()), locals, translation);
  }

  IntegerSet elements(size_t d, const VarRef& x) const {
    std::optional<IntegerSet> all;
    for (const Access* access : accesses_) {
      const auto same = [&](const Access* other) {
        return other->path == access->path && same_expr(other->ranges[d].begin, access->ranges[d].begin);
      };
      if (*std::find_if(accesses_.begin(), accesses_.end(), same) != access) continue;  // those of one before
      const IntegerSet one = touched(*access, {x}, apply(Op::Eq, {Expr(x), access->ranges[d].begin}));
      all = all ? union_of(*all, one) : one;
    }
    return *all;
  }

  std::optional<int64_t> most(const Expr& extent) const {
    if (const int64_t* value = int_value(extent)) return *value;
    PathConditions query = around();
    const VarRef e = make_var("e");
    query.require(apply(Op::Eq, {Expr(e), extent}));
    std::vector<VarRef> locals = query.vars();
    locals.insert(locals.end(), model_.function->dims.begin(), model_.function->dims.end());
    const IntegerSet all(engine_, {e}, conjunction(query.conditions()), locals, query.translation());
    const std::optional<Expr> value = greatest_value(all, e, 0);
    const int64_t* number = value ? int_value(*value) : nullptr;
    return number ? std::optional(*number) : std::nullopt;
  }

  /// Is the box inside the buffer, also where no access runs?
  bool inside(const Expr& begin, const Expr& extent, const Expr& shape) const {
    const Expr past = chain(Op::Or, {less(begin, int_imm(0)), less(shape, begin + extent)});
    return never(logical_and(less(int_imm(0), extent), past));
  }

  bool never(const Expr& condition) const { return never_around(model_, condition); }

  const AccessModel& model_;
  std::vector<const Access*> accesses_;
  ExactEngine engine_;
};

}  // namespace

void add_inside(PathConditions& query, const AccessModel& model, const Path& path) {
  for (size_t i = model.around.size(); i < path.size(); ++i) {
    if (says_something(*path[i])) query.add(*path[i]);
  }
}

bool never_at(const FunctionRef& f, const Cursor& at, const Expr& condition) {
  return never_around(access_model(*f, statement_at(*f, at)), condition);
}

FootprintResult footprint(const FunctionRef& f, const Cursor& at, const Buffer& buffer,
                          const std::vector<Stmt>& within) {
  const AccessModel model = access_model(*f, statement_at(*f, at));
  return Bounds(model, buffer, within).run(buffer);
}

bool needs_old(const FunctionRef& f, const Cursor& at, const Buffer& buffer, const Footprint& box) {
  const AccessModel model = access_model(*f, statement_at(*f, at));
  return Bounds(model, buffer, {}).needs_old(buffer, box);
}

}  // namespace helve
