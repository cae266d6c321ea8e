// From a function to a callable kernel.
// Only the driver uses all rooms: it selects the passes and generators of a target and keeps every stage for
// inspection.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "helve/analysis/proofs.h"
#include "helve/interp/interp.h"
#include "helve/ir/tensor/function.h"
#include "helve/runtime/executor.h"
#include "helve/runtime/nccl/nccl_world.h"
#include "helve/runtime/process_group.h"
#include "helve/transform/pipeline.h"

namespace helve {

enum class Target { Interp, Llvm, Cuda };

/// "interp", "llvm" or "cuda"; UnknownTarget for anything else.
Target parse_target(const std::string& name);
std::string_view to_string(Target target);

struct CompileOptions {
  Target target = Target::Llvm;
  std::optional<MeshShape> mesh;   ///< the mesh to compile for; must agree with the function's own
  bool verify_passes = false;      ///< run the verifier after each pass
  bool print_changed = false;      ///< print the function after each pass that changed it, to standard error
  /// Iterations of a Persistent loop that share one collective; by default 1, and where cores are GPUs all that fit.
  std::optional<int64_t> persistent_chunk;
  bool cores_are_devices = false;  ///< Target::Cuda: each core of the mesh is a GPU; a compile needs `gpus`
  bool fast_math = false;          ///< products and sums may be contracted, functions of the target approximate
  int64_t stream_bytes = 0;        ///< Target::Llvm: bytes from which written tensors bypass caches; 0: automatic
  bool strict = false;             ///< Target::Cuda: refuse layouts that would need a conversion
  interp::Checks check;            ///< the checks of each call; Target::Interp only
  int64_t steps = 0;               ///< Target::Interp: maximum of steps of a call (interp::Options); 0: any number
  int64_t placement = 0;           ///< Target::Interp: where tensors begin (interp::Options)
  int64_t roles = 0;               ///< Target::Interp: the order of a block's roles (interp::Options)
  std::function<void(const std::string&)> print;  ///< Target::Interp: receives printed lines (interp::Options)
  std::function<void(const interp::Stop&)> stop;  ///< Target::Interp: is called at breakpoints (interp::Options)
  /// Target::Llvm: the processes that the cores of the mesh are, each with its own parts of annotated tensors; null:
  /// all cores are in this process.
  std::shared_ptr<runtime::ProcessGroup> processes;
  /// Target::Cuda: the GPUs of the processes that the cores of the mesh are; null: all cores are blocks of one GPU.
  std::shared_ptr<runtime::nccl::NcclWorld> gpus;
  bool compares_collectives = false;  ///< with `gpus`: do processes compare collectives before they do them?
  std::string arch;                ///< Target::Cuda: the architecture, "sm_90a"; empty: the first device's
  std::vector<std::string> site_packages;    ///< Target::Cuda: folders that may contain pip's NVRTC
  std::vector<PassInstrument*> instruments;  ///< further observers of the passes; they outlive the compile
};

/// One stage of a compile and its time.
struct StageTime {
  std::string stage;
  double seconds;
};

/// A function that may be compiled: verified, placed on its mesh, with no refuted proof.
struct Checked {
  FunctionRef function;
  std::vector<Proof> proofs;
  std::vector<Diagnostic> warnings;
  std::vector<StageTime> times;  ///< "verify", "proofs"
};

/// The place of a buffer of a kernel's block.
struct BufferLayout {
  std::string kernel;            ///< "k0" for the first kernel of the function
  BufferRef buffer;              ///< as the user declared it
  std::optional<Layout> layout;  ///< on `tx` and `reg`, or on `m`; nothing: shared memory, row-major
  std::vector<int64_t> domain;   ///< what the layout covers
  std::string reason;            ///< why it is not in registers, and why it has its layout; may be empty
};

/// What a kernel takes of a GPU.
struct KernelUse {
  std::string kernel;  ///< its name in the generated text
  int64_t threads;     ///< of a block
  int64_t registers;   ///< of a thread, at its begin
  int64_t shared_bytes;  ///< of a block
  int64_t local_bytes;   ///< of a thread: spilled registers, and arrays that do not fit registers
  int64_t spilled_bytes;  ///< of a thread: the larger one of what is stored and what is loaded
  int64_t blocks;  ///< that a multiprocessor runs at the same time
};

/// A compiled function. Immutable; any number of threads may call it.
class CompiledKernel : public std::enable_shared_from_this<CompiledKernel> {
 public:
  virtual ~CompiledKernel() = default;

