// The CUDA target: a host plan, and CUDA C that is compiled for the device's own architecture.
// Nothing here needs a device before the first call, so kernels can be compiled and looked at where there is none.
#include <algorithm>
#include <chrono>

#include "driver_targets.h"
#include "helve/codegen/cuda/cuda_module.h"
#include "helve/codegen/host/host_module.h"
#include "helve/ir/tensor/visit.h"
#include "helve/print/printer.h"
#include "helve/runtime/cuda/executor.h"
#include "helve/support/diagnostic.h"

namespace helve {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Tells the plan what code generation decided: block sizes, shared memory, and how tensors have to be aligned.
void complete_plan(runtime::Plan& plan, const CudaSource& source) {
  for_each_launch(plan.steps, [&](runtime::Launch& launch) {
    const CudaKernel& kernel = source.kernels[static_cast<size_t>(launch.kernel)];
    launch.threads = kernel.threads;
    launch.shared_bytes = kernel.shared_bytes;
    for (size_t i = 0; i < launch.buffers.size(); ++i) {
      const size_t id = static_cast<size_t>(launch.buffers[i]);
      if (id >= plan.params.size()) continue;
      plan.params[id].alignment = std::max(plan.params[id].alignment, kernel.alignments[i]);
    }
  });
}

class CudaCompiled final : public CompiledKernel {
 public:
  CudaCompiled(Checked checked, const CompileOptions& options) : CompiledKernel(std::move(checked), options) {
    const std::string arch = options.arch.empty() ? runtime::cuda::device(0).arch() : options.arch;
    CompileOptions exact = options;
    exact.arch = arch;
    lowered_ = lower(function_, exact);
    times_.insert(times_.end(), lowered_.times.begin(), lowered_.times.end());
    Clock::time_point start = Clock::now();
    HostModule host = build_host(function_, lowered_.function, call_conditions(proofs_));
    times_.push_back({"host plan", seconds_since(start)});
    start = Clock::now();
    const CudaSource source = emit_cuda(host.kernels, {true, true});
    times_.push_back({"cuda: emit", seconds_since(start)});
    complete_plan(host.plan, source);
    start = Clock::now();
    runtime::cuda::CompileOptions toolchain;
    toolchain.site_packages = options.site_packages;
    toolchain.flags = {"--fmad=false"};
    runtime::cuda::Cubin cubin = runtime::cuda::compile_cubin(source.text, function_->name, arch, toolchain);
    times_.push_back({cubin.from_cache ? "cuda: load from cache" : "cuda: compile", seconds_since(start)});
    warnings_.insert(warnings_.end(), cubin.warnings.begin(), cubin.warnings.end());
    std::vector<std::string> names;
    for (const CudaKernel& kernel : source.kernels) names.push_back(kernel.name);
    kernels_ = std::move(host.kernels);
    executor_ =
        std::make_unique<runtime::cuda::Executor>(std::move(host.plan), std::move(cubin), std::move(names), toolchain);
  }

  void call(std::span<const runtime::TensorArgument> tensors, std::span<const runtime::ScalarArgument> scalars,
            const runtime::CallOptions& options) const override {
    executor_->call(tensors, scalars, static_cast<runtime::cuda::CudaStream>(options.stream), options);
  }

  std::vector<std::string> stages() const override {
    std::vector<std::string> out = {"script", "lowered", "host", "cuda"};
    for (const auto& [name, f] : lowered_.stages) {
      if (std::find(out.begin(), out.end(), name) == out.end()) out.push_back(name);
    }
    return out;
  }

  std::vector<BufferLayout> layouts() const override { return buffer_layouts(lowered_, options_.strict); }

  std::string source(const std::string& stage) const override {
    if (stage == "script") return print(function_);
    if (stage == "lowered") return print(lowered_.function);
    if (stage == "host") return runtime::to_text(executor_->plan());
    if (stage == "cuda") return emit_cuda(kernels_).text;  // for people: without line directives
    for (const auto& [name, f] : lowered_.stages) {
      if (name == stage) return print(f);
    }
    unknown_stage(stage, stages());
  }

 private:
  Lowered lowered_;
  std::vector<KernelSource> kernels_;
  std::unique_ptr<runtime::cuda::Executor> executor_;
};

}  // namespace

std::shared_ptr<const CompiledKernel> compile_cuda(Checked checked, const CompileOptions& options) {
  return std::make_shared<CudaCompiled>(std::move(checked), options);
}

}  // namespace helve
