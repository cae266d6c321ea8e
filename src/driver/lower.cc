// A function after the passes of its target.
// Passes decide with what they know. How much shared memory a kernel takes is known behind all of them, so those that
// may take less are asked again where a block has too little.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "driver_targets.h"
#include "helve/codegen/cuda/cuda_module.h"
#include "helve/ir/tensor/code_hints.h"
#include "helve/ir/tensor/group_product.h"
#include "helve/ir/tensor/memory_hints.h"
#include "helve/ir/tensor/shared_place.h"
#include "helve/ir/tensor/visit.h"
#include "helve/print/printer.h"

namespace helve {

namespace {

/// Prints the function after each pass that changed it.
class PrintInstrument final : public PassInstrument {
 public:
  void ran(const Pass& pass, const FunctionRef& before, const FunctionRef& after, double seconds) override {
    if (before == after) return;
    const std::string text = fmt::format("# after {} ({:.3f} ms)\n{}\n", pass.name, seconds * 1e3, print(after));
    std::fwrite(text.data(), 1, text.size(), stderr);
  }
};

/// Written tensors of a quarter of the last cache go around it: what is read beside them needs as much, and other
/// programs have their part, on virtual machines most of all.
constexpr int64_t kShareOfCache = 4;

PassOptions pass_options_of(const CompileOptions& options) {
  PassOptions out;
  out.machine = machine_of(options);
  out.stream_bytes = options.stream_bytes ? options.stream_bytes : out.machine.last_cache / kShareOfCache;
  if (options.target == Target::Cuda) {
    out.schedules = &cuda_schedules();
    out.walk_tiles = false;
    out.cores_are_devices = options.cores_are_devices;
    out.cores_synchronize = !options.cores_are_devices;
  }
  // One collective between GPUs costs as much as thousands of iterations.
  out.persistent_chunk = options.persistent_chunk.value_or(options.cores_are_devices ? 0 : 1);
  out.strict_layouts = options.strict;
  return out;
}

Lowered run_passes(const FunctionRef& f, const CompileOptions& options, PassOptions pass_options) {
  Lowered out;
  StageInstrument stages;
  TimeInstrument times;
  VerifyInstrument verifier;
  PrintInstrument printer;
  std::vector<PassInstrument*> instruments = {&times, &stages};
  if (options.verify_passes) instruments.push_back(&verifier);
  if (options.print_changed) instruments.push_back(&printer);
  instruments.insert(instruments.end(), options.instruments.begin(), options.instruments.end());
  pass_options.warnings = &out.warnings;
  pass_options.choices = &out.choices;
  out.function =
      run_pipeline(options.target == Target::Cuda ? cuda_pipeline() : cpu_pipeline(), f, pass_options, instruments);
  for (const TimeInstrument::Row& row : times.rows()) out.times.push_back({std::string(row.pass), row.seconds});
  for (const StageInstrument::Stage& stage : stages.stages()) {
    out.stages.emplace_back(std::string(stage.pass), stage.function);
  }
  return out;
}

int64_t most_shared_bytes(const Function& lowered) {
  int64_t out = 0;
  walk(lowered.body, [&](const Stmt& s) {
    if (const Kernel* kernel = as<Kernel>(s)) out = std::max(out, shared_bytes(kernel->body));
  });
  return out;
}

/// Can a kernel take less shared memory than it does: fewer stages of pipelined loops, results that leave from
/// registers?
bool can_take_less(const Function& f, const Function& lowered) {
  bool has_stages = false;
  walk(f.body, [&](const Stmt& s) {
    const For* loop = as<For>(s);
    has_stages |= loop && loop->num_stages > 1;
  });
  return has_stages || has_operation(lowered.body, [](const TileOp& op) { return op.begins_product(); });
}

}  // namespace

Lowered lower(const FunctionRef& f, const CompileOptions& options) {
  check_lowered_forms(*f);
  // Passes take buffers for apart and stores for ordinary ones; what shares bytes, bypasses caches or suits a compiler
  // of machine code is decided anew.
  const FunctionRef plain =
      without_memory_hints(without_code_hints(without_offsets(f)), options.target != Target::Cuda);
  PassOptions pass_options = pass_options_of(options);
  Lowered out = run_passes(plain, options, pass_options);
  if (options.target != Target::Cuda) return out;
  const int64_t most = pass_options.machine.block_shared_bytes;
  for (int64_t& kept = pass_options.kept_shared_bytes; kept < most;) {
    const int64_t lacking = most_shared_bytes(*out.function) - most;
    if (lacking <= 0 || !can_take_less(*plain, *out.function)) break;
    kept = std::max(lacking, 2 * kept);
    Lowered again = run_passes(plain, options, pass_options);
    again.times.insert(again.times.begin(), out.times.begin(), out.times.end());
    out = std::move(again);
  }
  check_registers(*f, *out.function);
  check_tensor_maps(*out.function);
  return out;
}

}  // namespace helve
