// What the driver's targets share.
// Each target is one file; this is the seam between them and the driver's entry points.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "helve/driver/compile.h"

namespace helve {

/// A function after its target's pipeline, with every stage on the way.
struct Lowered {
  FunctionRef function;
  std::vector<std::pair<std::string, FunctionRef>> stages;
  std::vector<StageTime> times;
  std::vector<Diagnostic> warnings;
};

/// By the pipeline of options.target.
Lowered lower(const FunctionRef& f, const CompileOptions& options);

/// Where the buffers of a function that went through the pipeline for CUDA live.
std::vector<BufferLayout> buffer_layouts(const Lowered& lowered, const CompileOptions& options);

/// What the options compile for.
Machine machine_of(const CompileOptions& options);

/// DTypeOnTarget for a type that the target has no code for.
void check_dtypes(const Function& f, Target target);

/// BadArgument for a `dispatch` that names no implementation of the target's.
void check_dispatch(const Function& f, Target target);

std::shared_ptr<const CompiledKernel> compile_interp(Checked checked, const CompileOptions& options);
std::shared_ptr<const CompiledKernel> compile_llvm(Checked checked, const CompileOptions& options);
std::shared_ptr<const CompiledKernel> compile_cuda(Checked checked, const CompileOptions& options);

/// Throws UnknownStage.
[[noreturn]] std::string unknown_stage(const std::string& stage, const std::vector<std::string>& known);

}  // namespace helve
