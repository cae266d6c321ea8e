// What is still to be divided among threads: loops over elements, and memory that is not of those who would have it.
// Loops are found by their kind, so those that a schedule made of an operation are included.
#include "undivided.h"

#include <fmt/format.h>

#include "helve/analysis/effects.h"
#include "helve/ir/tensor/visit.h"
#include "helve/support/diagnostic.h"
#include "helve/threads/element_loop.h"

namespace helve {

namespace {

/// Shared memory that each thread would have for itself: a GPU has one for all threads of the block.
void refuse_shared_memory_of_threads(const Stmt& loop) {
  walk(loop, [](const Stmt& s) {
    const Alloc* memory = as<Alloc>(s);
    if (!memory || memory->buffer->scope != MemoryScope::Shared) return;
    throw UserError(Code::NoSchedule, s->span, {{"operation", std::string("T.alloc_shared")}},
                    {{{},
                      fmt::format("'{}' stands inside of a T.threads loop: each thread would have its own, and shared "
                                  "memory is that of the block",
                                  memory->buffer->name)}},
                    {"use T.alloc_local, or allocate it in front of the T.threads loop"});
  });
}

/// One of the registers of threads that the statement accesses; else null.
const Buffer* registers_in(const Stmt& s, const std::unordered_set<const Buffer*>& registers) {
  if (const TileOp* op = as<TileOp>(s)) {
    for (const TileOperand& operand : op->operands) {
      const Region* region = std::get_if<Region>(&operand);
      if (region && registers.contains(region->buffer.get())) return region->buffer.get();
    }
  }
  for (const ElementUse& use : element_uses(s)) {
    if (registers.contains(use.buffer)) return use.buffer;
  }
  return nullptr;
}

}  // namespace

void refuse_undivided(const Stmt& s, const TileOp* operation, const Span& span,
                      const std::unordered_set<const Buffer*>& registers) {
  if (!s) return;
  const For* loop = as<For>(s);
  if (loop && loop->loop == LoopKind::Thread) {
    if (!operation) refuse_shared_memory_of_threads(s);
    return;
  }
  const Alloc* memory = as<Alloc>(s);
  const bool local = memory && memory->buffer->scope == MemoryScope::Local;
  if (local && !operation && registers.contains(memory->buffer.get())) {
    throw UserError(Code::NoSchedule, s->span, {{"operation", std::string("T.alloc_local")}},
                    {{{},
                      fmt::format("the kernel has T.threads loops, and '{}' stands outside of them: local memory "
                                  "is that of one thread",
                                  memory->buffer->name)}},
                    {"use T.alloc_shared, or allocate it inside of a T.threads loop"});
  }
  const TileOp* op = as<TileOp>(s);
  const bool kept = op && (op->row().rule == TileRule::Reduce || op->row().rule == TileRule::Scan);
  const bool elements = loop && is_element_loop(*loop);
  if (const Buffer* found = kept || elements ? registers_in(s, registers) : nullptr) {
    const TileOp* named = kept ? op : operation;
    throw UserError(Code::NoSchedule, !operation && s->span.known() ? s->span : span,
                    {{"operation", named ? operation_text(*named) : fmt::format("T.{}", to_string(loop->loop))}},
                    {{{},
                      fmt::format("T.threads loops access '{}', so it is registers of single threads, and this is "
                                  "work of the block",
                                  found->name)}},
                    {"write it as a T.threads loop, or keep the elements in shared memory"});
  }
  if (elements) return;
  for_each_part(s, [](const Expr&) {}, [&](const Stmt& part) { refuse_undivided(part, operation, span, registers); });
}

}  // namespace helve
