// From a function to something that can be called.
// The driver is the one place that knows all rooms: it picks the passes and generators of a target and keeps every
// stage for the user to look at.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "helve/analysis/proofs.h"
#include "helve/interp/interp.h"
#include "helve/ir/tensor/function.h"
#include "helve/runtime/executor.h"
#include "helve/threads/layout_inference.h"
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
  int64_t persistent_chunk = 1;    ///< iterations of a Persistent loop that share one collective
  bool fast_math = false;          ///< products and sums may be contracted, functions of the target approximate
  int64_t stream_bytes = 0;        ///< Target::Llvm: of written tensors that go around the caches; 0: it chooses
  bool strict = false;             ///< Target::Cuda: refuse layouts that would need a conversion
  interp::Checks check;            ///< what each call looks for; Target::Interp only
  int64_t steps = 0;               ///< Target::Interp: what each call may make (interp::Options); 0: any number
  std::string arch;                ///< Target::Cuda: what to compile for, "sm_90a"; empty: the first device's own
  std::vector<std::string> site_packages;    ///< Target::Cuda: folders in which pip's wheels of NVRTC may stand
  std::vector<PassInstrument*>
      instruments;  ///< further watchers of the passes; they live at least as long as the compile
};

/// One stage of a compile and its time.
struct StageTime {
  std::string stage;
  double seconds;
};

/// A function that may be compiled: verified, placed on its mesh, with no refuted promise.
struct Checked {
  FunctionRef function;
  std::vector<Proof> proofs;
  std::vector<Diagnostic> warnings;
  std::vector<StageTime> times;  ///< "verify", "proofs"
};

/// Where a buffer of a kernel's block lives.
struct BufferLayout {
  std::string kernel;                ///< "k0" for the first kernel of the function
  BufferRef buffer;                  ///< as the user declared it
  std::optional<Layout> layout;      ///< on `tx` and `reg`, or on `m`; nothing: block memory, row-major
  std::vector<int64_t> domain;       ///< what the layout covers
  std::string reason;                ///< why it is not in registers, and why it has its layout; may be empty
};

/// A compiled function. Immutable; any number of threads may call it.
class CompiledKernel : public std::enable_shared_from_this<CompiledKernel> {
 public:
  virtual ~CompiledKernel() = default;

  /// Runs on arguments in parameter order; returns when the results are written.
  virtual void call(std::span<const runtime::TensorArgument> tensors, std::span<const runtime::ScalarArgument> scalars,
                    const runtime::CallOptions& options) const = 0;

  /// The text of a stage: "script", "lowered", "host", "llvm", "asm", or the name of a pass. UnknownStage for anything
  /// else.
  virtual std::string source(const std::string& stage) const = 0;
  virtual std::vector<std::string> stages() const = 0;

  /// What the passes chose for tile operations and pipelined loops, each in program order, and why not something else.
  /// Empty for the interpreter.
  std::vector<ScheduleChoice> schedules() const;

  /// The buffers of every kernel, in program order. Empty for targets without threads.
  virtual std::vector<BufferLayout> layouts() const { return {}; }

  const FunctionRef& function() const { return function_; }
  Target target() const { return options_.target; }
  /// Of each tensor parameter in order: whether the function writes it.
  const std::vector<bool>& written() const { return written_; }
  /// Wall time of each pass and generator, in order.
  const std::vector<StageTime>& times() const { return times_; }
  /// What was asked of the program before it was compiled; none of the answers is refuted.
  const std::vector<Proof>& proofs() const { return proofs_; }
  /// Remarks that stopped nothing.
  const std::vector<Diagnostic>& warnings() const { return warnings_; }
  /// What it was compiled with, instruments aside.
  const CompileOptions& options() const { return options_; }

 protected:
  CompiledKernel(Checked checked, const CompileOptions& options);
  FunctionRef function_;
  std::vector<bool> written_;
  CompileOptions options_;
  std::vector<StageTime> times_;
  std::vector<Proof> proofs_;
  std::vector<Diagnostic> warnings_;
};

/// The function as it is compiled for a mesh: verified, with the mesh it must have. MeshGrid where the two disagree.
FunctionRef place_on_mesh(const FunctionRef& f, const std::optional<MeshShape>& mesh);

/// The checks by name (see interp::parse_checks). BadArgument for another name.
interp::Checks parse_checks(const std::string& name);

/// Python text that compiles the function again with the same options, for a report of a fault of helve.
std::string reproducer(const Function& f, const CompileOptions& options);
/// The request for a report and the reproducer, as it stands below the message of an InternalError.
std::string report_text(const Function& f, const CompileOptions& options);

/// Compiles for the target. UserError for what the user can mend; an InternalError brings its reproducer.
std::shared_ptr<const CompiledKernel> compile(const FunctionRef& f, const CompileOptions& options = {});

/// A function at any stage under the interpreter, without a question asked before its calls: what a stage stands on has
/// been asked of the function that it was made from.
std::shared_ptr<const CompiledKernel> interpreted(const FunctionRef& f, interp::Checks check, int64_t steps = 0);

/// The function after each pass of the target's pipeline (the CPU's for Target::Interp), first the function itself:
/// each of them can be interpreted.
std::vector<std::pair<std::string, FunctionRef>> lowering_stages(const FunctionRef& f,
                                                                 const CompileOptions& options = {});

/// What a compile does before code is generated: the function in the form that the target's generator takes, and the
/// wall time of verifier, proofs and each pass.
struct Lowering {
  FunctionRef function;
  std::vector<StageTime> times;
};
Lowering check_and_lower(const FunctionRef& f, const CompileOptions& options = {});

/// What the passes of the target's pipeline could not decide: warnings of a compile, beside those of the function
/// itself.
std::vector<Diagnostic> lowering_warnings(const FunctionRef& f, const CompileOptions& options = {});

}  // namespace helve
