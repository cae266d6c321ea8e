// Products of matrices in registers: mma.sync.
// All lanes of a warp take part; the layouts determine the registers.
#include "helve/ir/tensor/matrix_product.h"

#include <fmt/format.h>

#include "helve/support/diagnostic.h"
#include "kernel_emitter.h"

namespace helve::cuda {

void KernelEmitter::matrix_product(const TileOp& s) {
  HELVE_CHECK(!thread_, "a thread by itself multiplies no matrices");
  const ProductOperands operands = product_operands(s);
  std::string reason;
  const std::optional<MatrixProduct> product = helve::matrix_product(operands.shape, operands.layouts, &reason);
  HELVE_CHECK(product, reason);
  need("matrix_product");
  const auto registers = [&](const Region& region, int64_t first) {
    const std::string name = names_.of(region.buffer.get(), region.buffer->name);
    return first == 0 ? name : fmt::format("{} + {}", name, first);
  };
  const bool brain = operands.a.buffer->dtype.code == TypeCode::BFloat;
  for (int64_t l = 0; l < product->k; ++l) {
    for (int64_t i = 0; i < product->m; ++i) {
      for (int64_t j = 0; j < product->n; ++j) {
        const auto of = [](const std::vector<int64_t>& parts, int64_t at) { return parts[static_cast<size_t>(at)]; };
        line(fmt::format("helve_matrix_product<{}>({}, {}, {});", brain,
                         registers(operands.c, of(product->c, i * product->n + j)),
                         registers(operands.a, of(product->a, i * product->k + l)),
                         registers(operands.b, of(product->b, l * product->n + j))),
             s.span);
      }
    }
  }
}

}  // namespace helve::cuda
