// Primitives that give iterations of a loop to executors: blocks of the grid, threads of a block, cores of a cluster.
// Executors are what the language has for them: coordinates of T.Kernel, a T.threads loop, the last axis of a mesh.
// What a block does as a whole, by tile operations, parallel loops and fragments, its threads divide among them.
#include <fmt/format.h>

#include <algorithm>

#include "helve/arith/sum.h"
#include "helve/ir/expr/build.h"
#include "helve/ir/tensor/visit.h"
#include "helve/layout/warp.h"
#include "helve/target/machine.h"
#include "loop_form.h"
#include "share_cores.h"
#include "shared_loops.h"

namespace helve {

namespace {

const int64_t kMostThreads = any_gpu().block_threads;  ///< of a block, on any GPU

/// The loop that is bound, and the kernel whose only statement it is.
struct Bound {
  Cursor loop_at, at;
  const For& loop;
  const Kernel& grid;
  Stmt stmt;
};

/// Is the loop, alone, all that a kernel holds?
bool is_all_of_kernel(const FunctionRef& f, const Arguments& arguments) {
  const Cursor at = arguments.cursor(0);
  const Kernel* grid = at.has_parent() ? as<Kernel>(required_at(f, at.parent())) : nullptr;
  return arguments.cursors(2).empty() && grid && block_of(grid->body).size() == 1;
}

Bound loop_of_grid(const FunctionRef& f, const Arguments& arguments) {
  const Cursor inner = arguments.cursor(0);
  const For& loop = arguments.loop(f, inner);
  const Stmt old = required_at(f, inner);
  const Stmt around = inner.has_parent() ? required_at(f, inner.parent()) : Stmt();
  const Kernel* grid = around ? as<Kernel>(around) : nullptr;
  if (!grid || block_of(grid->body).size() != 1) {
    const std::vector<Stmt> beside = grid ? block_of(grid->body) : std::vector<Stmt>();
    const bool memory =
        std::any_of(beside.begin(), beside.end(), [](const Stmt& s) { return as<Alloc>(s) != nullptr; });
    arguments.refuse("the loop is not all that a T.Kernel holds", old,
                     memory ? "sink() the memory in front of it into the loop, and take other statements apart by "
                              "fission()"
                            : "bring it outwards by reorder() and fission() first");
  }
  if (f->mesh) arguments.refuse("the grid of a mesh function is its mesh", old, "leave the loop to each core");
  for (const VarRef& var : grid->vars) {
    if (mentions(loop.begins[0], var.get()) || mentions(loop.extents[0], var.get())) {
      arguments.refuse(fmt::format("a bound of the loop uses '{}'", var->name), old,
                       "cut() or split() the loop so that every block has as many iterations");
    }
  }
  refuse_dealt(arguments, around, old);
  return {inner, inner.parent(), loop, *grid, old};
}

/// The kernel with one more coordinate, the loop's variable; those of extent 1 are left out.
Rewrite with_coordinate(const FunctionRef& f, const Bound& bound) {
  const For& loop = bound.loop;
  LoopValues values;
  Substitution both;
  std::vector<VarRef> vars;
  std::vector<Expr> extents;
  for (size_t d = 0; d < bound.grid.vars.size(); ++d) {
    const int64_t* extent = int_value(bound.grid.extents[d]);
    if (extent && *extent == 1) {
      values.emplace_back(bound.grid.vars[d], int_imm(0));
    } else {
      vars.push_back(bound.grid.vars[d]);
      extents.push_back(bound.grid.extents[d]);
    }
  }
  const VarRef var = make_var(loop.vars[0]->name);
  vars.push_back(var);
  extents.push_back(simplified(loop.extents[0]));
  values.emplace_back(loop.vars[0], simplified(loop.begins[0] + Expr(var)));
  for (const auto& [old_var, value] : values) both.emplace(old_var.get(), value);

  const Cursor &inner = bound.loop_at, &at = bound.at;
  const size_t count = block_of(loop.body).size();
  Edited edited = move(f, {inner.child("body", 0), count}, inner);
  edited = edited.then(erase(edited.function, {at.child("body", count), 1}));
  const Kernel* now = as<Kernel>(statement_at(*edited.function, at));
  const Stmt changed = Stmt(copy_with(*now, [&](Kernel& out) {
    out.cluster = 1;
    out.vars = vars;
    out.extents = extents;
    out.body = substitute(now->body, both);
  }));
  edited = edited.then(revise(edited.function, at, changed));
  return {edited, {at, 1}, {at, 1}, values, {}, {at}};
}

/// `with T.Kernel(g) as b: for s in serial(4): S` becomes a function of the mesh (g, 4) with
/// `with T.Kernel(g, 4) as (b, s): S`.
Rewrite to_cores(const FunctionRef& f, const Arguments& arguments) {
  const Bound bound = loop_of_grid(f, arguments);
  if (bound.at.steps.size() != 1 || block_of(f->body).size() != 1) {
    arguments.refuse("the kernel is not all that the function does", bound.stmt, "bind() the loop to blocks instead");
  }
  cores_of(arguments, bound.stmt);
  Rewrite out = with_coordinate(f, bound);
  const Cursor at = bound.at;
  const Kernel* now = as<Kernel>(statement_at(*out.edited.function, at));
  std::vector<VarRef> vars = now->vars;
  std::vector<Expr> extents = now->extents;
  if (vars.size() == 1) {  // the only cluster
    vars.insert(vars.begin(), fresh_var(out.edited.function, "c"));
    extents.insert(extents.begin(), int_imm(1));
  }
  const MeshShape mesh = mesh_of(arguments, extents, bound.stmt);
  out.edited = out.edited.then(revise(out.edited.function, at, Stmt(copy_with(*now, [&](Kernel& grid) {
                                        grid.vars = vars;
                                        grid.extents = extents;
                                      }))));
  Ref<Function> placed = make_ref<Function>(*out.edited.function);
  placed->mesh = mesh;
  out.edited.function = FunctionRef(placed);
  return out;
}

bool is_block(int64_t threads) { return threads >= kWarp && threads % kWarp == 0 && threads <= kMostThreads; }

Edited with_threads(const FunctionRef& f, const Cursor& at, int64_t threads) {
  const Kernel* now = as<Kernel>(statement_at(*f, at));
  return revise(f, at, Stmt(copy_with(*now, [&](Kernel& kernel) { kernel.threads = threads; })));
}

/// `for i in serial(64): S` becomes `for i in threads(64): S` in a kernel of 64 threads.
Rewrite to_threads(const FunctionRef& f, const Arguments& arguments) {
  const Cursor at = arguments.cursor(0);
  const For& loop = arguments.loop(f, at);
  const Stmt old = required_at(f, at);
  const Expr extent = simplified(loop.extents[0]);
  const int64_t* threads = int_value(extent);
  if (!threads || !is_block(*threads)) {
    arguments.refuse(fmt::format("a block has a multiple of {} threads, at most {}, the loop {} iterations", kWarp,
                                 kMostThreads, threads ? std::to_string(*threads) : "an unknown number of"),
                     old, "split() the loop and bind the inner one");
  }
  Cursor kernel_at = at;
  while (kernel_at.has_parent() && !as<Kernel>(required_at(f, kernel_at))) kernel_at = kernel_at.parent();
  if (!as<Kernel>(required_at(f, kernel_at))) {
    arguments.refuse("the loop is in no T.Kernel", old, "bind a loop that a kernel holds");
  }
  const VarRef& var = loop.vars[0];
  const Expr value = simplified(loop.begins[0] + Expr(var));
  const Stmt body = same_expr(value, Expr(var)) ? loop.body : substitute(loop.body, {{var.get(), value}});
  Edited edited = revise(f, at, with_header(loop, LoopKind::Thread, {var}, {int_imm(0)}, {extent}, body));
  edited = edited.then(with_threads(edited.function, kernel_at, *threads));
  return {edited, {at, 1}, {at, 1}, {{var, value}}, {}, {at}};
}

}  // namespace

/// bind(i, to="block"): `with T.Kernel(g) as b: for i in serial(n): S` becomes `with T.Kernel(g, n) as (b, i): S`;
/// coordinates of a grid that has one value only are left out.
/// bind(i, to="thread"): `for i in serial(64): S` becomes `for i in T.threads(64): S`, in a block of 64 threads.
/// bind(i, to="core"): as to blocks, and the grid becomes a mesh whose last axis, the loop's, is a cluster. Cores share
/// a loop that is not all of the kernel, and those of `also` (share_cores.h).
Rewrite bind_loop(const FunctionRef& f, const Arguments& arguments) {
  const std::string& to = arguments.text(1);
  if (to == "thread") return to_threads(f, arguments);
  if (!arguments.cursors(2).empty() && to != "core") {
    arguments.refuse(fmt::format("a {} has iterations of one loop", to), required_at(f, arguments.cursors(2)[0]),
                     "bind() the loops one after the other");
  }
  if (to == "core") return is_all_of_kernel(f, arguments) ? to_cores(f, arguments) : share_cores(f, arguments);
  return with_coordinate(f, loop_of_grid(f, arguments));
}

/// threads(b, 128): `with T.Kernel(n) as b: S` becomes `with T.Kernel(n, threads=128) as b: S`.
Rewrite set_threads(const FunctionRef& f, const Arguments& arguments) {
  const Cursor at = arguments.cursor(0);
  const Stmt s = required_at(f, at);
  const int64_t count = arguments.integer(1);
  if (!as<Kernel>(s)) arguments.refuse("the statement is no T.Kernel", s, "name a coordinate of the grid");
  if (!is_block(count)) {
    arguments.refuse(
        fmt::format("a block has a multiple of {} threads, at most {}, not {}", kWarp, kMostThreads, count), s,
        "choose such a number");
  }
  const size_t held = block_of(as<Kernel>(s)->body).size();  // which stays as it is, so also what cores do together
  const Block body = held == 0 ? Block{at, 1} : Block{at.child("body", 0), held};
  return {with_threads(f, at, count), body, body, {}, {}, {at}};
}

}  // namespace helve
