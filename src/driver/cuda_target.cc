// The CUDA target: a host plan, and CUDA C that is compiled for the device's architecture.
// No device is needed before the first call, so kernels can be compiled and inspected without one.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "driver_targets.h"
#include "helve/codegen/cuda/cuda_module.h"
#include "helve/codegen/host/call_text.h"
#include "helve/codegen/host/host_module.h"
#include "helve/ir/tensor/visit.h"
#include "helve/print/printer.h"
#include "helve/runtime/cuda/executor.h"
#include "helve/runtime/nccl/nccl_communicator.h"
#include "helve/support/diagnostic.h"
#include "helve/transform/localize.h"
#include "helve/transform/passes.h"

namespace helve {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Adds the results of code generation to the plan: block sizes, shared memory, required alignments.
void complete_plan(runtime::Plan& plan, const CudaSource& source) {
  runtime::for_each_step(plan.steps, [&](runtime::Step& step) {
    auto* launch = std::get_if<runtime::Launch>(&step.node);
    if (!launch) return;
    const CudaKernel& kernel = source.kernels[static_cast<size_t>(launch->kernel)];
    launch->threads = kernel.threads;
    launch->unaligned_threads = kernel.own_threads;
    launch->shared_bytes = kernel.shared_bytes;
    launch->cluster = kernel.cluster;
    launch->cooperative = kernel.cooperative;
    launch->barrier_words = kernel.barrier_words;
    launch->alignments = kernel.alignments;
    launch->maps = kernel.maps;
  });
}

/// The architecture of this machine's device. If it cannot be queried, the caller may name one.
std::string arch_of_device() {
  try {
    return runtime::cuda::device(0).arch();
  } catch (const UserError& error) {
    Diagnostic refused = error.diagnostic();
    refused.fixes = {refused.help(), "name an architecture to compile for, as arch=\"sm_90a\": that needs no GPU"};
    throw UserError(std::move(refused));
  }
}

/// The options with an architecture, by default that of the first device, and with what GPUs of processes demand.
CompileOptions with_architecture(CompileOptions options) {
  if (options.arch.empty()) options.arch = arch_of_device();
  options.cores_are_devices = options.gpus != nullptr;
  return options;
}

/// Refuses blocks that no device can launch, before their work is divided among the threads.
void check_threads(const Function& function) {
  const int64_t most = any_gpu().block_threads;  // the same for all
  walk(function.body, [&](const Stmt& s) {
    const Kernel* kernel = as<Kernel>(s);
    if (!kernel || kernel->threads <= most) return;
    throw UserError(Code::BadArgument, kernel->span,
                    {{"function", "T.Kernel"},
                     {"parameter", "threads"},
                     {"value", std::to_string(kernel->threads)},
                     {"reason", fmt::format("a block of a GPU has at most {} threads", most)},
                     {"remedy", "use fewer threads, each of which takes more of the block's elements"}});
  });
}

/// Refuses what no device of the architecture can launch, and names the largest buffers.
void check_shared_memory(const CudaSource& source, const std::vector<KernelSource>& kernels, const Machine& machine) {
  constexpr size_t kMaxNotes = 3;
  const int64_t limit = machine.block_shared_bytes;
  for (size_t k = 0; k < kernels.size(); ++k) {
    const CudaKernel& kernel = source.kernels[k];
    if (kernel.shared_bytes <= limit) continue;
    std::vector<SharedBuffer> buffers = kernel.shared;
    std::stable_sort(buffers.begin(), buffers.end(),
                     [](const SharedBuffer& a, const SharedBuffer& b) { return a.bytes > b.bytes; });
    if (buffers.size() > kMaxNotes) buffers.resize(kMaxNotes);
    std::vector<Note> notes;
    for (const SharedBuffer& each : buffers) {
      notes.push_back({each.span, fmt::format("'{}' takes {} bytes", each.name, each.bytes)});
    }
    throw UserError(
        Code::BlockSharedMemory, kernels[k].stmt->span,
        {{"kernel", kernel.name}, {"bytes", kernel.shared_bytes}, {"device", machine.name}, {"limit", limit}},
        std::move(notes));
  }
}

/// The kernel that a warning of the compiler names; null where it names none.
const KernelSource* named_kernel(const Diagnostic& warning, const std::vector<std::string>& names,
                                 const std::vector<KernelSource>& kernels) {
  for (size_t k = 0; k < kernels.size(); ++k) {
    const bool named = std::any_of(warning.args.begin(), warning.args.end(), [&](const auto& each) {
      return each.first == "kernel" && each.second == DiagnosticArg(names[k]);
    });
    if (named) return &kernels[k];
  }
  return nullptr;
}

/// Does it warn of memory in a kernel that prints, which needs it for the values?
bool is_of_printing(const Diagnostic& warning, const KernelSource* kernel) {
  return warning.code == Code::LocalArrays && kernel &&
         std::any_of(kernel->reports.begin(), kernel->reports.end(), [](const KernelReport& r) { return !r.fault; });
}

/// Nothing where the compiler has reported nothing of the kernel.
std::optional<KernelUse> use_of(const CudaKernel& kernel, const runtime::cuda::Cubin& cubin, const Machine& machine) {
  const runtime::cuda::KernelResources* found = cubin.find(kernel.name);
  if (!found) return std::nullopt;
  const int64_t shared = kernel.shared_bytes + found->shared_bytes;
  return KernelUse{kernel.name,
                   kernel.threads,
                   found->registers,
                   shared,
                   found->local_bytes,
                   std::max(found->spill_store_bytes, found->spill_load_bytes),
                   machine.blocks_at_once(kernel.threads, found->registers, shared)};
}

class CudaCompiled final : public CompiledKernel {
 public:
  /// `options` name an architecture.
  CudaCompiled(Checked checked, const CompileOptions& options) : CompiledKernel(std::move(checked), options) {
    check_threads(*function_);
    const FunctionRef own = options.gpus ? localize(function_) : function_;
    lowered_ = lower(own, options);
    if (options.gpus) lowered_.stages.insert(lowered_.stages.begin(), {"localize", own});
    times_.insert(times_.end(), lowered_.times.begin(), lowered_.times.end());
    warnings_.insert(warnings_.end(), lowered_.warnings.begin(), lowered_.warnings.end());
    Clock::time_point start = Clock::now();
    HostModule host = build_host(own, lowered_.function, call_conditions(proofs_));
    times_.push_back({"host plan", seconds_since(start)});
    start = Clock::now();
    const CudaSource source = emit_cuda(host.kernels, {true, true, machine_of(options_)});
    times_.push_back({"cuda: emit", seconds_since(start)});
    check_shared_memory(source, host.kernels, machine_of(options_));
    complete_plan(host.plan, source);
    start = Clock::now();
    toolchain_.site_packages = options.site_packages;
    toolchain_.flags = {options_.fast_math ? "--use_fast_math" : "--fmad=false"};
    if (options_.fast_math) toolchain_.flags.emplace_back("--define-macro=HELVE_FAST_MATH");
    runtime::cuda::Cubin cubin = runtime::cuda::compile_cubin(source.text, function_->name, options_.arch, toolchain_);
    times_.push_back({cubin.from_cache ? "cuda: load from cache" : "cuda: compile", seconds_since(start)});
    for (const CudaKernel& kernel : source.kernels) {
      names_.push_back(kernel.name);
      if (const auto use = use_of(kernel, cubin, machine_of(options_))) uses_.push_back(*use);
    }
    for (Diagnostic warning : cubin.warnings) {
      const KernelSource* kernel = named_kernel(warning, names_, host.kernels);
      if (is_of_printing(warning, kernel)) continue;
      if (kernel) warning.span = kernel->stmt->span;
      warnings_.push_back(std::move(warning));
    }
    kernels_ = std::move(host.kernels);
    // For calls whose tensors lack the required alignments; most kernels never need it.
    const auto unaligned = [f = own, form = lowered_.function, conditions = call_conditions(proofs_),
                            arch = options_.arch, machine = machine_of(options_), toolchain = toolchain_] {
      const HostModule given = build_host(f, form, conditions);
      HostModule narrow = build_host(f, narrow_accesses(form, {}), conditions);
      for (size_t i = 0; i < narrow.kernels.size(); ++i) {  // without roles, the order of uses is another one
        narrow.kernels[i].interface =
            std::make_shared<const KernelInterface>(kernel_interface(*given.kernels.at(i).stmt));
        narrow.kernels[i].reports = given.kernels[i].reports;
      }
      return runtime::cuda::compile_cubin(emit_cuda(narrow.kernels, {true, true, machine}).text, f->name, arch,
                                          toolchain);
    };
    std::shared_ptr<runtime::cuda::DeviceCommunicator> communicator;
    if (options.gpus) {
      communicator = std::make_shared<runtime::nccl::NcclCommunicator>(options.gpus, print(own), options.site_packages,
                                                                       options.compares_collectives);
    }
    executor_ = std::make_unique<runtime::cuda::Executor>(std::move(host.plan), std::move(cubin), names_, toolchain_,
                                                          unaligned, std::move(communicator));
  }

