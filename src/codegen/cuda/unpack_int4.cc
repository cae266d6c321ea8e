// The int4 of a byte, converted together.
// Tensor cores multiply floats of 16 bits, so factors of 4 bits are converted for each product, and what that takes
// decides how fast it is: integers become floats at a fraction of the rate of other instructions, and each element has
// a shift, a scale and a rounding of its own. By operations on pairs the halves become mantissas of numbers whose last
// bit counts as 1, of which the rest is taken off exactly. A scale of the same 16 bits multiplies both: the product of
// two such numbers is exact in float32, so it is rounded once here as there. One of float32 multiplies each.
#include <fmt/format.h>

#include "helve/analysis/element_address.h"
#include "helve/codegen/c/c_types.h"
#include "helve/ir/tensor/region.h"
#include "kernel_emitter.h"

namespace helve::cuda {

void KernelEmitter::unpack_int4(const TileOp& s) {
  const Region& to = s.region(s.row().index_of("dst"));
  const Buffer& registers = *to.buffer;
  const std::vector<Expr> first = region_begin(to);
  HELVE_CHECK(!exchange_of(registers, first[0]).with, "a store to the registers of another thread");
  need("int4_" + c::small_float_name(registers.dtype));
  const auto element = [&](const Region& region) {
    return raw_load(*as<Load>(helve::load(region.buffer, region_begin(region))));
  };
  const Expr offset = element_offset(registers, first, 1);
  const std::optional<size_t> scale = s.row().find("scale");
  line(fmt::format("helve_unpack_int4({} + {}, {}{});", names_.of(&registers, registers.name),
                   text(offset, c::precedence_of("+") + 1), element(s.region(0)),
                   scale ? ", " + element(s.region(*scale)) : ""),
       s.span);
}

}  // namespace helve::cuda
