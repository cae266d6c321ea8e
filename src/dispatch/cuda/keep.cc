// Instructions that a program contains are kept.
// Fragments without a layout have dimensions of threads and registers, so the kernel must be in thread form.
#include "helve/analysis/thread_form.h"
#include "schedules.h"

namespace helve {

Stmt cuda::keep(const TileOp& op, const LoweringContext& context, std::string* declined) {
  for (size_t i = 0; i < op.operands.size(); ++i) {
    const bool divided =
        op.is_region(i) && op.region(i).buffer->scope == MemoryScope::Fragment && !op.region(i).buffer->layout;
    if (!divided || is_written_for_threads(*context.kernel)) continue;
    *declined = "'" + op.region(i).buffer->name + "' has no layout, and the kernel is not written for its threads";
    return {};
  }
  return Stmt(make_ref<TileOp>(op));
}

}  // namespace helve
