// Declared strides that are wrong in every call.
// More elements never remove an overlap: if two elements overlap by the constants alone, with extent 1 in each
// dimension that only a call knows, they overlap in every call.
#include "helve/analysis/parameter_strides.h"

#include "helve/analysis/effects.h"
#include "helve/support/diagnostic.h"
#include "helve/support/strided_box.h"

namespace helve {

void refuse_overlapping_strides(const Function& f) {
  for (const BufferEffect& effect : param_effects(f)) {
    const Buffer& buffer = *effect.buffer;
    if (!effect.written || buffer.strides.empty()) continue;
    std::vector<int64_t> extents, strides;
    for (size_t d = 0; d < buffer.rank(); ++d) {
      const int64_t* extent = int_value(buffer.shape[d]);
      const int64_t* stride = int_value(buffer.strides[d]);
      const bool is_empty = extent && *extent == 0;
      extents.push_back(is_empty ? 0 : extent && stride ? *extent : 1);
      strides.push_back(stride ? *stride : 0);
    }
    const Separation found = separation(extents, strides);
    if (found.kind != Separation::Together) continue;
    throw UserError(
        Code::ParameterStridesOverlap, buffer.span,
        {{"parameter", buffer.name}, {"strides", shape_text(buffer.strides)}, {"fault", fault_text(found)}});
  }
}

}  // namespace helve
