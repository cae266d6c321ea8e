// One shadow for each run of overlapping buffers.
// Cells are as wide as the largest unit that all elements of the run are whole numbers of, so that buffers of one dtype
// have one cell an element.
#include "block_memory.h"

#include <algorithm>
#include <numeric>

#include "helve/ir/tensor/buffer_layout.h"
#include "helve/ir/tensor/shared_place.h"
#include "helve/ir/tensor/visit.h"
#include "trace.h"

namespace helve::interp {

std::shared_ptr<const std::vector<int64_t>> addresses_of(const Buffer& buffer) {
  if (!buffer.layout) return nullptr;
  auto out = std::make_shared<std::vector<int64_t>>();
  const std::vector<int64_t> shape = *constant_shape(buffer.shape), domain = layout_domain(buffer);
  int64_t size = 1;
  for (const int64_t extent : shape) size *= extent;
  out->reserve(static_cast<size_t>(size));
  for (int64_t i = 0; i < size; ++i) {
    out->push_back(buffer.layout->apply(flatten(unflatten(i, shape), domain)).front().at(axes::m()));
  }
  return out;
}

BlockMemory::BlockMemory(const Stmt& body, const Scope& scope) {
  if (!scope.checked()) return;
  std::vector<Member> members;
  walk(body, [&](const Stmt& s) {
    const Alloc* n = as<Alloc>(s);
    if (!n || !n->buffer->offset || n->buffer->slots > 0) return;  // a ring's slots share bytes with nothing
    const SharedPlace place = *place_of(*n->buffer);
    members.push_back({n->buffer, scope.slot(*n->buffer), place.begin, place.end, 1, addresses_of(*n->buffer)});
  });
  std::sort(members.begin(), members.end(), [](const Member& a, const Member& b) { return a.begin < b.begin; });
  for (Member& member : members) {
    if (groups_.empty() || groups_.back().end <= member.begin) groups_.push_back({{}, member.begin, member.end, 0});
    Group& group = groups_.back();
    group.end = std::max(group.end, member.end);
    group.unit = std::gcd(group.unit, std::gcd(member.buffer->dtype.bytes(), member.begin - group.begin));
    group.members.push_back(std::move(member));
  }
  for (Group& group : groups_) {
    for (Member& member : group.members) member.cells = member.buffer->dtype.bytes() / group.unit;
  }
}

void BlockMemory::begin(Frame& frame) const {
  for (const Group& group : groups_) {
    Instance& first = *frame.buffers[group.members.front().slot];
    if (!first.placed()) {
      auto shadow = std::make_shared<Shadow>(frame.trace->checker().clock());
      for (const Member& member : group.members) {
        frame.buffers[member.slot]->place(shadow, (member.begin - group.begin) / group.unit, member.cells,
                                          member.addresses);
      }
    }
    first.shadow()->begin(0, (group.end - group.begin) / group.unit, {});
  }
}

}  // namespace helve::interp
