// Kernels of a program as the fake driver runs them: their CUDA text, which a test has compiled for the CPU.
// The libraries stand in an environment variable, so that processes without a test in them run whole programs.
#pragma once

#include <string>

#include "fake_box_kernels.h"

namespace helve::runtime::cuda {

/// HELVE_FAKE_KERNELS is `library:number`: the kernels of program `number`, which the first image that asks has; those
/// of the second image are their unaligned variants. Of variant v the library has `int helve_fake_NUMBER_v_NAME(void**
/// parameters, const unsigned* of)`, of blocks, threads, bytes of shared memory and blocks that run together; 0: well.
/// Empty if there is none of the name.
FakeBoxKernel find_host_kernel(const void* image, const std::string& name);

/// What such a kernel takes for a tensor map: the numbers that the driver was given, in the order of the tensor.
void describe_tensor_map(TensorMapBytes* map, int type, unsigned rank, const void* base, const uint64_t* extents,
                         const uint64_t* strides, const uint32_t* box, int swizzle);

}  // namespace helve::runtime::cuda
