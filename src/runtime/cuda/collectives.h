// Collectives between the cores of one device: kernels that read some cores' buffers and write others'.
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

/// CUDA C of one kernel a collective. UserError ReductionDType.
std::string collective_source(const std::vector<int64_t>& mesh, const std::vector<const Collective*>& collectives);

/// The launches of one collective. Results go through packed memory of `exchange_bytes` where the boxes overlap, so
/// that all is read before anything is written.
struct ExchangeSize {
  std::vector<BlockRange> targets;  ///< destinations that take part: cores, or the peers of a Permute; none: no launch
  int64_t target_elements = 0;  ///< that each of them gets
  int64_t exchange_bytes = 0;  ///< 0: written directly
};
ExchangeSize exchange_size(const Collective& step, const CollectiveRequest& request);
void launch_collective(const CollectiveRequest& request, const ExchangeSize& size, std::byte* exchange,
                       CudaFunction function, const Device& device, CudaStream stream);

}  // namespace helve::runtime::cuda
