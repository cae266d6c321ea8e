// All distributions of a tensor over a mesh, and what a device holds, from the definition.
// Tests go through all pairs of them.
#pragma once

#include <string>
#include <vector>

#include "helve/layout/distribution.h"

namespace helve::plan_test {

inline std::vector<MeshAxis> mesh_of(const std::vector<int64_t>& extents) {
  std::vector<MeshAxis> mesh;
  for (size_t a = 0; a < extents.size(); ++a) {
    mesh.push_back({Axis::make(std::string("p") + "xyz"[a], AxisKind::Device), extents[a]});
  }
  return mesh;
}

/// Every axis cuts a dimension, holds copies, has one coordinate with the data, or terms of a sum; every order of axes
/// that cut one dimension.
inline std::vector<Distribution> all_distributions(const std::vector<int64_t>& shape,
                                                   const std::vector<MeshAxis>& mesh) {
  std::vector<Distribution> out;
  const auto rank = static_cast<int64_t>(shape.size());
  int64_t count = 1;
  for (size_t a = 0; a < mesh.size(); ++a) count *= rank + 3;
  for (int64_t k = 0; k < count; ++k) {
    std::vector<std::vector<MeshAxis>> cut(shape.size());
    Point fixed;
    std::vector<Partial> partial;
    int64_t rest = k;
    for (const MeshAxis& each : mesh) {
      const int64_t role = rest % (rank + 3);
      rest /= rank + 3;
      if (role < rank) cut[static_cast<size_t>(role)].push_back(each);
      if (role == rank + 1) fixed[each.axis] = each.extent - 1;
      if (role == rank + 2) partial.push_back({each.axis, PartialOp::Sum});
    }
    out.push_back(make_distribution(shape, mesh, cut, fixed, partial));
    for (size_t d = 0; d < cut.size(); ++d) {
      if (cut[d].size() < 2) continue;
      std::swap(cut[d].front(), cut[d].back());
      out.push_back(make_distribution(shape, mesh, cut, fixed, partial));
      break;
    }
  }
  return out;
}

/// Every index of a shape, the last dimension fastest.
inline std::vector<std::vector<int64_t>> indices(const std::vector<int64_t>& shape) {
  std::vector<std::vector<int64_t>> out = {{}};
  for (int64_t extent : shape) {
    std::vector<std::vector<int64_t>> longer;
    for (const std::vector<int64_t>& index : out) {
      for (int64_t k = 0; k < extent; ++k) {
        longer.push_back(index);
        longer.back().push_back(k);
      }
    }
    out = std::move(longer);
  }
  return out;
}

inline std::vector<std::vector<int64_t>> devices(const std::vector<MeshAxis>& mesh) {
  std::vector<int64_t> extents;
  for (const MeshAxis& each : mesh) extents.push_back(each.extent);
  return indices(extents);
}

inline bool holds(const Distribution& distribution, const std::vector<int64_t>& device,
                  const std::vector<int64_t>& element) {
  const auto part = distribution.part(device);
  if (!part) return false;
  for (size_t d = 0; d < element.size(); ++d) {
    if (element[d] < part->begin[d] || element[d] >= part->begin[d] + part->extents[d]) return false;
  }
  return true;
}

}  // namespace helve::plan_test
