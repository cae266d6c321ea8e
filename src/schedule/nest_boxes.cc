// Boxes around the elements of a nest of loops.
// isl finds the least and the greatest value of each variable, under the branches of the nest: the guard of a divided
// loop becomes a shorter box.
#include "nest_boxes.h"

#include <fmt/format.h>

#include <algorithm>

#include "footprint.h"
#include "helve/analysis/region_order.h"
#include "helve/analysis/region_statements.h"
#include "helve/arith/set_bounds.h"
#include "helve/arith/simplify.h"
#include "helve/ir/expr/build.h"
#include "helve/ir/expr/chain.h"
#include "helve/ir/expr/text.h"
#include "helve/schedule/find.h"
#include "loop_form.h"

namespace helve {

namespace {

/// Values of the variables of a store, as a set.
class Values {
 public:
  Values(const FunctionRef& f, const Stmt& nest, const Store& store)
      : model_(access_model(*f, nest)), around_(conditions_around(model_)), inside_(around_) {
    for (const RegionStatement& s : region_statements(model_)) {
      if (s.stmt == &store) add_inside(inside_, model_, s.path);
    }
    const size_t outside = around_.vars().size();
    locals_.assign(inside_.vars().begin() + static_cast<std::ptrdiff_t>(outside), inside_.vars().end());
  }

  std::optional<VarValues> of(const VarRef& var, const std::vector<VarRef>& nest) const {
    std::optional<VarValues> out = written(var, nest);
    if (!out) {
      const std::optional<Expr> least = bound(Expr(var), true), end = bound(Expr(var) + int_imm(1), false);
      if (!least || !end) return std::nullopt;
      out = VarValues{*least, *end};
    }
    const Expr begin = simplify(out->begin, around_.facts()), extent = simplify(out->extent - begin, around_.facts());
    return VarValues{begin, never(less(extent, int_imm(0))) ? extent : max(extent, int_imm(0))};
  }

  /// The largest value that an extent of a loop, with no variable of the nest in it, has in any call.
  std::optional<int64_t> most(const Expr& extent, const std::vector<VarRef>& nest) const {
    if (const int64_t* value = int_value(extent)) return *value;
    for (const VarRef& var : nest) {
      if (mentions(extent, var.get())) return std::nullopt;
    }
    const VarRef x = make_var("x");
    std::vector<Expr> conditions = around_.conditions();
    conditions.push_back(apply(Op::Eq, {Expr(x), extent}));
    std::vector<VarRef> locals = around_.vars();
    locals.insert(locals.end(), model_.function->dims.begin(), model_.function->dims.end());
    const IntegerSet all(engine_, {x}, conjunction(conditions), locals, around_.translation());
    const std::optional<Expr> value = greatest_value(all, x, 0);
    const int64_t* number = value ? int_value(*value) : nullptr;
    return number ? std::optional(*number) : std::nullopt;
  }

 private:
  /// The bounds as conditions of the nest say them, as begin and end: each is `var < e` or `e < var`, in which no other
  /// variable of the nest stands. Nothing if one is not.
  std::optional<VarValues> written(const VarRef& var, const std::vector<VarRef>& nest) const {
    std::optional<VarValues> out{VarValues{}};
    const auto fixed = [&](const Expr& e) {
      return std::none_of(nest.begin(), nest.end(), [&](const VarRef& v) { return mentions(e, v.get()); });
    };
    for (const Expr& condition : inside_.conditions()) {
      for (const Expr& each : operands_of_chain(condition, Op::And)) {
        if (!mentions(each, var.get())) continue;
        const Apply* relation = as<Apply>(each);
        const bool strict = relation && (relation->op == Op::Lt || relation->op == Op::Gt);
        if (!strict && !(relation && (relation->op == Op::Le || relation->op == Op::Ge))) return std::nullopt;
        const bool turned = relation->op == Op::Gt || relation->op == Op::Ge;
        const Expr &low = relation->args[turned ? 1 : 0], &high = relation->args[turned ? 0 : 1];
        if (!low->dtype.is_index() || !high->dtype.is_index()) return std::nullopt;
        const Expr end = simplify(high - low + Expr(var) + int_imm(strict ? 0 : 1)),
                   begin = simplify(low - high + Expr(var) + int_imm(strict ? 1 : 0));
        if (fixed(end)) {
          out->extent = out->extent ? min(out->extent, end) : end;
        } else if (fixed(begin)) {
          out->begin = out->begin ? max(out->begin, begin) : begin;
        } else {
          return std::nullopt;
        }
      }
    }
    if (!out->begin || !out->extent) return std::nullopt;
    return out;
  }

  std::optional<Expr> bound(const Expr& value, bool least) const {
    const VarRef x = make_var("x");
    std::vector<Expr> conditions = inside_.conditions();
    conditions.push_back(apply(Op::Eq, {Expr(x), value}));
    const IntegerSet all(engine_, {x}, conjunction(conditions), locals_, inside_.translation());
    return least ? least_value(all, x, kBoxBoundLimit) : greatest_value(all, x, kBoxBoundLimit);
  }

