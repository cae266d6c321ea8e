// Constant memory of a kernel, from its effects.
// Parameters do not overlap (the call checks it) unless they are declared to.
#include "helve/analysis/constant_buffers.h"

#include "helve/analysis/effects.h"
#include "helve/ir/tensor/visit.h"

namespace helve {

std::unordered_set<const Buffer*> constant_buffers(const Kernel& kernel, const KernelInterface& interface,
                                                   const std::vector<MayAlias>& may_alias) {
  std::unordered_set<const Buffer*> written;
  for (const BufferEffect& effect : buffer_effects(kernel.body)) {
    if (effect.written) written.insert(effect.buffer.get());
  }
  const auto is_constant = [&](const Buffer& b) { return !written.contains(&b) && is_apart(interface, may_alias, &b); };
  bool loads_others = false;
  const auto loads = [&](const Buffer& b) { loads_others |= is_global(b) && !is_constant(b); };
  for (const ElementUse& use : element_uses(kernel.body)) {
    if (!use.write) loads(*use.buffer);
  }
  walk(kernel.body, [&](const Stmt& s) {  // operations also load, and what other cores have is loaded
    if (const Peer* other = as<Peer>(s)) loads(*other->source);
    const TileOp* op = as<TileOp>(s);
    for (size_t i = 0; op && i < op->operands.size(); ++i) {
      if (op->is_region(i) && op->row().params[i].reads()) loads(*op->region(i).buffer);
    }
  });
  std::unordered_set<const Buffer*> out;
  for (const BufferRef& buffer : interface.buffers) {
    if (!loads_others && is_constant(*buffer)) out.insert(buffer.get());
  }
  return out;
}

}  // namespace helve
