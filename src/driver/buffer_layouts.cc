// The places of a lowered function's buffers.
// They are computed again by the same functions, with the same arguments, as in the passes, so that nothing has to be
// stored.
#include <algorithm>

#include "driver_targets.h"
#include "helve/ir/tensor/buffer_layout.h"
#include "helve/ir/tensor/call_facts.h"
#include "helve/ir/tensor/visit.h"
#include "helve/support/diagnostic.h"
#include "helve/threads/shared_layouts.h"
#include "helve/transform/convert_layouts.h"

namespace helve {

namespace {

/// The kernels of the function that `pass` was given, in order.
std::vector<const Kernel*> kernels_before(const Lowered& lowered, std::string_view pass, FunctionRef* function) {
  for (const auto& [name, f] : lowered.stages) {
    if (name == pass) break;
    *function = f;
  }
  HELVE_CHECK(*function, "a pipeline without the pass '" + std::string(pass) + "'");
  std::vector<const Kernel*> out;
  walk((*function)->body, [&](const Stmt& s) {
    if (const Kernel* kernel = as<Kernel>(s)) out.push_back(kernel);
  });
  return out;
}

BlockLayouts block_layouts(const Kernel& kernel, const Function& f, const Machine& machine, bool strict) {
  Facts facts = facts_of_calls(f);
  for (size_t d = 0; d < kernel.vars.size(); ++d) facts.bind_loop(kernel.vars[d], int_imm(0), kernel.extents[d]);
  return convert_layouts(kernel, f.may_alias, facts, machine, strict).layouts;
}

}  // namespace

std::vector<BufferLayout> buffer_layouts(const Lowered& lowered, const CompileOptions& options) {
  FunctionRef divided, placed;
  const std::vector<const Kernel*> kernels = kernels_before(lowered, "distribute_threads", &divided);
  const std::vector<const Kernel*> threads = kernels_before(lowered, "place_shared_memory", &placed);
  std::vector<BufferLayout> out;
  for (size_t k = 0; k < kernels.size(); ++k) {
    std::vector<SharedLayout> chosen = choose_shared_layouts(*threads[k], machine_of(options));
    const BlockLayouts found = block_layouts(*kernels[k], *divided, machine_of(options), options.strict);
    for (const BufferPlace& place : found.places) {
      BufferLayout row{"k" + std::to_string(k), place.buffer, place.buffer->layout, {}, place.reason};
      if (place.registers) {
        const ThreadLayout& layout = found.registers.at(place.buffer.get());
        row.layout = layout.layout();
        row.domain = layout.domain();
      } else {
        // The division keeps the name and location of buffers in memory.
        const auto own = std::find_if(chosen.begin(), chosen.end(), [&](const SharedLayout& each) {
          return each.buffer->name == place.buffer->name && each.buffer->span == place.buffer->span;
        });
        if (own != chosen.end()) {
          row.layout = own->layout;
          row.reason += "; " + own->reason;
          chosen.erase(own);
        }
        if (row.layout) {
          row.domain = place.buffer->layout ? layout_domain(*place.buffer) : *constant_shape(place.buffer->shape);
        }
      }
      out.push_back(std::move(row));
    }
  }
  return out;
}

}  // namespace helve
