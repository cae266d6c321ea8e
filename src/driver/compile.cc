// Compiling for a target.
// Interpreter and machine code share the host plan's checks of arguments, so both refuse a call with the same message.
#include "helve/driver/compile.h"

#include <fmt/format.h>

#include <chrono>

#include "driver_targets.h"
#include "helve/analysis/effects.h"
#include "helve/analysis/parameter_strides.h"
#include "helve/ir/tensor/visit.h"
#include "helve/print/printer.h"
#include "helve/runtime/cuda/compile.h"
#include "helve/support/diagnostic.h"
#include "helve/support/own_thread.h"
#include "helve/support/text.h"
#include "helve/transform/pipeline.h"
#include "reporting.h"

namespace helve {

Target parse_target(const std::string& name) {
  if (name == "interp") return Target::Interp;
  if (name == "llvm") return Target::Llvm;
  if (name == "cuda") return Target::Cuda;
  throw UserError(Code::UnknownTarget, {}, {{"target", name}, {"known", "interp, llvm, cuda"}});
}

std::string_view to_string(Target target) {
  switch (target) {
    case Target::Interp: return "interp";
    case Target::Llvm: return "llvm";
    case Target::Cuda: return "cuda";
  }
  __builtin_unreachable();
}

interp::Checks parse_checks(const std::string& name) {
  if (const std::optional<interp::Checks> checks = interp::parse_checks(name)) return *checks;
  throw UserError(Code::OptionValue, {},
                  {{"option", "check"},
                   {"value", "'" + name + "'"},
                   {"expected", "\"all\", \"uninitialised\", \"races\" or None"}});
}

Machine machine_of(const CompileOptions& options) {
  if (options.target != Target::Cuda) return host_machine();
  if (options.arch.empty()) return any_gpu();
  if (const std::optional<Machine> machine = gpu_machine(options.arch)) return *machine;
  throw UserError(Code::CudaArchitecture, {}, {{"compiler", "helve"}, {"arch", options.arch}, {"known", known_gpus()}});
}

CompiledKernel::CompiledKernel(Checked checked, const CompileOptions& options)
    : function_(std::move(checked.function)),
      options_(options),
      times_(std::move(checked.times)),
      proofs_(std::move(checked.proofs)),
      warnings_(std::move(checked.warnings)) {
  for (const BufferEffect& effect : param_effects(*function_)) written_.push_back(effect.written);
  walk(function_->body, [&](const Stmt& s) { prints_ |= as<Report>(s) && !as<Report>(s)->fault; });
  options_.instruments.clear();
}

std::vector<std::pair<std::string, FunctionRef>> lowering_stages(const FunctionRef& f, const CompileOptions& options) {
  return with_stack(kCompileStack, [&] {
    FunctionRef placed = place_on_mesh(f, options.mesh);
    check_dtypes(*placed, options.target);
    std::vector<std::pair<std::string, FunctionRef>> out = {{"script", placed}};
    Lowered lowered = lower(placed, options);
    out.insert(out.end(), lowered.stages.begin(), lowered.stages.end());
    return out;
  });
}

std::shared_ptr<const CompiledKernel> interpreted(const FunctionRef& f, interp::Checks check, int64_t steps,
                                                  int64_t placement, int64_t roles,
                                                  std::function<void(const std::string&)> print) {
  CompileOptions options;
  options.print = std::move(print);
  options.placement = placement;
  options.roles = roles;
  options.target = Target::Interp;
  options.check = check;
  options.steps = steps;
  return compile_interp({.function = f, .proofs = {}, .warnings = {}, .times = {}}, options);
}

std::vector<Diagnostic> lowering_warnings(const FunctionRef& f, const CompileOptions& options) {
  return with_stack(kCompileStack, [&] { return lower(place_on_mesh(f, options.mesh), options).warnings; });
}

std::string unknown_stage(const std::string& stage, const std::vector<std::string>& known) {
  throw UserError(Code::UnknownStage, {},
                  {{"stage", stage}, {"known", join(known, ", ", [](const std::string& s) { return s; })}});
}

namespace {

/// Machine code stops nowhere.
void warn_of_breakpoints(const Function& f, Target target, std::vector<Diagnostic>& warnings) {
  if (target == Target::Interp) return;
  walk(f.body, [&](const Stmt& s) {
    if (!as<Breakpoint>(s)) return;
    warnings.push_back({Code::BreakpointIgnored, s->span, {{"target", std::string(to_string(target))}}, {}, {}});
  });
}

/// Verification and proofs.
Checked check(const FunctionRef& f, const CompileOptions& options) {
  using Clock = std::chrono::steady_clock;
  const auto seconds = [](Clock::time_point from) {
    return std::chrono::duration<double>(Clock::now() - from).count();
  };
  Checked out;
  Clock::time_point start = Clock::now();
  out.function = place_on_mesh(f, options.mesh);
  check_dtypes(*out.function, options.target);
  check_dispatch(*out.function, options.target);
  refuse_overlapping_strides(*out.function);
  out.times.push_back({"verify", seconds(start)});
  start = Clock::now();
  out.proofs = prove(*out.function);
  refuse_refuted(out.proofs);
  out.warnings = find_warnings(*out.function, out.proofs);
  out.times.push_back({"proofs", seconds(start)});
  warn_of_breakpoints(*out.function, options.target, out.warnings);
  return out;
}

std::shared_ptr<const CompiledKernel> compile_checked(const FunctionRef& f, const CompileOptions& options) {
  if (options.check.any() && options.target != Target::Interp) {
    throw UserError(Code::OptionOfTarget, {},
                    {{"target", std::string(to_string(options.target))},
                     {"option", "check"},
                     {"other", std::string(to_string(Target::Interp))}});
  }
  Checked checked = check(f, options);
  if (options.target != Target::Interp) refuse_open_shapes(checked.proofs);
  switch (options.target) {
    case Target::Interp: return compile_interp(std::move(checked), options);
    case Target::Llvm: return compile_llvm(std::move(checked), options);
    case Target::Cuda: return compile_cuda(std::move(checked), options);
  }
  __builtin_unreachable();
}

}  // namespace

Lowering check_and_lower(const FunctionRef& f, const CompileOptions& options) {
  return with_stack(kCompileStack, [&] {
    Checked checked = check(f, options);
    Lowered lowered = lower(checked.function, options);
    Lowering out{std::move(lowered.function), std::move(checked.times)};
    out.times.insert(out.times.end(), lowered.times.begin(), lowered.times.end());
    return out;
  });
}

std::shared_ptr<const CompiledKernel> compile(const FunctionRef& f, const CompileOptions& options) {
  return with_stack(kCompileStack, [&] { return reporting(*f, options, [&] { return compile_checked(f, options); }); });
}

}  // namespace helve
