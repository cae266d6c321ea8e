// Creation of tensor maps.
// Tensors that a map cannot describe are found here, or refused by the driver.
#include "tensor_maps.h"

#include <algorithm>

#include "helve/support/diagnostic.h"

namespace helve::runtime::cuda {

namespace {

constexpr int64_t kMaxExtent = 0x7ffffe00;  // kernels use this coordinate for the end of every tensor
constexpr int64_t kStrideUnit = 16, kStrideLimit = int64_t{1} << 40;

/// Types of unsigned integers: elements are only copied, and zero is zero bits.
int element_type(int64_t bytes) {
  switch (bytes) {
    case 1: return 0;
    case 2: return 1;
    case 4: return 2;
    case 8: return 4;
  }
  HELVE_FAIL("a tensor map of elements that are no power of two of bytes");
}

int swizzle_mode(int64_t bytes) { return bytes == 32 ? 1 : bytes == 64 ? 2 : bytes == 128 ? 3 : 0; }

constexpr int kNoInterleave = 0, kPromoteTo256Bytes = 3, kFillZero = 0;

}  // namespace

bool TensorMaps::describe(const TensorParam& param, const Plan& plan, const Frame& frame, Tensor* out) {
  const size_t rank = param.dims.size();
  const int64_t element = element_bytes(param.dtype);
  __int128 compact = element;
  for (size_t k = 0; k < rank; ++k) {
    const Extent& dim = param.dims[rank - 1 - k];
    const auto* bound = std::get_if<BindSlot>(&dim);
    const int64_t extent = bound ? frame.slots[static_cast<size_t>(bound->slot)] / bound->elements
                                 : evaluate(std::get<ScalarProgram>(dim), frame.slots, &plan.slots);
    if (extent < 1 || extent > kMaxExtent) return false;
    out->extents[k] = static_cast<uint64_t>(extent);
    if (k > 0) {
      const __int128 stride = param.strides.empty()
                                  ? compact
                                  : __int128{evaluate(param.strides[rank - 1 - k], frame.slots, &plan.slots)} * element;
      if (stride < 0 || stride % kStrideUnit != 0 || stride >= kStrideLimit) return false;
      out->strides[k - 1] = static_cast<uint64_t>(stride);
    }
    compact *= extent;
  }
  return true;
}

bool TensorMaps::make(const Plan& plan, const Launch& launch, const Frame& frame) {
  for (const TensorMap& map : launch.maps) {
    const auto position = static_cast<size_t>(map.buffer);
    const TensorParam& param = plan.params[static_cast<size_t>(launch.buffers[position])];
    Tensor tensor;
    tensor.base = frame.pointers[position];
    if (!describe(param, plan, frame, &tensor)) return false;
    Made& made = made_[&map];
    if (made.tensor == tensor) continue;
    const size_t rank = map.box.size();
    std::array<uint32_t, kMaxRank> box = {}, steps = {};
    std::copy(map.box.rbegin(), map.box.rend(), box.begin());
    std::fill_n(steps.begin(), rank, 1);
    made.tensor = {};
    const Driver& cuda = driver();
    const int result = cuda.encode_tensor_map.result(&made.bytes, element_type(element_bytes(param.dtype)),
                                                     static_cast<unsigned>(rank), tensor.base, tensor.extents.data(),
                                                     tensor.strides.data(), box.data(), steps.data(), kNoInterleave,
                                                     swizzle_mode(map.swizzle), kPromoteTo256Bytes, kFillZero);
    if (result == kCudaInvalidValue) return false;
    if (result != kCudaSuccess) fail_call(cuda.encode_tensor_map.name(), result);
    made.tensor = tensor;
  }
  return true;
}

}  // namespace helve::runtime::cuda
