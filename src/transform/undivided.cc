// Loops that are still to be divided among threads.
// They are found by their kind, so loops that a schedule made of an operation are included.
#include "undivided.h"

#include <fmt/format.h>

#include "helve/ir/tensor/visit.h"
#include "helve/support/diagnostic.h"
#include "helve/threads/element_loop.h"

namespace helve {

void refuse_undivided(const Stmt& s, const TileOp* operation, const Span& span) {
  if (!s) return;
  const For* loop = as<For>(s);
  if (loop && loop->loop == LoopKind::Thread) return;
  const TileOp* op = as<TileOp>(s);
  const bool kept = op && (op->row().rule == TileRule::Reduce || op->row().rule == TileRule::Scan);
  if (kept || (loop && is_element_loop(*loop))) {
    const TileOp* named = kept ? op : operation;
    throw UserError(
        Code::NoSchedule, !operation && s->span.known() ? s->span : span,
        {{"operation", named ? operation_text(*named) : fmt::format("T.{}", to_string(loop->loop))}},
        {{{}, "the kernel has T.threads loops: it is written for its threads, and this is not divided yet"}},
        {"write it as a T.threads loop, or move it to a kernel without such loops"});
  }
  for_each_part(s, [](const Expr&) {}, [&](const Stmt& part) { refuse_undivided(part, operation, span); });
}

}  // namespace helve
