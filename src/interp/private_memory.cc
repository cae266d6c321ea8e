// Elements that an iteration overwrites are saved; afterwards, these are the elements that it has left values in. A
// store that changes nothing counts too.
#include "private_memory.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "helve/ir/tensor/tile_op.h"
#include "helve/ir/tensor/visit.h"
#include "trace.h"

namespace helve::interp {

std::vector<size_t> private_around(const Stmt& body, const Scope& scope) {
  std::vector<size_t> out;
  if (scope.options().check.in_turn) return out;
  const auto add = [&](const Storage& buffer, MemoryScope memory) {
    if (memory != MemoryScope::Local || !scope.defines(buffer)) return;
    const size_t slot = scope.slot(buffer);
    const std::vector<size_t>& around = scope.kernel_buffers;
    if (std::find(around.begin(), around.end(), slot) == around.end()) return;
    if (std::find(out.begin(), out.end(), slot) == out.end()) out.push_back(slot);
  };
  walk(body, [&](const Stmt& s) {
    if (const Store* n = as<Store>(s)) add(*n->buffer, n->buffer->scope);
    if (const TileStore* n = as<TileStore>(s)) add(*n->buffer, n->buffer->scope);
    const TileOp* op = as<TileOp>(s);
    for (size_t i = 0; op && i < op->operands.size(); ++i) {
      const Region* region = std::get_if<Region>(&op->operands[i]);
      if (region && op->row().params[i].writes()) add(*region->buffer, region->buffer->scope);
    }
  });
  return out;
}

PrivateMemory::PrivateMemory(const std::vector<size_t>& slots, Frame& frame) {
  for (size_t slot : slots) parts_.emplace_back(*frame.buffers[slot]);
  if (frame.trace && !slots.empty()) loop_ = frame.trace->loop();
}

void PrivateMemory::end_iteration() {
  for (Part& part : parts_) part.end_iteration();
}

void PrivateMemory::end_loop() {
  for (Part& part : parts_) part.end_loop(loop_);
}

void PrivateMemory::Part::before_write(int64_t offset) {
  const auto [at, first] = found_.try_emplace(offset);
  if (first) at->second = element_at(offset);
}

void PrivateMemory::Part::end_iteration() {
  if (found_.empty()) return;
  instance_.tell(nullptr);
  for (const auto& [offset, found] : found_) {
    const auto [at, first] = left_.insert_or_assign(offset, element_at(offset));
    at->second.several = !first;
    put(offset, found);
  }
  found_.clear();
  instance_.tell(this);
}

void PrivateMemory::Part::end_loop(const Left& loop) {
  instance_.tell(around_);
  for (auto& [offset, element] : left_) {
    if (element.several) {
      element.value = undefined_value(instance_.dtype());
      element.cell.left = loop;
    }
    put(offset, element);
  }
}

PrivateMemory::Element PrivateMemory::Part::element_at(int64_t offset) const {
  Element out;
  out.value = instance_.read(offset);
  if (instance_.shadow()) out.cell = instance_.cells(offset).front();
  return out;
}

void PrivateMemory::Part::put(int64_t offset, const Element& element) {
  instance_.write(offset, element.value);
  if (instance_.shadow()) instance_.cells(offset).front() = element.cell;
}

}  // namespace helve::interp
