// Boxes of elements, and the blocks that meet one.
// What a device holds is a box, whatever its distribution.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "helve/layout/distribution.h"

namespace helve {

/// The elements from `begin` on, in each dimension. Empty if an extent is 0.
struct Box {
  std::vector<int64_t> begin;
  std::vector<int64_t> extents;
};

inline int64_t elements_of(const Box& box) {
  int64_t out = 1;
  for (int64_t extent : box.extents) out *= extent;
  return out;
}

inline Box intersection(const Box& a, const Box& b) {
  Box out;
  for (size_t d = 0; d < a.begin.size(); ++d) {
    const int64_t begin = std::max(a.begin[d], b.begin[d]);
    const int64_t end = std::min(a.begin[d] + a.extents[d], b.begin[d] + b.extents[d]);
    out.begin.push_back(begin);
    out.extents.push_back(std::max<int64_t>(0, end - begin));
  }
  return out;
}

/// What the block of a device covers of the tensor, for one on the face that holds the data.
inline Box box_of(const Distribution& distribution, const std::vector<int64_t>& device) {
  const std::optional<Distribution::Part> part = distribution.part(device);
  if (part) return {part->begin, part->extents};
  const std::vector<int64_t> nothing(distribution.shape.size(), 0);
  return {nothing, nothing};
}

/// The number of a device, row-major in the mesh.
inline int64_t rank_of(const std::vector<int64_t>& device, const std::vector<MeshAxis>& mesh) {
  int64_t out = 0;
  for (size_t a = 0; a < mesh.size(); ++a) out = out * mesh[a].extent + device[a];
  return out;
}

inline std::vector<int64_t> device_of(int64_t rank, const std::vector<MeshAxis>& mesh) {
  std::vector<int64_t> out(mesh.size());
  for (size_t a = mesh.size(); a-- > 0; rank /= mesh[a].extent) out[a] = rank % mesh[a].extent;
  return out;
}

/// An element of the tensor as one of a part.
inline std::vector<int64_t> within(std::vector<int64_t> element, const Box& part) {
  for (size_t d = 0; d < element.size(); ++d) element[d] -= part.begin[d];
  return element;
}

/// Calls `f(index)` for every index of a shape, the last dimension fastest.
template <class F>
void for_each_index(const std::vector<int64_t>& shape, F&& f) {
  for (int64_t extent : shape) {
    if (extent == 0) return;
  }
  std::vector<int64_t> index(shape.size(), 0);
  while (true) {
    f(index);
    size_t d = shape.size();
    while (d > 0 && ++index[d - 1] == shape[d - 1]) index[--d] = 0;
    if (d == 0) return;
  }
}

/// The number of blocks of these extents that meet the box.
inline int64_t blocks_met(const Box& box, const std::vector<int64_t>& block) {
  int64_t out = 1;
  for (size_t d = 0; d < block.size(); ++d) {
    if (box.extents[d] == 0) return 0;
    out *= (box.begin[d] + box.extents[d] - 1) / block[d] - box.begin[d] / block[d] + 1;
  }
  return out;
}

/// Calls `f(numbers, part)` for every block of these extents that meets the box, with its numbers in each dimension and
/// what it shares with the box.
template <class F>
void for_each_block(const Box& box, const std::vector<int64_t>& block, F&& f) {
  std::vector<int64_t> first, count;
  for (size_t d = 0; d < block.size(); ++d) {
    if (box.extents[d] == 0) return;
    first.push_back(box.begin[d] / block[d]);
    count.push_back((box.begin[d] + box.extents[d] - 1) / block[d] - first[d] + 1);
  }
  for_each_index(count, [&](const std::vector<int64_t>& index) {
    std::vector<int64_t> numbers = first;
    Box whole;
    for (size_t d = 0; d < block.size(); ++d) {
      numbers[d] += index[d];
      whole.begin.push_back(numbers[d] * block[d]);
    }
    whole.extents = block;
    f(numbers, intersection(box, whole));
  });
}

}  // namespace helve