  /// Runs on arguments in parameter order; returns when the results are written.
  virtual void call(std::span<const runtime::TensorArgument> tensors, std::span<const runtime::ScalarArgument> scalars,
                    const runtime::CallOptions& options) const = 0;

  /// The text of a stage: "script", "lowered", "plan", "llvm", "asm", or the name of a pass. UnknownStage for other
  /// names.
  virtual std::string source(const std::string& stage) const = 0;
  virtual std::vector<std::string> stages() const = 0;

  /// The choices of the passes for tile operations and pipelined loops, each in program order, with the reasons why
  /// others declined. Empty for the interpreter.
  virtual std::vector<ScheduleChoice> schedules() const { return {}; }

  /// The buffers of every kernel, in program order. Empty for targets without threads.
  virtual std::vector<BufferLayout> layouts() const { return {}; }

  /// What each kernel takes, in the order of their launches in the text. Empty for targets other than GPUs.
  virtual std::vector<KernelUse> resources() const { return {}; }

  const FunctionRef& function() const { return function_; }
  Target target() const { return options_.target; }
  /// For each tensor parameter in order: does the function write it?
  const std::vector<bool>& written() const { return written_; }
  /// Does the function print?
  bool prints() const { return prints_; }
  /// Wall time of each pass and generator, in order.
  const std::vector<StageTime>& times() const { return times_; }
  /// The proofs about the program; none is refuted.
  const std::vector<Proof>& proofs() const { return proofs_; }
  /// Warnings of the compile.
  const std::vector<Diagnostic>& warnings() const { return warnings_; }
  /// Its options, without instruments.
  const CompileOptions& options() const { return options_; }

 protected:
  CompiledKernel(Checked checked, const CompileOptions& options);
  FunctionRef function_;
  std::vector<bool> written_;
  bool prints_ = false;
  CompileOptions options_;
  std::vector<StageTime> times_;
  std::vector<Proof> proofs_;
  std::vector<Diagnostic> warnings_;
};

/// The function for a mesh: verified, with its mesh. MeshGrid if the two disagree.
FunctionRef place_on_mesh(const FunctionRef& f, const std::optional<MeshShape>& mesh);

/// The checks by name (see interp::parse_checks). OptionValue for another name.
interp::Checks parse_checks(const std::string& name);

/// Python text that compiles the function again with the same options, for a bug report.
std::string reproducer(const Function& f, const CompileOptions& options);
/// The request for a report and the reproducer, as appended to the message of an InternalError.
std::string report_text(const Function& f, const CompileOptions& options);

/// Compiles for the target. UserError for errors of the program; an InternalError contains its reproducer.
std::shared_ptr<const CompiledKernel> compile(const FunctionRef& f, const CompileOptions& options = {});

/// A function at any stage under the interpreter, without checks before its calls: the proofs of the original
/// function hold for all its stages.
std::shared_ptr<const CompiledKernel> interpreted(const FunctionRef& f, interp::Checks check, int64_t steps = 0,
                                                  int64_t placement = 0, int64_t roles = 0,
                                                  std::function<void(const std::string&)> print = {});

/// The function after each pass of the target's pipeline (the CPU's for Target::Interp), preceded by the function
/// itself: each of them can be interpreted.
std::vector<std::pair<std::string, FunctionRef>> lowering_stages(const FunctionRef& f,
                                                                 const CompileOptions& options = {});

/// A compile up to code generation: the function in the form that the target's generator takes, and the wall time of
/// verifier, proofs and each pass.
struct Lowering {
  FunctionRef function;
  std::vector<StageTime> times;
};
Lowering check_and_lower(const FunctionRef& f, const CompileOptions& options = {});

/// What the passes of the target's pipeline could not decide: warnings of a compile, besides those of the function
/// itself.
std::vector<Diagnostic> lowering_warnings(const FunctionRef& f, const CompileOptions& options = {});

}  // namespace helve
