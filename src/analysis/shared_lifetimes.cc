// Which buffers of shared memory may have the same bytes.
// Values and barriers are two questions, each with an analysis of its own in lifetimes/.
#include "helve/analysis/shared_lifetimes.h"

#include "helve/analysis/effects.h"
#include "helve/ir/tensor/visit.h"
#include "lifetimes/liveness.h"
#include "lifetimes/order.h"

namespace helve {

using namespace lifetimes;

namespace {

/// The buffers that share bytes with none: those that take part in collectives or that other cores access, those that
/// TMA or tensor cores access, which fences do not know by other names, and mbarriers.
BufferSet kept_apart(const Stmt& body, const Numbers& numbers) {
  BufferSet out;
  walk(body, [&](const Stmt& s) {
    if (const Peer* other = as<Peer>(s)) {
      const auto found = numbers.find(other->source.get());
      if (found != numbers.end()) out.add(found->second);
    }
    const TileOp* op = as<TileOp>(s);
    if (!op || !(op->row().is_collective() || op->in_async_proxy() || op->barriers())) return;
    for (const RegionAccess& access : accesses(s)) {
      const auto found = numbers.find(access.region.buffer.get());
      if (found != numbers.end()) out.add(found->second);
    }
  });
  return out;
}

}  // namespace

SharedLifetimes::SharedLifetimes(const Kernel& kernel) {
  Numbers numbers;
  std::unordered_set<const Buffer*> accessed;
  for (const BufferEffect& effect : buffer_effects(kernel.body)) accessed.insert(effect.buffer.get());
  walk(kernel.body, [&](const Stmt& s) {
    const Alloc* n = as<Alloc>(s);
    if (!n || n->buffer->scope != MemoryScope::Shared || !accessed.contains(n->buffer.get())) return;
    if (numbers.emplace(n->buffer.get(), buffers_.size()).second) buffers_.push_back(n->buffer);
  });
  const size_t count = buffers_.size();
  meet_.assign(count, std::vector<bool>(count, true));
  if (count < 2) return;
  Interference interference(count);
  BufferSet all;
  for (size_t number = 0; number < count; ++number) all.add(number);
  interference.add(kept_apart(kernel.body, numbers), all);
  add_unordered(kernel, numbers, interference);
  add_live_together(kernel, buffers_, numbers, interference);
  for (size_t a = 0; a < count; ++a) {
    for (size_t b = 0; b < count; ++b) meet_[a][b] = a == b || interference.contain(a, b);
  }
}

}  // namespace helve
