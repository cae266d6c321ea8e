// Boxes by loops on the CPU: each element where its index says.
// The parameters are those of the launch; what makes them is tested, not copied.
#include "fake_box_kernels.h"

#include <cstdio>
#include <cstring>

#include "runtime/cuda/device_boxes_abi.h"
#include "runtime/reduce_row.h"

namespace helve::runtime::cuda {

namespace {

template <class Box, class F>
void for_elements(const Box& box, F&& code) {
  for (int64_t t = 0; t < box.count; ++t) {
    int64_t rest = t, source = 0, target = 0;
    for (int d = kBoxDims - 1; d >= 0; --d) {
      source += rest % box.dims[d].extent * box.dims[d].source;
      target += rest % box.dims[d].extent * box.dims[d].target;
      rest /= box.dims[d].extent;
    }
    code(source, target);
  }
}

void copy(const CopyBoxes& all, int64_t word, unsigned launched) {
  for (unsigned k = 0; k < launched; ++k) {
    const CopyBox& box = all.box[k];
    for_elements(box, [&](int64_t source, int64_t target) {
      std::memmove(box.target + target * word, box.source + source * word, static_cast<size_t>(word));
    });
  }
}

void reduce(const ReduceBox& box, DLDataType dtype, ReduceOp op) {
  const ReduceRow row = find_reduce_row(dtype, op);
  const int64_t bytes = element_bytes(dtype);
  for_elements(box, [&](int64_t source, int64_t target) {
    std::byte* const to = box.target + target * bytes;
    std::vector<const std::byte*> sources;
    if (box.continues != 0) sources.push_back(to);
    for (int k = 0; k < box.terms; ++k) sources.push_back(box.sources[k] + source * bytes);
    row({sources, 0, bytes}, {{&to, 1}, 0, bytes}, 1);
  });
}

}  // namespace

FakeBoxKernel find_box_kernel(const std::string& name) {
  int word = 0, code = 0, bits = 0, op = 0;
  if (std::sscanf(name.c_str(), "helve_copy_boxes_%d", &word) == 1) {
    return [word](const LaunchConfig& config, void** parameters) {
      copy(*static_cast<const CopyBoxes*>(parameters[0]), word, config.grid[1]);
    };
  }
  if (std::sscanf(name.c_str(), "helve_reduce_box_%d_%d_%d", &code, &bits, &op) == 3) {
    return [code, bits, op](const LaunchConfig&, void** parameters) {
      reduce(*static_cast<const ReduceBox*>(parameters[0]), {static_cast<uint8_t>(code), static_cast<uint8_t>(bits), 1},
             static_cast<ReduceOp>(op));
    };
  }
  return {};
}

}  // namespace helve::runtime::cuda
