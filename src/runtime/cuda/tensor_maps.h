// The tensor maps of a call's launches.
// A map is created from an address, extents and strides; a frame caches its maps, since calls are often repeated with
// the same tensors.
#pragma once

#include <array>
#include <unordered_map>

#include "frame.h"
#include "helve/runtime/cuda/driver.h"
#include "helve/runtime/plan.h"

namespace helve::runtime::cuda {

class TensorMaps {
 public:
  /// Creates the maps of a launch whose buffers are the frame's pointers. False if the driver cannot map such a tensor:
  /// without elements, with more than 2^31 - 512 along a dimension, or with strides that are negative, not multiples of
  /// 16 bytes, or 2^40 bytes or more.
  bool make(const Plan& plan, const Launch& launch, const Frame& frame);
  /// The map, valid after `make`.
  TensorMapBytes& find(const TensorMap& map) { return made_.at(&map).bytes; }

 private:
  static constexpr size_t kMaxRank = 5;

  /// A tensor, innermost dimension first; strides in bytes, without the first.
  struct Tensor {
    void* base = nullptr;
    std::array<uint64_t, kMaxRank> extents = {};
    std::array<uint64_t, kMaxRank> strides = {};
    bool operator==(const Tensor&) const = default;
  };
  struct Made {
    TensorMapBytes bytes;
    Tensor tensor;
  };

  static bool describe(const TensorParam& param, const Plan& plan, const Frame& frame, Tensor* out);

  std::unordered_map<const TensorMap*, Made> made_;
};

}  // namespace helve::runtime::cuda
