// A kernel on its way from the host plan to a code generator.
// The plan names kernels by number; this list, in the order of those numbers, is all that a generator needs to know of
// the host.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "helve/analysis/index_bounds.h"
#include "helve/ir/tensor/function.h"

namespace helve {

struct KernelSource {
  std::string name;
  Ref<const Kernel> stmt;  ///< lowered: flat loops over row-major buffers
  /// Of a mesh function: Global buffers have one instance a core, and a block is a core.
  std::optional<MeshShape> mesh = {};
  std::shared_ptr<const IndexBounds> bounds = {};  ///< of index values, by what the plan checks; null: nothing is known
  std::vector<MayAlias> may_alias = {};  ///< of the function; any other two buffers are two pieces of memory
};

}  // namespace helve
