// Primitives that count the iterations of a loop otherwise: shift, skew, rotate, reverse.
// The first two change no order, and bring loops into a form in which others may; rotate begins elsewhere, and reverse
// at the end.
#include "helve/ir/expr/build.h"
#include "helve/ir/tensor/visit.h"
#include "loop_form.h"

namespace helve {

namespace {

/// The loop at `at` from `by` later on, with its variable less `by` in the body.
Rewrite later(const FunctionRef& f, const Cursor& at, const For& loop, const Expr& by, Block region) {
  const VarRef var = make_var(loop.vars[0]->name);
  const Expr value = simplified(Expr(var) - by);
  const Edited edited = revise(f, at,
                               with_header(loop, loop.loop, {var}, {simplified(loop.begins[0] + by)}, loop.extents,
                                           substitute(loop.body, {{loop.vars[0].get(), value}})));
  return {edited, region, region, {{loop.vars[0], value}}, {}, {at}};
}

}  // namespace

/// shift(i, 2): `for i in serial(n): S` becomes `for i in serial(2, n + 2): S`, with `i - 2` for i.
Rewrite shift_loop(const FunctionRef& f, const Arguments& arguments) {
  const Cursor at = arguments.cursor(0);
  const For& loop = arguments.loop(f, at);
  if (loop.loop == LoopKind::Thread || loop.loop == LoopKind::Vectorized) {
    arguments.refuse("lanes and threads are counted from 0", required_at(f, at), "make it serial() first");
  }
  return later(f, at, loop, int_imm(arguments.integer(1)), {at, 1});
}

/// skew(i, j, 1): `for i: for j in serial(n): S` becomes `for i: for j in serial(i, i + n): S`, with `j - i` for j.
Rewrite skew_loop(const FunctionRef& f, const Arguments& arguments) {
  const Cursor at = arguments.cursor(0), inner_at = arguments.cursor(1);
  const For& outer = arguments.loop(f, at);
  const For& inner = arguments.loop(f, inner_at);
  if (inner_at == at || !inner_at.within(at)) {
    arguments.refuse("the second loop is not inside the first one", required_at(f, inner_at),
                     "name a loop and one in it");
  }
  if (inner.loop == LoopKind::Thread || inner.loop == LoopKind::Vectorized) {
    arguments.refuse("lanes and threads are counted from 0", required_at(f, inner_at), "make it serial() first");
  }
  return later(f, inner_at, inner, Expr(outer.vars[0]) * int_imm(arguments.integer(2)), {at, 1});
}

/// rotate(k, i): `for i: for k in serial(n): S` becomes the same loops with `(k + i) % n` for k in S: each iteration of
/// i begins k at another value. Several loops are added up.
Rewrite rotate_loop(const FunctionRef& f, const Arguments& arguments) {
  const Cursor at = arguments.cursor(0);
  const For& loop = arguments.loop(f, at);
  if (loop.loop == LoopKind::Thread) {
    arguments.refuse("the iterations of the loop are on different threads", required_at(f, at),
                     "rotate a loop inside it");
  }
  const Expr extent = simplified(loop.extents[0]);
  if (const int64_t* n = int_value(extent); n && *n < 1) {
    arguments.refuse("the loop has no iterations", required_at(f, at), "leave loops without iterations as they are");
  }
  Expr first = int_imm(0);
  for (const Cursor& by : arguments.cursors(1)) {
    const For& outer = arguments.loop(f, by);
    if (by == at || !at.within(by)) {
      arguments.refuse("a loop to begin by is not around the first one", required_at(f, by),
                       "name a loop and loops around it");
    }
    first = first + Expr(outer.vars[0]);
  }
  const VarRef var = make_var(loop.vars[0]->name);
  const Expr value = simplified(loop.begins[0] + floor_mod(Expr(var) - loop.begins[0] + first, extent));
  const Edited edited = revise(f, at,
                               with_header(loop, loop.loop, {var}, loop.begins, loop.extents,
                                           substitute(loop.body, {{loop.vars[0].get(), value}})));
  return {edited, {at, 1}, {at, 1}, {{loop.vars[0], value}}, {}, {at}};
}

/// reverse(k): `for k in serial(n): S` becomes the same loop with `n - 1 - k` for k in S.
Rewrite reverse_loop(const FunctionRef& f, const Arguments& arguments) {
  const Cursor at = arguments.cursor(0);
  const For& loop = arguments.loop(f, at);
  if (loop.loop == LoopKind::Thread) {
    arguments.refuse("the iterations of the loop are on different threads", required_at(f, at),
                     "reverse a loop inside it");
  }
  const VarRef var = make_var(loop.vars[0]->name);
  const Expr value = simplified(loop.begins[0] * int_imm(2) + loop.extents[0] - int_imm(1) - Expr(var));
  const Edited edited = revise(f, at,
                               with_header(loop, loop.loop, {var}, loop.begins, loop.extents,
                                           substitute(loop.body, {{loop.vars[0].get(), value}})));
  return {edited, {at, 1}, {at, 1}, {{loop.vars[0], value}}, {}, {at}};
}

}  // namespace helve
