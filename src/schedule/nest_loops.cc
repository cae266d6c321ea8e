// Primitives on nests of loops: reorder, fuse, separate.
// A branch between two loops of a nest goes inwards with the loops, since what it guards is the innermost body.
#include <fmt/format.h>

#include <algorithm>

#include "helve/ir/expr/build.h"
#include "helve/ir/expr/visit.h"
#include "helve/ir/tensor/visit.h"
#include "loop_form.h"

namespace helve {

namespace {

/// The loops and branches of a nest from `outer` to `inner`, each the only statement of the one before.
std::vector<Cursor> chain(const FunctionRef& f, const Arguments& arguments, const Cursor& outer, const Cursor& inner) {
  std::vector<Cursor> out{outer};
  while (out.back() != inner) {
    const Stmt s = required_at(f, out.back());
    const If* branch = as<If>(s);
    if (!as<For>(s) && !(branch && !branch->else_body)) {
      arguments.refuse("between the loops stands a statement that is no loop and no branch", s,
                       "name loops that hold nothing but each other");
    }
    const Cursor next = out.back().child(body_field(s), 0);
    std::vector<Stmt> below = block_of(body_around(*f, next));
    if (below.size() != 1) {
      arguments.refuse(fmt::format("between the loops stand {} statements", below.size()), s,
                       "take them apart by fission() first");
    }
    if (!inner.within(next)) arguments.refuse("the loops are not nested", s, "name loops of one nest");
    out.push_back(next);
  }
  return out;
}

void require_free_of(const Arguments& arguments, const Stmt& at, const std::vector<Expr>& bounds,
                     const std::vector<VarRef>& vars) {
  for (const Expr& bound : bounds) {
    for (const VarRef& var : vars) {
      if (mentions(bound, var.get())) {
        arguments.refuse(fmt::format("a bound of the loop uses '{}'", var->name), at,
                         "skew() or cut() the loops so that their bounds are free of each other");
      }
    }
  }
}

/// A nest while its members change places.
struct Nest {
  const FunctionRef& f;
  const Arguments& arguments;
  Edited edited;
  std::vector<Cursor> old;  ///< of the members, in the order they have now

  Cursor now(size_t i) const { return *edited.forward(old[i]); }

