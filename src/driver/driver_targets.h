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
};

/// By the pipeline of options.target.
Lowered lower(const FunctionRef& f, const CompileOptions& options);

/// Where the buffers of a function that went through the pipeline for CUDA live.
std::vector<BufferLayout> buffer_layouts(const Lowered& lowered, bool strict);

/// Calls `f` with every launch below the steps.
template <class F>
void for_each_launch(std::vector<runtime::Step>& steps, const F& f) {
  for (runtime::Step& step : steps) {
    if (auto* launch = std::get_if<runtime::Launch>(&step.node)) {
      f(*launch);
    } else if (auto* loop = std::get_if<runtime::Loop>(&step.node)) {
      for_each_launch(loop->body, f);
    } else if (auto* branch = std::get_if<runtime::Branch>(&step.node)) {
      for_each_launch(branch->then_steps, f);
      for_each_launch(branch->else_steps, f);
    } else if (auto* repeat = std::get_if<runtime::Repeat>(&step.node)) {
      for_each_launch(repeat->head, f);
      for_each_launch(repeat->body, f);
    }
  }
}

/// Bytes of a vector register of the processor of this process.
int64_t host_vector_bytes();

/// DTypeOnTarget for a type that the target has no code for.
void check_dtypes(const Function& f, Target target);

std::shared_ptr<const CompiledKernel> compile_interp(Checked checked, const CompileOptions& options);
std::shared_ptr<const CompiledKernel> compile_llvm(Checked checked, const CompileOptions& options);
std::shared_ptr<const CompiledKernel> compile_cuda(Checked checked, const CompileOptions& options);

/// Throws UnknownStage.
[[noreturn]] std::string unknown_stage(const std::string& stage, const std::vector<std::string>& known);

}  // namespace helve
