// The search for the loop.
// Whoever executes a statement twice must not see it: so it writes no memory of the device, and reports nothing.
#include "core_loop.h"

#include <algorithm>

#include "helve/analysis/effects.h"
#include "helve/ir/tensor/visit.h"

namespace helve {

namespace {

bool is_of_device(const Buffer& b) { return b.scope == MemoryScope::Global || b.scope == MemoryScope::Param; }

bool reports(const Stmt& s) {
  bool out = false;
  walk(s, [&](const Stmt& inner) { out |= as<Report>(inner) != nullptr; });
  return out;
}

}  // namespace

bool is_persistent_loop(const Stmt& s) {
  const For* loop = as<For>(s);
  return loop != nullptr && loop->loop == LoopKind::Persistent;
}

const For* core_loop(const std::vector<Stmt>& stmts, const std::vector<MayAlias>& may_alias) {
  const For* out = nullptr;
  const std::unordered_set<const Buffer*> written = written_memory(seq(stmts), may_alias);
  for (const Stmt& s : stmts) {
    if (is_persistent_loop(s)) {
      if (out != nullptr) return nullptr;
      out = as<For>(s);
      continue;
    }
    const std::vector<BufferEffect> effects = buffer_effects(s);
    const bool is_own = std::ranges::all_of(effects, [&](const BufferEffect& each) {
      return !is_of_device(*each.buffer) || (!each.written && !written.contains(each.buffer.get()));
    });
    if (!is_own || reports(s)) return nullptr;
  }
  return out;
}

}  // namespace helve
