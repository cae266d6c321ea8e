// The parameters of the kernels of boxes.
// They travel with the launch, so that no table has to be brought to the GPU before; a launch has room for 4 KiB.
#pragma once

#include <cstddef>
#include <cstdint>

namespace helve::runtime::cuda {

constexpr int kBoxDims = 6;
constexpr int kCopyBoxes = 24;    ///< of a launch
constexpr int kReduceTerms = 480;  ///< of a launch

/// Strides in elements, or of what is copied as one. Dimensions that a box does not have are first, of extent 1.
struct BoxDim {
  int64_t extent = 1, source = 0, target = 0;
};

struct CopyBox {
  const std::byte* source = nullptr;
  std::byte* target = nullptr;
  int64_t count = 0;
  BoxDim dims[kBoxDims];
};

struct CopyBoxes {
  int64_t boxes = 0;
  CopyBox box[kCopyBoxes];
};
static_assert(sizeof(CopyBoxes) <= 4096);

struct ReduceBox {
  std::byte* target = nullptr;
  int64_t count = 0;
  BoxDim dims[kBoxDims];
  int32_t terms = 0;
  int32_t continues = 0;  ///< the target holds the reduction of the terms before
  const std::byte* sources[kReduceTerms] = {};
};
static_assert(sizeof(ReduceBox) <= 4096);

}  // namespace helve::runtime::cuda
