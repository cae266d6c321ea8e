// What is still to be divided among threads: loops over elements, and local memory that the block would have.
// Loops are found by their kind, so those that a schedule made of an operation are included.
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
  const Alloc* memory = as<Alloc>(s);
  if (memory && memory->buffer->scope == MemoryScope::Local && !operation) {
    throw UserError(Code::NoSchedule, s->span, {{"operation", std::string("T.alloc_local")}},
                    {{{},
                      fmt::format("the kernel has T.threads loops, and '{}' stands outside of them: local memory "
                                  "is that of one thread",
                                  memory->buffer->name)}},
                    {"use T.alloc_shared, or allocate it inside of a T.threads loop"});
  }
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
