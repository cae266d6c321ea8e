// A cubin on one device: its functions, and the limits of the plan's launches there.
// The driver is queried once, when the code is loaded.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "helve/runtime/cuda/compile.h"
#include "helve/runtime/cuda/driver.h"
#include "helve/runtime/plan.h"

namespace helve::runtime::cuda {

/// The launches, and the collectives that move something, in the order of the plan's text.
struct PlanParts {
  std::vector<const Launch*> launches;
  std::vector<const Collective*> collectives;
  bool unaligned = false;    ///< the code is the unaligned variant
  bool allocates = false;    ///< an Allocate, a cooperative launch or a collective: calls keep device memory
};
PlanParts parts_of(const Plan& plan);

/// The code of a plan: its kernels, and the kernels of its collectives.
struct Binary {
  Cubin kernels;
  std::vector<std::string> names;
  Cubin collectives;  ///< empty if the plan has none
};

class Program {
 public:
  /// Loads the code into the device's context. UserError CudaArchitectureMismatch, BlockThreads, BlockSharedMemory,
  /// ClusterSize, CudaCallFailed. The code stays loaded until the process ends, since work and graphs that use it may
  /// outlive this object.
  Program(const Binary& code, const PlanParts& parts, const Device& device);
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  struct Site {
    CudaFunction function = nullptr;
    int64_t threads = 0;   ///< of a block
    int64_t resident = 0;  ///< for cooperative launches: the maximum of blocks that are resident at once
  };
  const Site& site(const Launch& launch) const { return sites_.at(&launch); }
  CudaFunction collective(const Collective& step) const { return collectives_.at(&step); }

 private:
  void load(const Binary& code, const PlanParts& parts);
  CudaFunction find(CudaLibrary library, const std::string& name) const;
  void admit(const PlanParts& parts, const std::vector<CudaFunction>& functions);
  int64_t resident_blocks(const Launch& launch, const Site& site) const;

  const Device& device_;
  std::unordered_map<const Launch*, Site> sites_;
  std::unordered_map<const Collective*, CudaFunction> collectives_;
};

}  // namespace helve::runtime::cuda
