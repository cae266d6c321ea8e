// A kernel on its way from the host plan to a code generator.
// The plan names kernels by number; this list, in the order of those numbers, is all that a generator needs to know of
// the host.
#pragma once

#include <memory>
#include <string>

#include "helve/analysis/index_bounds.h"
#include "helve/ir/tensor/stmt.h"

namespace helve {

struct KernelSource {
  std::string name;
  Ref<const Kernel> stmt;  ///< lowered: flat loops over row-major buffers
  bool mesh = false;       ///< of a mesh function: Global buffers have one instance a core, and a block is a core
  std::shared_ptr<const IndexBounds> bounds = {};  ///< of index values, under what the plan checks; null: nothing is known
};

}  // namespace helve
