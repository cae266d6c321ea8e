// Primitives that divide the iterations of one loop: split, divide, cut, unroll.
// What is left over is guarded, cut off as a loop of its own, or promised not to be there.
#include <fmt/format.h>

#include "helve/arith/simplify.h"
#include "helve/ir/expr/build.h"
#include "helve/ir/tensor/call_facts.h"
#include "helve/ir/tensor/renewed.h"
#include "loop_form.h"

namespace helve {

namespace {

/// An extent as a number of iterations: never below 0.
Expr iterations(const FunctionRef& f, const Expr& extent) {
  const Facts facts = facts_of_calls(*f);
  const Expr n = simplify(extent, facts);
  return can_prove(apply(Op::Ge, {n, int_imm(0)}), facts) ? n : max(n, int_imm(0));
}

/// The kind of the loop inside a block of iterations of a loop; one that is divided among lanes or threads is not cut.
LoopKind inner_kind(const Arguments& arguments, const Stmt& s, LoopKind kind) {
  switch (kind) {
    case LoopKind::Serial:
    case LoopKind::Unroll:
    case LoopKind::Parallel: return kind;
    case LoopKind::Pipelined:
    case LoopKind::Persistent: return LoopKind::Serial;
    case LoopKind::Vectorized:
    case LoopKind::Thread: break;
  }
  arguments.refuse(fmt::format("a T.{} loop is not divided", to_string(kind)), s, "make it serial() first");
}

/// A loop over a part of the iterations of another one, as code of its own.
struct Part {
  Stmt stmt;
  LoopValues values;
};

Part part_of(const FunctionRef& f, const For& loop, const Expr& begin, const Expr& extent) {
  const VarRef var = fresh_var(f, loop.vars[0]->name);
  const Renewal body = renew(loop.body, {{loop.vars[0].get(), Expr(var)}});
  Part out{with_header(loop, loop.loop, {var}, {begin}, {extent}, body.stmt), {{loop.vars[0], Expr(var)}}};
  for (const auto& [old_var, new_var] : body.vars) out.values.emplace_back(old_var, Expr(new_var));
  return out;
}

/// One piece for each statement of a block of the old function, which stands in the new one from `after` on.
void add_pieces(std::vector<Piece>& pieces, size_t count, const Cursor& before, const Cursor& after,
                const LoopValues& values) {
  for (size_t i = 0; i < count; ++i) pieces.push_back({before.at(i), after.at(after.position() + i), values});
}

/// How a loop is divided: into so many blocks of so many iterations, with so many behind them.
struct Blocks {
  Expr count, size;
  Expr rest;  ///< iterations that no block holds
  bool guarded = false;  ///< may blocks reach past the last iteration?
};

/// The function under the condition that no iteration is left over; itself where a call cannot be asked for it: the
/// checker then tells whether there is one.
FunctionRef without_rest(const FunctionRef& f, const Arguments& arguments, const Expr& rest) {
  const Expr none = apply(Op::Eq, {rest, int_imm(0)});
  return fault_of_assumption(*f, none) ? f : with_assumption(f, none, arguments.place);
}

/// The loop over blocks around the loop in one, and a loop over the rest if there is one.
Rewrite in_blocks(const FunctionRef& f, const Arguments& arguments, const Expr& n, const Blocks& blocks) {
  const Cursor at = arguments.cursor(0);
  const For& loop = arguments.loop(f, at);
  const LoopKind inside = inner_kind(arguments, required_at(f, at), loop.loop);
  const VarRef& var = loop.vars[0];
  const VarRef outer = fresh_var(f, var->name + "o"), inner = fresh_var(f, var->name + "i");
  const Expr inside_block = Expr(outer) * blocks.size + Expr(inner);
  const Expr value = simplified(loop.begins[0] + inside_block);

  const size_t count = block_of(loop.body).size();
  const Cursor body = at.child("body", 0);
  Edited edited = wrap(f, {body, count}, "body", [&](Stmt below) {
    return with_header(loop, inside, {inner}, {int_imm(0)}, {blocks.size}, std::move(below));
  });
  if (blocks.guarded) {
    edited = edited.then(wrap(edited.function, {body.child("body", 0), count}, "then_body", [&](Stmt below) {
      return if_then(less(inside_block, n), std::move(below), {}, loop.span);
    }));
  }
  const For* now = as<For>(statement_at(*edited.function, at));
  edited = edited.then(revise(edited.function, at,
                              with_header(*now, loop.loop, {outer}, {int_imm(0)}, {blocks.count},
                                          substitute(now->body, {{var.get(), value}}))));
  Rewrite out{edited, {at, 1}, {at, 1}, {{var, value}}, {}, {at, body}};
  if (blocks.rest) {
    const Expr begin = simplified(loop.begins[0] + blocks.count * blocks.size);
    const Part left = part_of(edited.function, loop, begin, blocks.rest);
    const Cursor behind = at.at(at.position() + 1);
    out.edited = edited.then(insert(edited.function, behind, {left.stmt}));
    out.after.size = 2;
    add_pieces(out.pieces, count, body, behind.child("body", 0), left.values);
    out.results.push_back(behind);
  }
  return out;
}

}  // namespace

/// split(i, 4): `for i in serial(n): S` becomes `for io in serial(ceildiv(n, 4)): for ii in serial(4): S`, with
/// `io * 4 + ii` for i: under `if io * 4 + ii < n` unless that always holds ("guard"), or over n // 4 blocks with a
/// loop over the last n % 4 iterations behind ("cut"), or over n // 4 blocks alone, and calls must meet n % 4 == 0
/// ("exact").
Rewrite split_loop(const FunctionRef& f, const Arguments& arguments) {
  const Expr n = iterations(f, arguments.loop(f, arguments.cursor(0)).extents[0]);
  const Expr size = int_imm(arguments.integer(1));
  const std::string& tail = arguments.text(2);
  const Facts facts = facts_of_calls(*f);
  const Expr rest = simplify(floor_mod(n, size), facts);
  const bool whole = can_prove(apply(Op::Eq, {rest, int_imm(0)}), facts);
  const Expr count = simplify(tail == "guard" ? ceil_div(n, size) : floor_div(n, size), facts);
  const FunctionRef calls = tail == "exact" ? without_rest(f, arguments, rest) : f;
  return in_blocks(calls, arguments, n,
                   {count, size, tail == "cut" && !whole ? rest : Expr(), tail == "guard" && !whole});
}

/// divide(i, 4): `for i in serial(10): S` becomes `for io in serial(4): for ii in serial(3): S`, with `io * 3 + ii` for
/// i, and the tails of split(): the last parts are smaller or empty ("guard"), or each part has 10 // 4 iterations and
/// the last 10 % 4 have a loop behind ("cut"), or there are none left over ("exact").
Rewrite divide_loop(const FunctionRef& f, const Arguments& arguments) {
  const Cursor at = arguments.cursor(0);
  const Expr n = iterations(f, arguments.loop(f, at).extents[0]);
  const Expr count = int_imm(arguments.integer(1));
  const std::string& tail = arguments.text(2);
  const Facts facts = facts_of_calls(*f);
  const Expr rest = simplify(floor_mod(n, count), facts);
  const bool whole = can_prove(apply(Op::Eq, {rest, int_imm(0)}), facts);
  const Expr size = simplify(tail == "guard" ? ceil_div(n, count) : floor_div(n, count), facts);
  const FunctionRef calls = tail == "exact" ? without_rest(f, arguments, rest) : f;
  return in_blocks(calls, arguments, n,
                   {count, size, tail == "cut" && !whole ? rest : Expr(), tail == "guard" && !whole});
}

/// cut(i, 2): `for i in serial(n): S` becomes `for i in serial(min(2, n)): S` and a loop over the rest behind it.
Rewrite cut_loop(const FunctionRef& f, const Arguments& arguments) {
  const Cursor at = arguments.cursor(0);
  const For& loop = arguments.loop(f, at);
  if (loop.loop == LoopKind::Thread || loop.loop == LoopKind::Pipelined) {
    arguments.refuse(fmt::format("a T.{} loop is not divided", to_string(loop.loop)), required_at(f, at),
                     "make it serial() first");
  }
  const Facts facts = facts_of_calls(*f);
  const Expr n = iterations(f, loop.extents[0]);
  const Expr first = simplify(min(max(int_imm(arguments.integer(1)), int_imm(0)), n), facts);
  const Expr second = simplify(n - first, facts);
  const size_t count = block_of(loop.body).size();
  const Cursor behind = at.at(at.position() + 1);
  const Part rest = part_of(f, loop, simplified(loop.begins[0] + first), second);
  Edited edited = insert(f, behind, {rest.stmt});
  edited = edited.then(
      revise(edited.function, at, with_header(loop, loop.loop, loop.vars, loop.begins, {first}, loop.body)));
  Rewrite out{edited, {at, 1}, {at, 2}, {}, {}, {at, behind}};
  add_pieces(out.pieces, count, at.child("body", 0), behind.child("body", 0), rest.values);
  return out;
}

/// unroll(i): `for i in serial(2): S` becomes S with 0 for i, then S with 1.
Rewrite unroll_loop(const FunctionRef& f, const Arguments& arguments) {
  const Cursor at = arguments.cursor(0);
  const For& loop = arguments.loop(f, at);
  const Stmt old = required_at(f, at);
  constexpr int64_t kMaxUnrolled = 256;
  const Expr extent = simplified(loop.extents[0]);
  const int64_t* n = int_value(extent);
  if (!n) arguments.refuse("the extent of the loop is not constant", old, "split() the loop and unroll the inner one");
  if (*n > kMaxUnrolled) {
    arguments.refuse(fmt::format("the loop has {} iterations, at most {} are written out", *n, kMaxUnrolled), old,
                     "split() the loop and unroll the inner one");
  }
  if (loop.loop == LoopKind::Thread) {
    arguments.refuse("the iterations of the loop are on different threads", old, "unroll a loop inside it");
  }
  const size_t count = block_of(loop.body).size();
  std::vector<Stmt> copies;
  Rewrite out{{f, Forwarding()}, {at, 1}, {at, 0}, {}, {}, {}};
  for (int64_t i = 0; i < *n; ++i) {
    const Expr value = simplified(loop.begins[0] + int_imm(i));
    const Renewal copy = renew(with_values(loop.body, {{loop.vars[0].get(), value}}));
    LoopValues values{{loop.vars[0], value}};
    for (const auto& [old_var, new_var] : copy.vars) values.emplace_back(old_var, Expr(new_var));
    add_pieces(out.pieces, count, at.child("body", 0), at.at(at.position() + copies.size()), values);
    for (const Stmt& s : block_of(copy.stmt)) copies.push_back(s);
  }
  for (size_t i = 0; i < copies.size(); ++i) out.results.push_back(at.at(at.position() + i));
  out.after.size = copies.size();
  out.edited = replace(f, {at, 1}, copies);
  return out;
}

}  // namespace helve
