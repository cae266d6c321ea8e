// The interpreter as a target.
// The same call checks as for machine code, then the reference interpreter on the user's own function.
#include "driver_targets.h"
#include "helve/codegen/host/host_module.h"
#include "helve/interp/interp.h"
#include "helve/ir/expr/multiprocessors.h"
#include "helve/print/printer.h"

namespace helve {

namespace {

class InterpKernel final : public CompiledKernel {
 public:
  InterpKernel(Checked checked, const CompileOptions& options)
      : CompiledKernel(std::move(checked), options), checks_(signature_plan(function_, call_conditions(proofs_)), {}) {
    run_options_.check = options.check;
    run_options_.steps = options.steps;
    run_options_.placement = options.placement;
    run_options_.roles = options.roles;
    run_options_.print = options.print;
    run_options_.stop = options.stop;
  }

  void call(std::span<const runtime::TensorArgument> tensors, std::span<const runtime::ScalarArgument> scalars,
            const runtime::CallOptions& options) const override {
    runtime::CallOptions checked = options;
    checked.multiprocessors = kInterpretedMultiprocessors;
    checks_.call(tensors, scalars, checked);
    std::vector<interp::Arg> args;
    size_t next_tensor = 0;
    size_t next_scalar = 0;
    for (const Param& p : function_->params) {
      if (std::holds_alternative<BufferRef>(p)) {
        args.push_back(tensor_arg(*tensors[next_tensor++].tensor, std::get<BufferRef>(p)->dtype));
      } else {
        args.push_back(std::visit([](auto v) { return interp::ScalarArg{v}; }, scalars[next_scalar++]));
      }
    }
    runtime::InterruptPoll poll(options.interrupt);
    interp::Options run_options = run_options_;
    if (poll.active()) run_options.interrupt = [&poll] { poll.throw_if_requested(); };
    run_options.new_arrays.assign(options.new_arrays.begin(), options.new_arrays.end());
    if (options.may_have_written) *options.may_have_written = true;
    interp::run(function_, args, run_options);
  }

  std::vector<std::string> stages() const override { return {"script"}; }
  std::string source(const std::string& stage) const override {
    if (stage == "script") return print(function_);
    unknown_stage(stage, stages());
  }

 private:
  /// A packed tensor is an array of bytes, of two elements each.
  static interp::TensorArg tensor_arg(const runtime::DLTensor& t, DType dtype) {
    interp::TensorArg arg;
    arg.data = static_cast<std::byte*>(t.data) + t.byte_offset;
    arg.shape.assign(t.shape, t.shape + t.ndim);
    if (t.strides) arg.strides.assign(t.strides, t.strides + t.ndim);
    if (!dtype.is_packed()) return arg;
    arg.shape.back() *= 2;
    for (size_t d = 0; d + 1 < arg.strides.size(); ++d) arg.strides[d] *= 2;
    return arg;
  }

  interp::Options run_options_;
  runtime::Executor checks_;  ///< a plan without steps: it only checks arguments
};

}  // namespace

std::shared_ptr<const CompiledKernel> compile_interp(Checked checked, const CompileOptions& options) {
  return std::make_shared<InterpKernel>(std::move(checked), options);
}

}  // namespace helve
