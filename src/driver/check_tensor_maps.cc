// Tensor maps of a kernel, which are among its parameters.
// How many a kernel needs is known when all of its copies are lowered.
#include <fmt/format.h>

#include "driver_targets.h"
#include "helve/analysis/box_copy.h"
#include "helve/ir/tensor/visit.h"
#include "helve/support/diagnostic.h"

namespace helve {

void check_tensor_maps(const Function& lowered) {
  walk(lowered.body, [&](const Stmt& s) {
    const Kernel* kernel = as<Kernel>(s);
    if (!kernel) return;
    std::vector<const TileOp*> copies;
    if (box_maps(kernel->body, &copies).size() <= kMaxBoxMaps) return;
    const TileOp& copy = *copies[kMaxBoxMaps];
    throw UserError(Code::NoSchedule, copy.span, {{"operation", operation_text(copy)}},
                    {{{},
                      fmt::format("'tma_tensor' declined: a kernel takes {} tensor maps, one for each tensor and box",
                                  kMaxBoxMaps)}},
                    {"copy tiles of fewer shapes, or ask for other copies by dispatch=\"cp_async\""});
  });
}

}  // namespace helve
