// The contents before the loop are kept; what differs behind an iteration is what it left.
// A checked run knows of stores that change nothing; elsewhere they leave what every iteration finds, so nobody can
// tell them from no store.
#include "private_memory.h"

#include <algorithm>
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
  for (size_t slot : slots) {
    Part& part = parts_.emplace_back(Part{frame.buffers[slot], {}, {}});
    const auto ends = part.instance->reach();
    for (int64_t i = 0; ends && i <= ends->second; ++i) part.found.push_back(element_of(*part.instance, i));
  }
  if (frame.trace && !slots.empty()) loop_ = frame.trace->loop();
}

void PrivateMemory::end_iteration() {
  for (Part& part : parts_) {
    for (size_t i = 0; i < part.found.size(); ++i) {
      const int64_t offset = static_cast<int64_t>(i);
      const Element& found = part.found[i];
      Element now = element_of(*part.instance, offset);
      const bool stored = loop_.loop ? now.cell.write.time != found.cell.write.time : now.value.i != found.value.i;
      if (!stored) continue;
      put(*part.instance, offset, found);
      const auto [at, first] = part.left.try_emplace(offset, now);
      if (first) continue;
      at->second = std::move(now);
      at->second.several = true;
    }
  }
}

void PrivateMemory::end_loop() {
  for (Part& part : parts_) {
    for (auto& [offset, element] : part.left) {
      if (element.several) {
        element.value = undefined_value(part.instance->dtype());
        element.cell.left = loop_;
      }
      put(*part.instance, offset, element);
    }
  }
}

PrivateMemory::Element PrivateMemory::element_of(const Instance& instance, int64_t offset) {
  Element out;
  out.value = instance.read(offset);
  if (instance.shadow()) out.cell = instance.cells(offset).front();
  return out;
}

void PrivateMemory::put(Instance& instance, int64_t offset, const Element& element) {
  instance.write(offset, element.value);
  if (instance.shadow()) instance.cells(offset).front() = element.cell;
}

}  // namespace helve::interp
