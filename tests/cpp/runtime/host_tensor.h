// A tensor in host memory with its DLPack view.
// Tests call executors the way a binding does: with borrowed DLTensors.
#pragma once

#include <span>
#include <vector>

#include "helve/runtime/executor.h"

namespace helve::runtime {

constexpr DLDataType kFloat32{kDLFloat, 32, 1};

class HostTensor {
 public:
  /// Zeros in 64-byte aligned memory; `strides` empty: none given.
  HostTensor(DLDataType dtype, std::vector<int64_t> shape, std::vector<int64_t> strides = {})
      : shape_(std::move(shape)), strides_(std::move(strides)) {
    int64_t elements = 1, reach = 1;
    for (size_t d = 0; d < shape_.size(); ++d) {
      elements *= shape_[d];
      if (!strides_.empty()) reach += (shape_[d] - 1) * strides_[d];
    }
    bytes_ = std::max(elements, reach) * element_bytes(dtype);
    memory_.resize(static_cast<size_t>(bytes_) / sizeof(Line) + 1);
    view_ = {memory_.data(),
             {kDLCPU, 0},
             static_cast<int32_t>(shape_.size()),
             dtype,
             shape_.data(),
             strides_.empty() ? nullptr : strides_.data(),
             0};
  }
  HostTensor(const HostTensor&) = delete;

  DLTensor& view() { return view_; }
  TensorArgument arg(bool read_only = false) { return {&view_, read_only}; }
  std::span<float> floats() { return {reinterpret_cast<float*>(memory_.data()), static_cast<size_t>(bytes_ / 4)}; }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<int64_t> shape_, strides_;
  int64_t bytes_ = 0;
  std::vector<Line> memory_;
  DLTensor view_{};
};

}  // namespace helve::runtime
