// Common declarations of the driver's targets.
// Each target is one file; these are the functions that they and the driver's entry points share.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "helve/driver/compile.h"

namespace helve {

/// A function after its target's pipeline, with all stages.
struct Lowered {
  FunctionRef function;
  std::vector<std::pair<std::string, FunctionRef>> stages;
  std::vector<StageTime> times;
  std::vector<Diagnostic> warnings;
  std::vector<ScheduleChoice> choices;
};

/// Runs the pipeline of options.target.
Lowered lower(const FunctionRef& f, const CompileOptions& options);

/// The places of the buffers of a function after the pipeline for CUDA.
std::vector<BufferLayout> buffer_layouts(const Lowered& lowered, const CompileOptions& options);

/// The machine that the options name.
Machine machine_of(const CompileOptions& options);

/// DTypeOnTarget for a type that the target does not support.
void check_dtypes(const Function& f, Target target);

/// NoSchedule for what only lowered programs contain: the memory of other cores.
void check_lowered_forms(const Function& f);

/// NoSchedule for registers that no instruction reaches, if kernels of `f` were written for their threads; what passes
/// divide is right, and a fault there is an InternalError. `lowered` is `f` in thread form.
void check_registers(const Function& f, const Function& lowered);

/// Refuses kernels that need more tensor maps than their parameters take (NoSchedule).
void check_tensor_maps(const Function& lowered);

/// BadArgument for a `dispatch` that names no implementation of the target.
void check_dispatch(const Function& f, Target target);

std::shared_ptr<const CompiledKernel> compile_interp(Checked checked, const CompileOptions& options);
std::shared_ptr<const CompiledKernel> compile_llvm(Checked checked, const CompileOptions& options);
std::shared_ptr<const CompiledKernel> compile_cuda(Checked checked, const CompileOptions& options);

/// Throws UnknownStage.
[[noreturn]] std::string unknown_stage(const std::string& stage, const std::vector<std::string>& known);

}  // namespace helve