  void call(std::span<const runtime::TensorArgument> tensors, std::span<const runtime::ScalarArgument> scalars,
            const runtime::CallOptions& options) const override {
    executor_->call(tensors, scalars, static_cast<runtime::cuda::CudaStream>(options.stream), options);
  }

  std::vector<std::string> stages() const override {
    std::vector<std::string> out = {"script", "lowered", "plan", "host", "cuda", "ptx", "sass"};
    for (const auto& [name, f] : lowered_.stages) {
      if (std::find(out.begin(), out.end(), name) == out.end()) out.push_back(name);
    }
    out.push_back("narrow_accesses");
    return out;
  }

  std::vector<KernelUse> resources() const override { return uses_; }

  std::vector<ScheduleChoice> schedules() const override { return lowered_.choices; }

  std::vector<BufferLayout> layouts() const override { return buffer_layouts(lowered_, options_); }

  std::string source(const std::string& stage) const override {
    if (stage == "script") return print(function_);
    if (stage == "lowered") return print(lowered_.function);
    if (stage == "plan") return runtime::to_text(executor_->plan());
    if (stage == "host")
      return call_text(executor_->plan(), {names_, toolchain_.flags.front(), options_.gpus != nullptr});
    if (stage == "narrow_accesses") return print(narrow_accesses(lowered_.function, {}));
    if (stage == "cuda") return emit_cuda(kernels_, {false, true, machine_of(options_)}).text;
    if (stage == "ptx") {
      const std::string text = emit_cuda(kernels_, {true, true, machine_of(options_)}).text;
      return runtime::cuda::ptx_text(text, function_->name, options_.arch, toolchain_);
    }
    if (stage == "sass") return runtime::cuda::machine_code_text(executor_->cubin(), toolchain_);
    for (const auto& [name, f] : lowered_.stages) {
      if (name == stage) return print(f);
    }
    unknown_stage(stage, stages());
  }

 private:
  Lowered lowered_;
  std::vector<KernelSource> kernels_;
  runtime::cuda::CompileOptions toolchain_;
  std::vector<std::string> names_;  ///< of the kernels
  std::vector<KernelUse> uses_;
  std::unique_ptr<runtime::cuda::Executor> executor_;
};

}  // namespace

std::shared_ptr<const CompiledKernel> compile_cuda(Checked checked, const CompileOptions& options) {
  return std::make_shared<CudaCompiled>(std::move(checked), with_architecture(options));
}

}  // namespace helve
