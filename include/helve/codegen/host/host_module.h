// From a lowered function to the host plan and the kernels that it launches.
// Everything that a call does outside of kernels becomes plain data of the runtime, independent of the target.
#pragma once

#include <vector>

#include "helve/analysis/proofs.h"
#include "helve/codegen/host/kernel_source.h"
#include "helve/ir/tensor/function.h"
#include "helve/runtime/plan.h"

namespace helve {

struct HostModule {
  runtime::Plan plan;  ///< Launch::kernel is a position in `kernels`
  std::vector<KernelSource> kernels;
};

/// The plan of `lowered`. Names, shapes and strides of parameters are those of `signature`, whose parameters and dims
/// correspond to those of `lowered` by position; reads and writes are those of `lowered`. scratch_bytes of a Launch
/// stays 0: it is set by the code generator of the kernels. UserError HostExpression for a value that the host would
/// have to compute from data. The plan begins with a check of each of the conditions, which are on the extents and
/// parameters of `signature`.
HostModule build_host(const FunctionRef& signature, const FunctionRef& lowered,
                      const std::vector<CallCondition>& conditions = {});

/// A plan that only checks the arguments of `f`, a function at any stage, and the conditions.
runtime::Plan signature_plan(const FunctionRef& f, const std::vector<CallCondition>& conditions = {});

/// The runtime's name of an element type. UserError DTypeOnTarget for packed types.
runtime::DLDataType to_dlpack(DType dtype);

}  // namespace helve
