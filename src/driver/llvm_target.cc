// The CPU target: a host plan and machine code.
// The plan checks arguments, allocates and launches; LLVM makes the kernels it launches.
#include <algorithm>
#include <chrono>

#include "driver_targets.h"
#include "helve/codegen/host/host_module.h"
#include "helve/print/printer.h"
#include "helve/runtime/process_communicator.h"
#include "helve/support/diagnostic.h"
#include "helve/transform/localize.h"
#ifdef HELVE_WITH_LLVM
#include "helve/codegen/llvm/cpu_module.h"
#endif

namespace helve {

#ifdef HELVE_WITH_LLVM

namespace {

class LlvmKernel final : public CompiledKernel {
 public:
  LlvmKernel(Checked checked, const CompileOptions& options) : CompiledKernel(std::move(checked), options) {
    const FunctionRef own = options.processes ? localize(function_) : function_;
    lowered_ = lower(own, options);
    if (options.processes) lowered_.stages.insert(lowered_.stages.begin(), {"localize", own});
    times_.insert(times_.end(), lowered_.times.begin(), lowered_.times.end());
    warnings_.insert(warnings_.end(), lowered_.warnings.begin(), lowered_.warnings.end());
    using Clock = std::chrono::steady_clock;
    const Clock::time_point start = Clock::now();
    HostModule host = build_host(own, lowered_.function, call_conditions(proofs_));
    times_.push_back({"host plan", std::chrono::duration<double>(Clock::now() - start).count()});
    module_ = compile_cpu(host.kernels, {.fast_math = options.fast_math});
    times_.push_back({"llvm: emit", module_->times().emit});
    times_.push_back({"llvm: optimize", module_->times().optimize});
    times_.push_back({"llvm: generate", module_->times().generate});
    times_.push_back({"llvm: link", module_->times().link});
    std::vector<runtime::KernelEntry> entries;
    std::vector<int64_t> scratch;
    for (const CpuKernel& k : module_->kernels()) {
      entries.push_back(k.entry);
      scratch.push_back(k.scratch_bytes);
    }
    // The scratch memory of a kernel is known only after code generation.
    runtime::for_each_step(host.plan.steps, [&](runtime::Step& step) {
      auto* launch = std::get_if<runtime::Launch>(&step.node);
      if (launch) launch->scratch_bytes = scratch[static_cast<size_t>(launch->kernel)];
    });
    std::shared_ptr<runtime::Communicator> communicator;
    if (options.processes) communicator = std::make_shared<runtime::ProcessCommunicator>(options.processes, print(own));
    executor_ = std::make_unique<runtime::Executor>(std::move(host.plan), std::move(entries), std::move(communicator));
  }

  void call(std::span<const runtime::TensorArgument> tensors, std::span<const runtime::ScalarArgument> scalars,
            const runtime::CallOptions& options) const override {
    executor_->call(tensors, scalars, options);
  }

  std::vector<std::string> stages() const override {
    std::vector<std::string> out = {"script", "lowered", "plan", "llvm", "asm"};
    for (const auto& [name, f] : lowered_.stages) {
      if (std::find(out.begin(), out.end(), name) == out.end()) out.push_back(name);
    }
    return out;
  }

  std::vector<ScheduleChoice> schedules() const override { return lowered_.choices; }

  std::string source(const std::string& stage) const override {
    if (stage == "script") return print(function_);
    if (stage == "lowered") return print(lowered_.function);
    if (stage == "plan") return runtime::to_text(executor_->plan());
    if (stage == "llvm") return module_->llvm_ir(true);
    if (stage == "asm") return module_->assembly();
    for (const auto& [name, f] : lowered_.stages) {
      if (name == stage) return print(f);
    }
    unknown_stage(stage, stages());
  }

 private:
  Lowered lowered_;
  std::shared_ptr<CpuModule> module_;
  std::unique_ptr<runtime::Executor> executor_;
};

}  // namespace

std::shared_ptr<const CompiledKernel> compile_llvm(Checked checked, const CompileOptions& options) {
  return std::make_shared<LlvmKernel>(std::move(checked), options);
}

#else

std::shared_ptr<const CompiledKernel> compile_llvm(Checked, const CompileOptions&) {
  throw UserError(
      Code::TargetMissing, {},
      {{"what", "target 'llvm'"}, {"remedy", "build with HELVE_LLVM=ON, or compile for target=\"interp\""}});
}

#endif

}  // namespace helve
