// One shadow for each run of overlapping memory.
// Cells are as wide as the largest unit that all elements of the run are whole numbers of, so that tensors of one dtype
// have one cell an element.
#include "shared_memory.h"

#include <algorithm>
#include <numeric>

namespace helve::interp {

namespace {

/// The memory of an instance in bits, from that of offset 0.
struct Memory {
  Instance* instance;
  int64_t origin, begin, end;

  int64_t width() const { return instance->dtype().bits; }
};

std::vector<Memory> declared_memory(const std::vector<MayAlias>& declared, const std::vector<Instance*>& instances) {
  std::vector<Memory> out;
  for (Instance* instance : instances) {
    const auto names = [&](const MayAlias& each) {
      return std::any_of(each.buffers.begin(), each.buffers.end(),
                         [&](const BufferRef& b) { return b.get() == &instance->declaration(); });
    };
    if (instance->is_fresh() || std::none_of(declared.begin(), declared.end(), names)) continue;
    const auto ends = instance->reach();
    if (!ends) continue;
    const int64_t origin = static_cast<int64_t>(reinterpret_cast<intptr_t>(instance->data())) * 8;
    const int64_t bits = instance->dtype().bits;
    out.push_back({instance, origin, origin + ends->first * bits, origin + (ends->second + 1) * bits});
  }
  std::sort(out.begin(), out.end(), [](const Memory& a, const Memory& b) { return a.begin < b.begin; });
  return out;
}

void watch_run(std::vector<Memory>::const_iterator first, std::vector<Memory>::const_iterator last, int64_t end,
               Clock& clock) {
  int64_t unit = 0;
  for (auto m = first; m != last; ++m) unit = std::gcd(unit, std::gcd(m->width(), m->origin - first->origin));
  auto shadow = std::make_shared<Shadow>(clock);
  shadow->adopt(0, (end - first->begin) / unit);
  for (auto m = first; m != last; ++m) {
    m->instance->watch(shadow, (m->origin - first->begin) / unit, m->width() / unit);
  }
}

}  // namespace

void watch_shared(const std::vector<MayAlias>& declared, const std::vector<Instance*>& instances, Clock& clock) {
  const std::vector<Memory> memory = declared_memory(declared, instances);
  for (auto first = memory.begin(); first != memory.end();) {
    int64_t end = first->end;
    auto last = first + 1;
    for (; last != memory.end() && last->begin < end; ++last) end = std::max(end, last->end);
    watch_run(first, last, end, clock);
    first = last;
  }
}

}  // namespace helve::interp
