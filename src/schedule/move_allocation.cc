// Primitives that move an allocation out of a loop, or into one: lift, sink.
// Iterations then share memory, or have memory of their own; that none sees what another one left is for the checker.
#include <fmt/format.h>

#include "helve/ir/tensor/visit.h"
#include "loop_form.h"

namespace helve {

namespace {

/// The allocation at the cursor; refused if it is none.
Stmt allocation_at(const FunctionRef& f, const Cursor& at, const Arguments& arguments) {
  const Stmt s = required_at(f, at);
  if (!as<Alloc>(s))
    arguments.refuse("the statement allocates no memory", s, "name a buffer that the kernel allocates");
  return s;
}

bool uses(const Stmt& s, const BufferRef& buffer) {
  const BufferRef other = declare_again(*buffer);
  return replace_buffers(s, {{buffer.get(), other}}) != s;
}

/// Is the buffer used behind its allocation, but not below the loop?
bool is_used_outside(const FunctionRef& f, const Cursor& at, const Cursor& loop, const BufferRef& buffer) {
  const size_t size = block_of(as<For>(required_at(f, loop))->body).size();
  const FunctionRef without = erase(f, {loop.child("body", 0), size}).function;
  for (Cursor next = at.at(at.position() + 1); const Stmt s = statement_at(*without, next);
       next = next.at(next.position() + 1)) {
    if (uses(s, buffer)) return true;
  }
  return false;
}

}  // namespace

/// lift(W, i): `for i in serial(4): W = alloc_local(8); S` becomes `W = alloc_local(8)` and `for i in serial(4): S`.
Rewrite lift_allocation(const FunctionRef& f, const Arguments& arguments) {
  const Cursor at = arguments.cursor(0), outer = arguments.cursor(1);
  const Stmt s = allocation_at(f, at, arguments);
  if (at == outer || !at.within(outer)) {
    arguments.refuse("the allocation is not inside of the loop", s, "name a loop around the allocation");
  }
  return {move(f, {at, 1}, outer), {outer, 1}, {outer, 2}, {}, {}, {outer}};
}

/// sink(W, i): `W = alloc_local(8)` and `for i in serial(4): S` become `for i in serial(4): W = alloc_local(8); S`.
Rewrite sink_allocation(const FunctionRef& f, const Arguments& arguments) {
  const Cursor at = arguments.cursor(0), loop = arguments.cursor(1);
  const Stmt s = allocation_at(f, at, arguments);
  const size_t depth = at.steps.size();
  const Cursor top{
      {loop.steps.begin(), loop.steps.begin() + static_cast<std::ptrdiff_t>(std::min(depth, loop.steps.size()))}};
  if (loop.steps.size() < depth || !top.beside(at) || top.position() <= at.position()) {
    arguments.refuse("the loop does not stand behind the allocation", s,
                     "name a loop behind the allocation, or inside of a statement there");
  }
  if (!as<For>(required_at(f, loop))) {
    arguments.refuse("the statement is no loop over a range", required_at(f, loop), "give a loop such as T.serial");
  }
  const BufferRef& buffer = as<Alloc>(s)->buffer;
  if (is_used_outside(f, at, loop, buffer)) {
    arguments.refuse(fmt::format("'{}' is used outside of the loop", buffer->name), s,
                     "name a loop around all that uses it");
  }
  const Edited edited = move(f, {at, 1}, loop.child("body", 0));
  const size_t size = top.position() - at.position();
  const Cursor result = *edited.forward(at);
  return {edited, {at, size + 1}, {at, size}, {}, {}, {result}};
}

}  // namespace helve
