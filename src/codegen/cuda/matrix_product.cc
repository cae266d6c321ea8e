// Products of matrices in registers: mma.sync.
// All lanes of a warp take part; the layouts determine the registers.
#include "helve/ir/tensor/matrix_product.h"

#include <fmt/format.h>

#include "helve/ir/tensor/product_types.h"
#include "helve/support/diagnostic.h"
#include "kernel_emitter.h"

namespace helve::cuda {

namespace {

/// C (16, 8) += A (16, K) @ B (K, 8) by a warp: 4 sums of each thread, 4 and 2 words of the factors.
std::string product_function(const ProductTypes& types, const std::string& factor) {
  const bool whole = !types.sum.is_float();
  std::string sums;
  for (int i = 0; i < 4; ++i) sums += fmt::format("{}\"+{}\"(c[{}])", i ? ", " : "", whole ? "r" : "f", i);
  return fmt::format(R"(
// C (16, 8) += A (16, {1}) @ B ({1}, 8) by a warp: 4 sums of each thread, 4 and 2 words of the factors.
__device__ __forceinline__ void helve_matrix_product({0}* c, const {2}* a, const {2}* b) {{
    unsigned int r[6];
    helve_pack_registers<4>(r, a);
    helve_pack_registers<2>(r + 4, b);
    asm("mma.sync.aligned.m16n8k{1}.row.col.{3}.{4}.{4}.{3} {{%0, %1, %2, %3}}, {{%4, %5, %6, %7}}, {{%8, %9}}, "
        "{{%0, %1, %2, %3}};"
        : {5}
        : "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "r"(r[4]), "r"(r[5]));
}}
)",
                     whole ? "int" : "float", 256 / types.factor.bits, factor, types.sum_name, types.name, sums);
}

}  // namespace

void KernelEmitter::matrix_product(const TileOp& s) {
  HELVE_CHECK(!thread_, "a thread by itself multiplies no matrices");
  const ProductOperands operands = product_operands(s);
  std::string reason;
  const std::optional<MatrixProduct> product = helve::matrix_product(operands.shape, operands.layouts, &reason);
  HELVE_CHECK(product, reason);
  const DType factor = operands.a.buffer->dtype;
  const ProductTypes& types = *product_types(factor);
  need("pack_registers");
  prelude_.need(fmt::format("matrix_product_{}", types.name),
                product_function(types, element_type(*operands.a.buffer)));
  const auto registers = [&](const Region& region, int64_t first) {
    const std::string name = names_.of(region.buffer.get(), region.buffer->name);
    return first == 0 ? name : fmt::format("{} + {}", name, first);
  };
  for (int64_t l = 0; l < product->k; ++l) {
    for (int64_t i = 0; i < product->m; ++i) {
      for (int64_t j = 0; j < product->n; ++j) {
        const auto of = [](const std::vector<int64_t>& parts, int64_t at) { return parts[static_cast<size_t>(at)]; };
        line(fmt::format("helve_matrix_product({}, {}, {});", registers(operands.c, of(product->c, i * product->n + j)),
                         registers(operands.a, of(product->a, i * product->k + l)),
                         registers(operands.b, of(product->b, l * product->n + j))),
             s.span);
      }
    }
  }
}

}  // namespace helve::cuda
