// Primitives that bring loops together or take them and branches apart: join, fission, unswitch, trim, specialize.
// Each moves or repeats whole statements; which of their instances may change places is for the checker.
#include <fmt/format.h>

#include "footprint.h"
#include "helve/ir/expr/build.h"
#include "helve/ir/tensor/renewed.h"
#include "loop_form.h"

namespace helve {

/// join(i, j): `for i in serial(n): S` and, right behind it, `for j in serial(n): R` become `for i in serial(n): S; R`,
/// with i for j.
Rewrite join_adjacent_loops(const FunctionRef& f, const Arguments& arguments) {
  const Cursor at = arguments.cursor(0), behind = arguments.cursor(1);
  const For& first = arguments.loop(f, at);
  const For& second = arguments.loop(f, behind);
  const Stmt other = required_at(f, behind);
  if (!behind.beside(at) || behind.position() != at.position() + 1) {
    arguments.refuse("the second loop does not stand right behind the first one", other,
                     "name two neighbours of one block");
  }
  if (first.loop != second.loop) {
    arguments.refuse("the two loops are of different kinds", other, "make both of one kind, for example by serial()");
  }
  const size_t count = block_of(first.body).size(), more = block_of(second.body).size();
  const Expr value = simplified(Expr(first.vars[0]) + (second.begins[0] - first.begins[0]));
  Edited edited = revise(f, behind,
                         with_header(second, second.loop, second.vars, second.begins, second.extents,
                                     substitute(second.body, {{second.vars[0].get(), value}})));
  edited = edited.then(move(edited.function, {behind.child("body", 0), more}, at.child("body", count)));
  edited = edited.then(erase(edited.function, {behind, 1}));
  edited = edited.then(marked(edited.function, at));
  Rewrite out{edited, {at, 2}, {at, 1}, {}, {}, {at}};
  for (size_t i = 0; i < more; ++i) {
    out.pieces.push_back({behind.child("body", i), at.child("body", count + i), {{second.vars[0], value}}});
  }
  return out;
}

namespace {

/// fission(R) of a launch: `with T.Kernel(g) as b: S; R` becomes two launches.
Rewrite fission_launch(const FunctionRef& f, const Cursor& gap, const Kernel& grid) {
  const Cursor at = gap.parent(), behind = at.at(at.position() + 1);
  const size_t count = block_of(grid.body).size();
  std::vector<VarRef> vars;
  Substitution renamed;
  LoopValues values;
  for (const VarRef& var : grid.vars) {
    vars.push_back(var->name == "_" ? make_var("_") : fresh_var(f, var->name));
    renamed.emplace(var.get(), Expr(vars.back()));
    values.emplace_back(var, Expr(vars.back()));
  }
  const auto launch = [&](const std::vector<VarRef>& of, Stmt body) {
    return Stmt(copy_with(grid, [&](Kernel& out) {
      out.vars = of;
      out.body = std::move(body);
    }));
  };
  Edited edited = insert(f, behind, {launch(vars, seq({}))});
  edited = edited.then(move(edited.function, {gap, count - gap.position()}, behind.child("body", 0)));
  const Kernel* now = as<Kernel>(required_at(edited.function, behind));
  edited = edited.then(revise(edited.function, behind, launch(vars, substitute(now->body, renamed))));
  Rewrite out{edited, {at, 1}, {at, 2}, {}, {}, {at, behind}};
  for (size_t i = gap.position(); i < count; ++i) {
    out.pieces.push_back({gap.at(i), behind.child("body", i - gap.position()), values});
  }
  return out;
}

/// `if c: S; R` becomes `if c: S` and `if c: R`.
Rewrite fission_branch(const FunctionRef& f, const Cursor& gap, const If& branch) {
  const Cursor at = gap.parent(), behind = at.at(at.position() + 1);
  const size_t count = block_of(branch.then_body).size();
  Edited edited = insert(f, behind, {if_then(branch.condition, seq({}), {}, branch.span)});
  edited = edited.then(move(edited.function, {gap, count - gap.position()}, behind.child("then_body", 0)));
  Rewrite out{edited, {at, 1}, {at, 2}, {}, {}, {at, behind}};
  for (size_t i = gap.position(); i < count; ++i) {
    out.pieces.push_back({gap.at(i), behind.child("then_body", i - gap.position()), {}});
  }
  return out;
}

}  // namespace

/// fission(R): `for i in serial(n): S; R` becomes `for i in serial(n): S` and `for i_1 in serial(n): R`; so do
/// launches, and branches without else.
Rewrite fission_loop(const FunctionRef& f, const Arguments& arguments) {
  const Cursor gap = arguments.cursor(0);
  const Stmt inside = required_at(f, gap);
  if (!gap.has_parent()) arguments.refuse("the statement is in no loop", inside, "name a statement of a loop's body");
  const Cursor at = gap.parent();
  const Stmt around = required_at(f, at);
  const Kernel* grid = as<Kernel>(around);
  const If* branch = as<If>(around);
  if (branch && branch->else_body) {
    arguments.refuse("the branch around the statement has an 'else'", around, "name a statement of a loop's body");
  }
  const std::vector<Stmt> body = block_of(grid ? grid->body : branch ? branch->then_body : arguments.loop(f, at).body);
  const size_t count = body.size();
  if (gap.position() == 0) {
    arguments.refuse("the statement is the first one of the loop", inside,
                     "name the first statement of the second loop");
  }
  for (size_t i = 0; i < gap.position(); ++i) {
    for (size_t k = gap.position(); k < count; ++k) {
      const std::string name = used_behind(body[i], body[k]);
      if (name.empty()) continue;
      arguments.refuse(fmt::format("'{}' is defined in front of the statement and used behind it", name), body[i],
                       as<Alloc>(body[i]) ? "sink() the memory into the loop that uses it, or lift() it out of this one"
                                          : "move the definition out of the loop first");
    }
  }
  if (grid) return fission_launch(f, gap, *grid);
  if (branch) return fission_branch(f, gap, *branch);
  const For& loop = arguments.loop(f, at);
  const VarRef var = fresh_var(f, loop.vars[0]->name);
  const Cursor behind = at.at(at.position() + 1);
  Edited edited = insert(f, behind, {with_header(loop, loop.loop, {var}, loop.begins, loop.extents, seq({}))});
  edited = edited.then(move(edited.function, {gap, count - gap.position()}, behind.child("body", 0)));
  const For* now = as<For>(statement_at(*edited.function, behind));
  const Stmt second = substitute(now->body, {{loop.vars[0].get(), Expr(var)}});
  edited = edited.then(
      revise(edited.function, behind, with_header(*now, loop.loop, now->vars, now->begins, now->extents, second)));
  edited = edited.then(marked(edited.function, at));
  Rewrite out{edited, {at, 1}, {at, 2}, {}, {}, {at, behind}};
  for (size_t i = gap.position(); i < count; ++i) {
    const Cursor after = behind.child("body", i - gap.position());
    out.pieces.push_back({gap.at(i), after, {{loop.vars[0], Expr(var)}}});
  }
  return out;
}

/// unswitch(i): `for i in serial(n): if c: S` becomes `if c: for i in serial(n): S`, and a branch `else` has a loop of
/// its own.
Rewrite unswitch_loop(const FunctionRef& f, const Arguments& arguments) {
  const Cursor at = arguments.cursor(0);
  const For& loop = arguments.loop(f, at);
  const std::vector<Stmt> body = block_of(loop.body);
  const Stmt* only = only_statement(body);
  const If* branch = only ? as<If>(*only) : nullptr;
  if (!branch) {
    arguments.refuse("the loop does not hold a branch and nothing else", required_at(f, at),
                     "take other statements apart by fission() first");
  }
  if (mentions(branch->condition, loop.vars[0].get())) {
    arguments.refuse("the condition uses the variable of the loop", *only,
                     "cut() the loop where the condition changes");
  }
  const Cursor inner = at.child("body", 0);
  Rewrite out{{f, Forwarding()}, {at, 1}, {at, 1}, {}, {}, {}};
  Edited edited{f, Forwarding()};
  const std::vector<Stmt> otherwise = block_of(branch->else_body);
  if (!otherwise.empty()) {
    // The statements of `else` go into a loop behind the branch first, which then stands in its place.
    edited = erase(f, {inner.child("else_body", 0), otherwise.size()});
  }
  edited = edited.then(swap_nested(edited.function, at, inner));
  out.results.push_back(at.child("then_body", 0));
  if (!otherwise.empty()) {
    const VarRef var = fresh_var(f, loop.vars[0]->name);
    const Renewal copy = renew(branch->else_body, {{loop.vars[0].get(), Expr(var)}});
    LoopValues values{{loop.vars[0], Expr(var)}};
    for (const auto& [old, now] : copy.vars) values.emplace_back(old, Expr(now));
    const Cursor place = at.child("else_body", 0);
    const Stmt second = with_header(loop, loop.loop, {var}, loop.begins, loop.extents, copy.stmt);
    edited = edited.then(insert(edited.function, place, {second}));
    for (size_t i = 0; i < otherwise.size(); ++i) {
      out.pieces.push_back({inner.child("else_body", i), place.child("body", i), values});
    }
    out.results.push_back(place);
  }
  out.edited = edited;
  return out;
}

namespace {

/// The first value of the variable from which on the condition is false, if it is `var * a < e`.
std::optional<Expr> end_of(const Expr& condition, const VarRef& var) {
  const Apply* relation = as<Apply>(condition);
  const bool strict = relation && (relation->op == Op::Lt || relation->op == Op::Gt);
  if (!strict && !(relation && (relation->op == Op::Le || relation->op == Op::Ge))) return std::nullopt;
  const bool turned = relation->op == Op::Gt || relation->op == Op::Ge;
  const Expr &low = relation->args[turned ? 1 : 0], &high = relation->args[turned ? 0 : 1];
  if (!low->dtype.is_index() || !high->dtype.is_index()) return std::nullopt;
  const Expr left = high - low + int_imm(strict ? 0 : 1);  // true while this is positive
  const auto with = [&](int64_t value) { return substitute(left, {{var.get(), int_imm(value)}}); };
  const Expr step = simplified(with(0) - with(1));
  const int64_t* a = int_value(step);
  const Expr rest = simplified(left - with(0) + step * Expr(var));
  const int64_t* none = int_value(rest);
  if (!a || *a < 1 || !none || *none != 0) return std::nullopt;
  return simplified(floor_div(with(0) + int_imm(*a - 1), step));
}

}  // namespace

/// trim(i): `for i in serial(n): if i * 4 + r < m: S` becomes `for i in serial((m - r + 3) // 4): S`.
Rewrite trim_loop(const FunctionRef& f, const Arguments& arguments) {
  const Cursor at = arguments.cursor(0);
  const For& loop = arguments.loop(f, at);
  const Stmt old = required_at(f, at);
  const std::vector<Stmt> body = block_of(loop.body);
  const Stmt* only = only_statement(body);
  const If* branch = only ? as<If>(*only) : nullptr;
  if (!branch || branch->else_body) {
    arguments.refuse("the loop does not consist of a branch without else", old,
                     "take other statements apart by fission() first");
  }
  if (loop.loop == LoopKind::Thread || loop.loop == LoopKind::Vectorized) {
    arguments.refuse("lanes and threads are as many in every iteration of other loops", old, "make it serial() first");
  }
  const std::optional<Expr> end = end_of(branch->condition, loop.vars[0]);
  if (!end) {
    arguments.refuse("the condition is not the end of the loop", *only,
                     "trim() a loop whose variable is less than something, as behind split()");
  }
  Expr extent = simplified(*end - loop.begins[0]);
  if (!never_at(f, at, less(loop.extents[0], extent))) extent = simplified(min(extent, loop.extents[0]));
  if (!never_at(f, at, less(extent, int_imm(0)))) extent = simplified(max(extent, int_imm(0)));
  const Cursor inner = at.child("body", 0);
  const size_t count = block_of(branch->then_body).size();
  Edited edited = move(f, {inner.child("then_body", 0), count}, inner);
  edited = edited.then(erase(edited.function, {at.child("body", count), 1}));
  const For* now = as<For>(statement_at(*edited.function, at));
  edited = edited.then(
      revise(edited.function, at, with_header(*now, now->loop, now->vars, now->begins, {extent}, now->body)));
  return {edited, {at, 1}, {at, 1}, {}, {}, {at}};
}

/// specialize(S, i, 2): S inside of `for i in serial(n)` becomes `if i < 2: S else: S`, so that each of the two may be
/// changed for itself.
Rewrite specialize_statement(const FunctionRef& f, const Arguments& arguments) {
  const Cursor at = arguments.cursor(0), outer = arguments.cursor(1);
  const For& loop = arguments.loop(f, outer);
  const Stmt s = required_at(f, at);
  if (at == outer || !at.within(outer)) {
    arguments.refuse("the statement is not inside of the loop", s, "name a loop around the statement");
  }
  if (s->kind == StmtKind::Alloc || s->kind == StmtKind::Peer || named_by(s)) {
    arguments.refuse("the statement defines a name for those behind it", s, "name a statement that does not");
  }
  const Renewal copy = renew(s, {});
  LoopValues values;
  for (const auto& [old, now] : copy.vars) values.emplace_back(old, Expr(now));
  const Expr condition = simplified(less(Expr(loop.vars[0]), loop.begins[0] + int_imm(arguments.integer(2))));
  const Edited edited =
      wrap(f, {at, 1}, "then_body", [&](const Stmt& inside) { return if_then(condition, inside, copy.stmt, s->span); });
  const Cursor first = at.child("then_body", 0), second = at.child("else_body", 0);
  return {edited, {at, 1}, {at, 1}, {}, {{at, second, values}}, {first, second}};
}

}  // namespace helve