  bool never(const Expr& condition) const {
    std::vector<Expr> conditions = around_.conditions();
    conditions.push_back(condition);
    const IntegerSet where(engine_, {}, conjunction(conditions), {}, around_.translation());
    return where.emptiness().verdict == Verdict::Proved;
  }

  ExactEngine engine_;
  const AccessModel model_;
  PathConditions around_, inside_;
  std::vector<VarRef> locals_;
};

}  // namespace

NestBoxes::NestBoxes(const FunctionRef& f, const Cursor& at, const Arguments& arguments)
    : f_(f), arguments_(arguments), stmt_(required_at(f, at)) {
  collect(at, stmt_, {});
}

void NestBoxes::collect(const Cursor& at, const Stmt& s, std::vector<VarRef> vars) {
  const auto block = [&](const std::string& field, const Stmt& body) {
    const std::vector<Stmt> stmts = block_of(body);
    for (size_t n = 0; n < stmts.size(); ++n) collect(at.child(field, n), stmts[n], vars);
  };
  const For* loop = as<For>(s);
  const If* branch = as<If>(s);
  const Store* store = as<Store>(s);
  if (loop && loop->loop != LoopKind::Thread) {
    vars.insert(vars.end(), loop->vars.begin(), loop->vars.end());
    all_.insert(all_.end(), loop->vars.begin(), loop->vars.end());
    for (size_t d = 0; d < loop->vars.size(); ++d) {
      loops_[loop->vars[d].get()] = {loop->begins[d], loop->extents[d]};
    }
    return block("body", loop->body);
  }
  if (branch && !branch->else_body) return block("then_body", branch->then_body);
  if (!store || store->is_atomic()) {
    arguments_.refuse(fmt::format("'{}' is no loop, branch without else, or store", head_text(s)), s,
                      "name a nest of loops around the stores of elements; fission() divides loops");
  }
  stores_.push_back({store, at, std::move(vars)});
}

const VarValues& NestBoxes::values(const ElementStore& store, const VarRef& var) {
  const auto at = known_.find({store.store, var.get()});
  if (at != known_.end()) return at->second;
  const std::optional<VarValues> found = Values(f_, stmt_, *store.store).of(var, all_);
  if (!found) {
    arguments_.refuse(fmt::format("the bounds of '{}' are no short expressions", var->name), stmt_,
                      "split() its loop with tail=\"cut\", so that the operation has all iterations");
  }
  return known_.emplace(std::pair(store.store, var.get()), *found).first->second;
}

VarValues NestBoxes::whole_values(const ElementStore& store, const VarRef& var) {
  const Expr begin = values(store, var).begin;
  const VarValues& loop = loops_.at(var.get());
  const std::optional<int64_t> most = Values(f_, stmt_, *store.store).most(simplify(loop.extent), all_);
  if (!most) {
    arguments_.refuse(fmt::format("the extent {} of '{}' has no constant bound", brief_text(loop.extent), var->name),
                      stmt_, "split() the loop by a constant, and name the inner one");
  }
  if (!same_expr(begin, simplify(loop.begin))) {
    arguments_.refuse(
        fmt::format("'{}' begins at {} where the nest runs, and not with its loop", var->name, brief_text(begin)),
        stmt_, "only the end of a block may be cut off by branches");
  }
  return {begin, int_imm(*most)};
}

std::optional<VarRef> NestBoxes::variable_of(const Expr& index) const {
  std::optional<VarRef> out;
  for (const VarRef& var : all_) {
    if (!mentions(index, var.get())) continue;
    if (out) return std::nullopt;
    out = var;
  }
  return out;
}

Box NestBoxes::box(const ElementStore& ranges, const BufferRef& buffer, const std::vector<Expr>& indices,
                   const std::vector<VarRef>& whole) {
  Box out{{buffer, {}}, {}};
  for (const Expr& written : indices) {
    const Expr index = simplify(written);
    const bool fixed =
        std::none_of(all_.begin(), all_.end(), [&](const VarRef& var) { return mentions(index, var.get()); });
    if (fixed) {
      out.region.ranges.push_back({index, int_imm(1), true});
      continue;
    }
    const std::optional<VarRef> var = variable_of(index);
    const Expr rest = var ? simplify(index - Expr(*var)) : Expr();
    if (!rest || mentions(rest, var->get()) || std::find(out.vars.begin(), out.vars.end(), *var) != out.vars.end()) {
      arguments_.refuse(fmt::format("subscript {} of '{}' is not one variable of the nest plus what is fixed",
                                    brief_text(written), buffer->name),
                        Stmt(ranges.store), "name the loop inside, or bring the loops into order by reorder()");
    }
    const bool all = std::find(whole.begin(), whole.end(), *var) != whole.end();
    const VarValues at = all ? whole_values(ranges, *var) : values(ranges, *var);
    out.region.ranges.push_back({simplify(rest + at.begin), at.extent, false});
    out.vars.push_back(*var);
  }
  return out;
}

}  // namespace helve
