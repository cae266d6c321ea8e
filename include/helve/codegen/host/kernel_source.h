// A kernel between the host plan and a code generator.
// The plan refers to kernels by number; this list, in the order of those numbers, is all that a generator knows of the
// host.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "helve/analysis/index_bounds.h"
#include "helve/analysis/kernel_interface.h"
#include "helve/ir/tensor/function.h"
#include "helve/support/report.h"

namespace helve {

struct KernelSource {
  std::string name;
  Ref<const Kernel> stmt;  ///< lowered: flat loops over row-major buffers
  /// In a mesh function: Global buffers have one instance per core, and a block is a core.
  std::optional<MeshShape> mesh = {};
  std::shared_ptr<const IndexBounds> bounds = {};  ///< of index values, given the plan's checks; null: unknown
  std::vector<Expr> guards = {};  ///< conditions of the host that hold where the kernel is launched
  std::vector<MayAlias> may_alias = {};  ///< of the function; other buffers do not share memory
  /// The arguments that launches give, where those of another variant of the kernel decide; null: its own.
  std::shared_ptr<const KernelInterface> interface = {};
  std::vector<KernelReport> reports = {};  ///< what its statements report; code gives the position in this list
};

}  // namespace helve
