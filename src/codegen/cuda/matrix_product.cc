// Products of matrices in registers: mma.sync.
// All lanes of a warp take part; the layouts determine the registers.
#include "helve/ir/tensor/matrix_product.h"

#include <fmt/format.h>

#include "helve/support/diagnostic.h"
#include "kernel_emitter.h"

namespace helve::cuda {

namespace {

constexpr PreludePart kMatrixProduct{"matrix_product", "", R"(
// C (16, 8) += A (16, 16) @ B (16, 8) by a warp: 4 sums of each thread, 8 and 4 elements of 16 bits; BRAIN: bfloat16.
template <bool BRAIN, class T>
__device__ __forceinline__ void helve_matrix_product(float* c, const T* a, const T* b) {
    union Pair { unsigned int whole; T parts[2]; };
    unsigned int r[6];
#pragma unroll
    for (int i = 0; i < 6; ++i) {
        const T* from = i < 4 ? a + 2 * i : b + 2 * (i - 4);
        Pair u;
        u.parts[0] = from[0];
        u.parts[1] = from[1];
        r[i] = u.whole;
    }
    if constexpr (BRAIN) {
        asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
            "{%0, %1, %2, %3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "r"(r[4]), "r"(r[5]));
    } else {
        asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
            "{%0, %1, %2, %3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "r"(r[4]), "r"(r[5]));
    }
}
)"};

}  // namespace

void KernelEmitter::matrix_product(const TileOp& s) {
  HELVE_CHECK(!thread_, "a thread by itself multiplies no matrices");
  const ProductOperands operands = product_operands(s);
  std::string reason;
  const std::optional<MatrixProduct> product = helve::matrix_product(operands.shape, operands.layouts, &reason);
  HELVE_CHECK(product, reason);
  need(kMatrixProduct);
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
