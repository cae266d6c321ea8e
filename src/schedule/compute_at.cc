// Primitives that move a computation into a loop of those who need it, or whom it needs: compute_at,
// reverse_compute_at.
// They move a nest and narrow its loops; whether what runs there is enough, and the same, is for the checker.
#include <fmt/format.h>

#include <algorithm>

#include "helve/analysis/effects.h"
#include "helve/ir/tensor/renewed.h"
#include "helve/schedule/find.h"
#include "loop_form.h"
#include "narrow.h"

namespace helve {

namespace {

/// Two statements of one block: the nest that moves, and the one that holds the loop it moves into.
struct Neighbours {
  Cursor nest, top;
};

Neighbours neighbours(const FunctionRef& f, const Arguments& arguments) {
  const Cursor &moved = arguments.cursor(0), &loop = arguments.cursor(1);
  const Stmt s = required_at(f, moved), target = required_at(f, loop);
  if (target->kind != StmtKind::For) {
    arguments.refuse("the statement to compute in is no loop over a range", target, "give a loop such as T.serial");
  }
  size_t common = 0;
  while (common < moved.steps.size() && common < loop.steps.size() && moved.steps[common] == loop.steps[common]) {
    ++common;
  }
  if (common == moved.steps.size()) {
    arguments.refuse("the loop is a part of the statement", s, "name a loop of another statement");
  }
  if (common == loop.steps.size()) {
    arguments.refuse("the statement is in the loop already", s, "name another loop");
  }
  const auto up_to = [&](const Cursor& at) {
    return Cursor{{at.steps.begin(), at.steps.begin() + static_cast<ptrdiff_t>(common) + 1}};
  };
  const Neighbours out{up_to(moved), up_to(loop)};
  if (!out.nest.beside(out.top)) {
    arguments.refuse("the statement and the loop are in different branches", s, "name two of one branch");
  }
  for (Cursor at = moved; at != out.nest; at = at.parent()) {
    const Stmt around = required_at(f, at.parent());
    size_t count = 0;
    for_each_block(around, [&](const std::string&, const Stmt& body) { count += block_of(body).size(); });
    if (count == 1) continue;
    arguments.refuse(fmt::format("'{}' around it holds other statements", head_text(around)), s,
                     "name that one to move all that it holds, or take it apart by fission()");
  }
  return out;
}

bool holds_buffer(const std::vector<BufferRef>& all, const Buffer& buffer) {
  return std::any_of(all.begin(), all.end(), [&](const BufferRef& each) { return each.get() == &buffer; });
}

/// What the statement writes; all of it is judged by what is read.
std::vector<BufferRef> written_by(const Stmt& s) {
  std::vector<BufferRef> out;
  for (const BufferEffect& effect : buffer_effects(s)) {
    if (effect.written) out.push_back(effect.buffer);
  }
  return out;
}

/// The block to be judged: the outermost one that allocates one of the buffers, so that elements that are not needed
/// any more may be left out; code of threads, and loops of unknown length, are judged as they are.
Cursor widest(const FunctionRef& f, const Cursor& nest, const std::vector<BufferRef>& buffers) {
  Cursor out = nest;
  walk_cursors(*f, [&](const Cursor& at, const Stmt& s) {
    const Alloc* allocation = as<Alloc>(s);
    if (!allocation || !holds_buffer(buffers, *allocation->buffer) || at.steps.size() >= out.steps.size()) return;
    for (Cursor around = nest; around.steps.size() > at.steps.size();) {
      around = around.parent();
      const Stmt outer = required_at(f, around);
      const For* loop = as<For>(outer);
      if (outer->kind == StmtKind::While || (outer->kind == StmtKind::Kernel && f->mesh) ||
          (loop && loop->loop == LoopKind::Thread)) {
        return;
      }
    }
    out = at;
  });
  return out;
}

/// The nest with narrow loops, at a place in the body of the loop.
Rewrite moved_into(const FunctionRef& f, const Cursor& nest, const Cursor& loop, const Narrowed& narrow,
                   const Cursor& place, std::vector<BufferRef> by_value) {
  const Cursor first = widest(f, nest, by_value).at(0);
  const size_t count = block_of(body_around(*f, first)).size();
  Edited edited = revise(f, nest, narrow.nest);
  edited = edited.then(move(edited.function, {nest, 1}, place));
  edited = edited.then(marked(edited.function, *edited.forward(loop)));
  const size_t left = block_of(body_around(*edited.function, first)).size();
  return {edited, {first, count}, {first, left}, {}, {}, {*edited.forward(nest)}, std::move(by_value)};
}

void refuse_without_bounds(const Arguments& arguments, const Narrowed& narrow, const Stmt& s, const std::string& none) {
  if (!narrow.reason.empty()) {
    arguments.refuse(narrow.reason, s, "name a statement, and a loop, whose subscripts are affine");
  }
  if (!narrow.nest) arguments.refuse(none, s, "name a loop that does");
}

}  // namespace

/// compute_at(B, i): `for x in serial(n): B[x] = S` and `for i in serial(m): R(B[i], B[i + 1])` become `for i in
/// serial(m)` with `for x in serial(i, i + 2): B[x] = S` in front of R.
Rewrite compute_at(const FunctionRef& f, const Arguments& arguments) {
  const Cursor& loop = arguments.cursor(1);
  const auto [nest, top] = neighbours(f, arguments);
  const Stmt s = required_at(f, nest);
  if (nest.position() > top.position()) {
    arguments.refuse("the statement stands behind the loop", s, "reverse_compute_at() moves what reads");
  }
  const Narrowed narrow = narrowed(f, nest, loop, NestRole::Producer);
  refuse_without_bounds(arguments, narrow, s, "the loop reads nothing that the statement writes");
  return moved_into(f, nest, loop, narrow, loop.child("body", 0), written_by(s));
}

/// reverse_compute_at(C, i): `for i in serial(n): B[i] = S` and `for y in serial(m): C[y] = R(B[y], B[y + 1])` become
/// `for i in serial(n)` with B[i] = S and, behind it, the iteration of y that needs no later B[i].
Rewrite reverse_compute_at(const FunctionRef& f, const Arguments& arguments) {
  const Cursor& loop = arguments.cursor(1);
  const auto [nest, top] = neighbours(f, arguments);
  const Stmt s = required_at(f, nest);
  if (nest.position() < top.position()) {
    arguments.refuse("the statement stands in front of the loop", s, "compute_at() moves what is read");
  }
  const std::vector<Stmt> block = block_of(body_around(*f, nest));
  for (size_t between = top.position() + 1; between < nest.position(); ++between) {
    const std::string name = used_behind(block[between], s);
    if (name.empty()) continue;
    arguments.refuse(fmt::format("'{}' is defined between the loop and the statement, which uses it", name),
                     block[between], "define it in front of the loop");
  }
  const Narrowed narrow = narrowed(f, nest, loop, NestRole::Consumer);
  refuse_without_bounds(arguments, narrow, s, "the loop writes nothing that the statement reads");
  const size_t end = block_of(as<For>(required_at(f, loop))->body).size();
  return moved_into(f, nest, loop, narrow, loop.child("body", end), {});
}

}  // namespace helve
