// Collectives between the cores of one device: kernels that read some cores' buffers and write those of others.
// Mesh, kind, type and operation are constants of the source, so that a collective is one short kernel; sizes and
// offsets are its parameters.
#pragma once

#include <string>
#include <vector>

#include "cores.h"
#include "helve/runtime/communicator.h"
#include "helve/runtime/cuda/driver.h"
#include "helve/runtime/plan.h"

namespace helve::runtime::cuda {

/// The name of the kernel of the plan's collective number `index`, Barriers not counted.
std::string collective_name(size_t index);

/// CUDA C with one kernel per collective. UserError ReductionDType.
std::string collective_source(const std::vector<int64_t>& mesh, const std::vector<const Collective*>& collectives);

/// The launch of one collective. If the boxes overlap, results go through packed memory of `exchange_bytes`, so that
/// everything is read before anything is written.
struct ExchangeSize {
  std::vector<BlockRange> targets;  ///< participating cores; none: no launch
  int64_t target_elements = 0;  ///< for each of them
  int64_t exchange_bytes = 0;  ///< 0: written directly
};
ExchangeSize exchange_size(const Collective& step, const CollectiveRequest& request);
void launch_collective(const CollectiveRequest& request, const ExchangeSize& size, std::byte* exchange,
                       CudaFunction function, const Device& device, CudaStream stream);

}  // namespace helve::runtime::cuda
