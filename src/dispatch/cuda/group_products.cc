// Does a kernel multiply by the tensor cores of warpgroups?
// What a name for several instructions stands for depends on the machine and the operands, so the schedule is asked.
#include "helve/dispatch/group_products.h"

#include <algorithm>

#include "helve/ir/tensor/visit.h"
#include "schedules.h"

namespace helve {

bool multiplies_by_groups(const Stmt& s, const LoweringContext& context) {
  return context.machine->group_products && has_operation(s, [&](const TileOp& op) {
           if (op.op == TileOpcode::Wgmma) return true;
           if (op.op != TileOpcode::Gemm) return false;
           const std::vector<std::string_view> names = requested_schedules(op);
           std::string reason;
           return std::find(names.begin(), names.end(), "wgmma") != names.end() &&
                  cuda::lower_wgmma(op, context, &reason);
         });
}

}  // namespace helve
