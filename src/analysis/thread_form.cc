// A kernel with a loop over threads is in thread form.
// Such loops are not nested. What stands beside them is work of the block, which distribute_threads divides.
#include "helve/analysis/thread_form.h"

#include "helve/analysis/effects.h"
#include "helve/ir/tensor/visit.h"

namespace helve {

namespace {

/// Adds the fragments among the operands of tile operations below `s`; if `instructions`, of these only, and only those
/// without a layout.
void add_operands(const Stmt& s, bool instructions, std::unordered_set<const Buffer*>* out) {
  walk(s, [&](const Stmt& part) {
    const TileOp* op = as<TileOp>(part);
    if (!op || (instructions && op->row().rule != TileRule::Instruction)) return;
    for (const TileOperand& operand : op->operands) {
      const Region* region = std::get_if<Region>(&operand);
      const bool fragment = region && region->buffer->scope == MemoryScope::Fragment;
      if (fragment && !(instructions && region->buffer->layout)) out->insert(region->buffer.get());
    }
  });
}

}  // namespace

bool is_written_for_threads(const Kernel& kernel) {
  bool found = false;
  walk(kernel.body, [&](const Stmt& s) {
    const For* loop = as<For>(s);
    found |= loop && loop->loop == LoopKind::Thread;
  });
  return found;
}

std::unordered_set<const Buffer*> registers_of_threads(const Kernel& kernel) {
  std::unordered_set<const Buffer*> out;
  add_operands(kernel.body, true, &out);
  walk(kernel.body, [&](const Stmt& s) {
    const For* loop = as<For>(s);
    if (!loop || loop->loop != LoopKind::Thread) return;
    add_operands(s, false, &out);
    for (const ElementUse& use : element_uses(s)) {
      if (use.buffer->scope == MemoryScope::Fragment || use.buffer->scope == MemoryScope::Local) out.insert(use.buffer);
    }
  });
  return out;
}

const Buffer* registers_of_threads_among(std::initializer_list<const Region*> regions, const Kernel& kernel) {
  if (!is_written_for_threads(kernel)) return nullptr;
  const std::unordered_set<const Buffer*> registers = registers_of_threads(kernel);
  for (const Region* region : regions) {
    if (registers.contains(region->buffer.get())) return region->buffer.get();
  }
  return nullptr;
}

}  // namespace helve
