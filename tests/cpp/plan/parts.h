// The parts of a tensor on all devices, in memory of their own.
// Row-major, or the other way round on some devices.
#pragma once

#include <numeric>
#include <vector>

#include "every_distribution.h"
#include "helve/plan/local_exchange.h"

namespace helve::plan_test {

/// The parts of all devices, in one piece of memory each.
struct Parts {
  std::vector<std::vector<int32_t>> memory;
  std::vector<std::vector<int64_t>> extents, strides;
  std::vector<LocalPart> parts;

  /// `columns`: the first dimension fastest, on devices of odd numbers.
  Parts(const Distribution& distribution, bool columns) {
    for (const std::vector<int64_t>& device : devices(distribution.mesh)) {
      const auto part = distribution.part(device);
      std::vector<int64_t> size = part ? part->extents : std::vector<int64_t>(distribution.shape.size(), 0),
                           steps(size.size(), 1);
      const bool turned = columns && memory.size() % 2 == 1;
      int64_t count = 1;
      for (size_t k = 0; k < size.size(); ++k) {
        const size_t d = turned ? k : size.size() - 1 - k;
        steps[d] = count;
        count *= size[d];
      }
      memory.emplace_back(part ? static_cast<size_t>(count) + 1 : 0, -100);
      extents.push_back(size);
      strides.push_back(steps);
    }
    for (size_t k = 0; k < memory.size(); ++k) {
      auto* data = memory[k].empty() ? nullptr : reinterpret_cast<std::byte*>(memory[k].data());
      parts.push_back({data, extents[k], strides[k]});
    }
  }

  int32_t& at(const Distribution& distribution, size_t device, const std::vector<int64_t>& element) {
    const auto part = distribution.part(devices(distribution.mesh)[device]);
    int64_t offset = 0;
    for (size_t d = 0; d < element.size(); ++d) offset += (element[d] - part->begin[d]) * strides[device][d];
    return memory[device][static_cast<size_t>(offset)];
  }
};

inline int32_t value_of(const std::vector<int64_t>& element) {
  return std::accumulate(element.begin(), element.end(), 1,
                         [](int32_t a, int64_t b) { return 10 * a + static_cast<int32_t>(b); });
}

}  // namespace helve::plan_test
