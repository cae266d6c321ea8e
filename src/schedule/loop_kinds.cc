// Primitives that change the kind of a loop: parallel, vectorize, serial, pipeline.
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

/// Is it one whose lanes the schedule has made a vector?
bool is_vector(const Stmt& s) {
  const For* loop = as<For>(s);
  return loop && loop->scheduled && loop->loop == LoopKind::Vectorized && *int_value(loop->extents[0]) > 1;
}

/// A loop of lanes of the schedule that is around the place or below it; null if there is none.
Stmt other_vector(const FunctionRef& f, const Cursor& at) {
  for (Cursor around = at; around.has_parent();) {
    around = around.parent();
    if (const Stmt s = required_at(f, around); is_vector(s)) return s;
  }
  Stmt found;
  walk_cursors(required_at(f, at), at, [&](const Cursor& below, const Stmt& s) {
    if (!found && below != at && is_vector(s)) found = s;
  });
  return found;
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
  const Stmt other = *int_value(loop.extents[0]) > 1 ? other_vector(f, arguments.cursor(0)) : Stmt();
  if (other) {
    arguments.refuse("another loop of the nest is vectorized", other,
                     "vectorize one loop of a nest; serial() takes it back from the other one");
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

}  // namespace helve
