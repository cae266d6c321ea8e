// Buffers of shared memory get places in the memory of the block.
// Input: the program of the threads of a block, with its barriers. Output: the same, where every buffer of shared
// memory that is accessed has an offset. Buffers share bytes where analysis/shared_lifetimes.h says that they may; no
// barrier is added for it. Places are given to buffers one after the other, the lowest that is free; of the program's
// order and that by size the one is taken that needs less memory.
// Before:  x = T.alloc_shared((64,), "float32")
//          y = T.alloc_shared((64,), "float32")
//          z = T.alloc_shared((64,), "float32")
//          ... x ...
//          T.sync_threads()
//          ... y ... z ...
// After:   x = T.alloc_shared((64,), "float32", offset=0)
//          y = T.alloc_shared((64,), "float32", offset=256)
//          z = T.alloc_shared((64,), "float32", offset=0)
//          ... x ...
//          T.sync_threads()
//          ... y ... z ...
#include <algorithm>
#include <numeric>

#include "helve/analysis/rings.h"
#include "helve/analysis/shared_lifetimes.h"
#include "helve/ir/tensor/shared_place.h"
#include "helve/ir/tensor/visit.h"
#include "helve/support/diagnostic.h"
#include "helve/transform/passes.h"

namespace helve {

namespace {

struct Placing {
  std::vector<int64_t> offsets;  ///< by buffer
  int64_t end = 0;  ///< in whole units
};

int64_t round_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

/// The lowest place for the buffer beside those that are taken.
SharedPlace lowest_place(const Buffer& buffer, std::vector<SharedPlace> taken) {
  std::sort(taken.begin(), taken.end(), [](const SharedPlace& a, const SharedPlace& b) { return a.begin < b.begin; });
  const int64_t bytes = shared_size(buffer), alignment = shared_alignment(buffer);
  SharedPlace place{0, bytes};
  for (const SharedPlace& each : taken) {
    if (!place.meets(each)) continue;
    place.begin = round_up(each.end, alignment);
    place.end = place.begin + bytes;
  }
  return place;
}

Placing place_in_order(const SharedLifetimes& lifetimes, const std::vector<size_t>& order) {
  Placing out;
  out.offsets.resize(order.size());
  std::vector<std::pair<size_t, SharedPlace>> placed;
  for (const size_t number : order) {
    std::vector<SharedPlace> taken;
    for (const auto& [other, place] : placed) {
      if (lifetimes.meet(number, other)) taken.push_back(place);
    }
    placed.emplace_back(number, lowest_place(*lifetimes.buffers()[number], std::move(taken)));
    out.offsets[number] = placed.back().second.begin;
    out.end = std::max(out.end, round_up(placed.back().second.end, kSharedUnit));
  }
  return out;
}

Placing place(const SharedLifetimes& lifetimes) {
  std::vector<size_t> order(lifetimes.buffers().size());
  std::iota(order.begin(), order.end(), size_t{0});
  Placing by_program = place_in_order(lifetimes, order);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return shared_size(*lifetimes.buffers()[a]) > shared_size(*lifetimes.buffers()[b]);
  });
  Placing by_size = place_in_order(lifetimes, order);
  return by_size.end < by_program.end ? by_size : by_program;
}

}  // namespace

FunctionRef allocate_shared(const FunctionRef& f, const PassOptions&) {
  BufferMap placed;
  walk(f->body, [&](const Stmt& s) {
    const Kernel* kernel = as<Kernel>(s);
    if (!kernel) return;
    RingFault fault;
    const std::optional<Ref<const Kernel>> one = joined_roles(Ref<const Kernel>(kernel), &fault);
    HELVE_CHECK(one, "roles that are out of step: " + fault.reason);
    const SharedLifetimes lifetimes(**one);
    const Placing places = place(lifetimes);
    for (size_t number = 0; number < places.offsets.size(); ++number) {
      const BufferRef& buffer = lifetimes.buffers()[number];
      placed.emplace(buffer.get(), at_offset(buffer, places.offsets[number], buffer->span));
    }
  });
  return placed.empty() ? f : with_body(f, redeclare_buffers(f->body, placed));
}

}  // namespace helve
