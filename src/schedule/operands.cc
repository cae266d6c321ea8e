// Buffers whose elements are operands of a value and change around it.
// Their effects are known from the statements alone, without a model of accesses.
#include "operands.h"

#include <algorithm>

#include "helve/analysis/effects.h"

namespace helve {

std::vector<BufferRef> changing_operands(const Stmt& store, const Stmt& around) {
  std::vector<BufferRef> out;
  const std::vector<BufferEffect> all = buffer_effects(around);
  for (const BufferEffect& operand : buffer_effects(store)) {
    const auto is_written = [&](const BufferEffect& each) { return each.buffer == operand.buffer && each.written; };
    if (operand.read && std::any_of(all.begin(), all.end(), is_written)) out.push_back(operand.buffer);
  }
  return out;
}

}  // namespace helve
