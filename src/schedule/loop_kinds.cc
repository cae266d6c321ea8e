// Primitives that say who runs the iterations of a loop: parallel, vectorize, serial, pipeline, bind,
// unbind.
// The program's statements stay as they are; only the order among iterations is given up.
#include <fmt/format.h>

#include "helve/ir/expr/build.h"
#include "helve/ir/tensor/visit.h"
#include "loop_form.h"

namespace helve {

namespace {

constexpr int64_t kMostStages = 64;  ///< each has memory of its own

Rewrite with_kind(const FunctionRef& f, const Arguments& arguments, LoopKind kind) {
  const Cursor at = arguments.cursor(0);
  const For& loop = arguments.loop(f, at);
  if (loop.loop == LoopKind::Thread) {
    arguments.refuse("the iterations of the loop are on different threads", required_at(f, at),
                     "change a loop inside it");
  }
  const Edited edited = revise(f, at, with_header(loop, kind, loop.vars, loop.begins, loop.extents, loop.body));
  return {edited, {at, 1}, {at, 1}, {}, {}, {at}};
}

}  // namespace

/// parallel(i): `for i in serial(n)` becomes `for i in Parallel(n)`.
Rewrite parallelize_loop(const FunctionRef& f, const Arguments& arguments) {
  return with_kind(f, arguments, LoopKind::Parallel);
}

/// vectorize(i): `for i in serial(8)` becomes `for i in vectorized(8)`.
Rewrite vectorize_loop(const FunctionRef& f, const Arguments& arguments) {
  const For& loop = arguments.loop(f, arguments.cursor(0));
  if (!int_value(loop.extents[0])) {
    arguments.refuse("the extent of the loop is not constant", required_at(f, arguments.cursor(0)),
                     "split() the loop and vectorize the inner one");
  }
  return with_kind(f, arguments, LoopKind::Vectorized);
}

/// serial(i): a loop of any kind becomes `for i in serial(n)`.
Rewrite serialize_loop(const FunctionRef& f, const Arguments& arguments) {
  return with_kind(f, arguments, LoopKind::Serial);
}

/// pipeline(k, 3): `for k in serial(n)` becomes `for k in Pipelined(n, num_stages=3)`.
Rewrite pipeline_loop(const FunctionRef& f, const Arguments& arguments) {
  const Cursor at = arguments.cursor(0);
  const int64_t stages = arguments.integer(1);
  if (stages > kMostStages) {
    arguments.refuse(fmt::format("{} stages are more than the {} that a loop may have", stages, kMostStages),
                     required_at(f, at), "choose fewer stages");
  }
  Rewrite out = with_kind(f, arguments, LoopKind::Pipelined);
  const For* now = as<For>(required_at(out.edited.function, at));
  out.edited = out.edited.then(revise(
      out.edited.function, at, Stmt(copy_with(*now, [&](For& loop) { loop.num_stages = static_cast<int>(stages); }))));
  return out;
}

/// bind(i): `with T.Kernel(g) as b: for i in serial(n): S` becomes `with T.Kernel(g, n) as (b, i): S`; coordinates of a
/// grid that has one value only are left out.
Rewrite bind_loop(const FunctionRef& f, const Arguments& arguments) {
  const Cursor inner = arguments.cursor(0);
  const For& loop = arguments.loop(f, inner);
  const Stmt old = required_at(f, inner);
  const Stmt around = inner.has_parent() ? required_at(f, inner.parent()) : Stmt();
  const Kernel* grid = around ? as<Kernel>(around) : nullptr;
  if (!grid || block_of(grid->body).size() != 1) {
    arguments.refuse("the loop is not all that a T.Kernel holds", old,
                     "bring it outwards by reorder() and fission() first");
  }
  if (f->mesh) arguments.refuse("the grid of a mesh function is its mesh", old, "leave the loop to each core");
  for (const VarRef& var : grid->vars) {
    if (mentions(loop.begins[0], var.get()) || mentions(loop.extents[0], var.get())) {
      arguments.refuse(fmt::format("a bound of the loop uses '{}'", var->name), old,
                       "cut() or split() the loop so that every block has as many iterations");
    }
  }
  const Cursor at = inner.parent();
  LoopValues values;
  Substitution both;
  std::vector<VarRef> vars;
  std::vector<Expr> extents;
  for (size_t d = 0; d < grid->vars.size(); ++d) {
    const int64_t* extent = int_value(grid->extents[d]);
    if (extent && *extent == 1) {
      values.emplace_back(grid->vars[d], int_imm(0));
    } else {
      vars.push_back(grid->vars[d]);
      extents.push_back(grid->extents[d]);
    }
  }
  const VarRef var = make_var(loop.vars[0]->name);
  vars.push_back(var);
  extents.push_back(simplified(loop.extents[0]));
  values.emplace_back(loop.vars[0], simplified(loop.begins[0] + Expr(var)));
  for (const auto& [old_var, value] : values) both.emplace(old_var.get(), value);

  const size_t count = block_of(loop.body).size();
  Edited edited = move(f, {inner.child("body", 0), count}, inner);
  edited = edited.then(erase(edited.function, {at.child("body", count), 1}));
  const Kernel* now = as<Kernel>(statement_at(*edited.function, at));
  const Stmt bound = Stmt(copy_with(*now, [&](Kernel& out) {
    out.vars = vars;
    out.extents = extents;
    out.body = substitute(now->body, both);
  }));
  edited = edited.then(revise(edited.function, at, bound));
  return {edited, {at, 1}, {at, 1}, values, {}, {at}};
}

/// unbind(b): `with T.Kernel(m, n) as (i, j): S` becomes `with T.Kernel(1) as b: for i in serial(m): for j in
/// serial(n): S`, with one block that runs the iterations of all.
Rewrite unbind_grid(const FunctionRef& f, const Arguments& arguments) {
  const Cursor at = arguments.cursor(0);
  const Stmt old = required_at(f, at);
  const Kernel* grid = as<Kernel>(old);
  if (!grid) arguments.refuse("the statement is no T.Kernel", old, "give the grid, by the name of a coordinate");
  if (f->mesh) arguments.refuse("the grid of a mesh function is its mesh", old, "leave each core its iteration");
  LoopValues values;
  Substitution loops;
  for (const VarRef& var : grid->vars) {
    values.emplace_back(var, Expr(make_var(var->name)));
    loops.emplace(var.get(), values.back().second);
  }
  Edited edited{f, Forwarding()};
  Rewrite out{edited, {at, 1}, {at, 1}, values, {}, {}};
  size_t count = block_of(grid->body).size();
  Cursor inner = at;
  for (size_t d = grid->vars.size(); d-- > 0; count = 1) {
    const VarRef var(as<Var>(values[d].second));
    const Edited loop = wrap(edited.function, {at.child("body", 0), count}, "body", [&](Stmt body) {
      return for_loop(LoopKind::Serial, {var}, {int_imm(0)}, {grid->extents[d]}, std::move(body), 1, old->span, true);
    });
    edited = edited.then(loop);
    inner = inner.child("body", 0);
    out.results.push_back(inner);
  }
  const Kernel* now = as<Kernel>(required_at(edited.function, at));
  const VarRef block = fresh_var(f, "b");
  const Stmt single = Stmt(copy_with(*now, [&](Kernel& kernel) {
    kernel.vars = {block};
    kernel.extents = {int_imm(1)};
    kernel.body = substitute(now->body, loops);
  }));
  out.edited = edited.then(revise(edited.function, at, single));
  return out;
}

}  // namespace helve