  void swap(size_t i) {
    const Cursor first = now(i), second = now(i + 1);
    const Stmt a = required_at(edited.function, first), b = required_at(edited.function, second);
    const For* inner = as<For>(b);
    if (const For* outer = as<For>(a)) {
      if (inner) {
        require_free_of(arguments, b, inner->begins, outer->vars);
        require_free_of(arguments, b, inner->extents, outer->vars);
      } else {
        require_free_of(arguments, b, {as<If>(b)->condition}, outer->vars);
      }
    }
    edited = edited.then(swap_nested(edited.function, first, second));
    std::swap(old[i], old[i + 1]);
  }
};

}  // namespace

/// reorder(j, i): `for i: for j: S` becomes `for j: for i: S`. The loops named take the places that they have in the
/// given order; those between them stay where they are, and branches go inwards.
Rewrite reorder_loops(const FunctionRef& f, const Arguments& arguments) {
  const std::vector<Cursor>& named = arguments.cursors(0);
  if (named.empty()) arguments.refuse("no loop is named", {}, "name the loops in the order that they are to have");
  for (const Cursor& at : named) {
    if (!as<For>(required_at(f, at))) {
      arguments.refuse("the statement is no loop over a range", required_at(f, at), "give loops such as T.serial");
    }
    if (std::count(named.begin(), named.end(), at) > 1) {
      arguments.refuse("a loop is named twice", required_at(f, at), "name each loop once");
    }
  }
  const auto by_depth = [](const Cursor& a, const Cursor& b) { return a.steps.size() < b.steps.size(); };
  const auto [outer, inner] = std::minmax_element(named.begin(), named.end(), by_depth);
  for (const Cursor& at : named) {
    if (!at.within(*outer) || !inner->within(at)) {
      arguments.refuse("the loops are not nested", required_at(f, at), "name loops of one nest");
    }
  }
  Nest nest{f, arguments, {f, Forwarding()}, chain(f, arguments, *outer, *inner)};
  // The order wanted: loops where they are, or the named ones in their order; then the branches.
  std::vector<Cursor> wanted, branches;
  size_t next = 0;
  for (const Cursor& at : nest.old) {
    if (!as<For>(required_at(f, at))) {
      branches.push_back(at);
    } else if (std::count(named.begin(), named.end(), at)) {
      wanted.push_back(named[next++]);
    } else {
      wanted.push_back(at);
    }
  }
  wanted.insert(wanted.end(), branches.begin(), branches.end());
  for (size_t i = 0; i < wanted.size(); ++i) {
    auto found = static_cast<size_t>(std::find(nest.old.begin(), nest.old.end(), wanted[i]) - nest.old.begin());
    for (; found > i; --found) nest.swap(found - 1);
  }
  Rewrite out{nest.edited, {*outer, 1}, {*outer, 1}, {}, {}, {}};
  for (const Cursor& at : named) out.results.push_back(*nest.edited.forward(at));
  return out;
}

/// fuse(i, j): `for i in serial(n): for j in serial(m): S` becomes `for ij in serial(n * m): S`, with `ij // m` for i
/// and `ij % m` for j.
Rewrite fuse_loops_of_nest(const FunctionRef& f, const Arguments& arguments) {
  const Cursor at = arguments.cursor(0), inner_at = arguments.cursor(1);
  const For& outer = arguments.loop(f, at);
  const For& inner = arguments.loop(f, inner_at);
  const Stmt second = required_at(f, inner_at);
  if (inner_at != at.child("body", 0) || block_of(outer.body).size() != 1) {
    arguments.refuse("the second loop is not all that the first one holds", second,
                     "name two loops of which one holds the other and nothing else");
  }
  if (outer.loop != inner.loop) {
    arguments.refuse(fmt::format("one loop is T.{}, the other one T.{}", to_string(outer.loop), to_string(inner.loop)),
                     second, "make both of one kind");
  }
  require_free_of(arguments, second, inner.begins, outer.vars);
  require_free_of(arguments, second, inner.extents, outer.vars);
  const VarRef var = fresh_var(f, outer.vars[0]->name + inner.vars[0]->name);
  const Expr n = outer.extents[0], m = simplified(inner.extents[0]);
  if (const int64_t* none = int_value(m); none && *none <= 0) {
    arguments.refuse("the inner loop has no iterations", second, "leave loops without iterations as they are");
  }
  const LoopValues values{
      {outer.vars[0], simplified(outer.begins[0] + floor_div(Expr(var), m))},
      {inner.vars[0], simplified(inner.begins[0] + floor_mod(Expr(var), m))},
  };
  Edited edited = move(f, {inner_at.child("body", 0), block_of(inner.body).size()}, inner_at);
  const Cursor behind = at.child("body", block_of(inner.body).size());
  edited = edited.then(erase(edited.function, {behind, 1}));
  const For* now = as<For>(statement_at(*edited.function, at));
  Substitution both;
  for (const auto& [old, value] : values) both.emplace(old.get(), value);
  edited = edited.then(
      revise(edited.function, at,
             with_header(outer, outer.loop, {var}, {int_imm(0)}, {simplified(n * m)}, substitute(now->body, both))));
  return {edited, {at, 1}, {at, 1}, values, {}, {at}};
}

/// separate(i): `for i, j in Parallel(n, m): S` becomes `for i in Parallel(n): for j in Parallel(m): S`.
Rewrite separate_loop(const FunctionRef& f, const Arguments& arguments) {
  const Cursor at = arguments.cursor(0);
  const Stmt s = required_at(f, at);
  const For* loop = as<For>(s);
  if (!loop || loop->vars.size() < 2) {
    arguments.refuse("the statement is no loop over several variables", s, "give a loop such as T.Parallel(n, m)");
  }
  const LoopKind inside = loop->loop == LoopKind::Persistent ? LoopKind::Serial : loop->loop;
  Edited edited{f, Forwarding()};
  const Cursor body = at.child("body", 0);
  for (size_t d = loop->vars.size(); d-- > 1;) {
    const size_t count = block_of(as<For>(statement_at(*edited.function, at))->body).size();
    edited = edited.then(wrap(edited.function, {body, count}, "body", [&](Stmt below) {
      return with_header(*loop, inside, {loop->vars[d]}, {loop->begins[d]}, {loop->extents[d]}, std::move(below));
    }));
  }
  const For* now = as<For>(statement_at(*edited.function, at));
  edited = edited.then(
      revise(edited.function, at,
             with_header(*loop, loop->loop, {loop->vars[0]}, {loop->begins[0]}, {loop->extents[0]}, now->body)));
  Rewrite out{edited, {at, 1}, {at, 1}, {}, {}, {at}};
  for (size_t d = 1; d < loop->vars.size(); ++d) out.results.push_back(out.results.back().child("body", 0));
  return out;
}

}  // namespace helve
