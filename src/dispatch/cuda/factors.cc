// The product that tensor cores are asked for.
// The conditions that all their instructions share: which types, and where the operands are.
#include "factors.h"

namespace helve::cuda {

std::optional<ProductShape> product_in_shared_memory(const TileOp& gemm, std::string* reason) {
  const auto fails = [&](std::string why) -> std::optional<ProductShape> {
    *reason = std::move(why);
    return std::nullopt;
  };
  const Region &a = gemm.region(0), &b = gemm.region(1), &c = gemm.region(2);
  const DType factor = a.buffer->dtype;
  if (!factor.is_float() || factor.bits != 16 || b.buffer->dtype != factor) {
    return fails("the factors are not both of float16 or of bfloat16");
  }
  if (c.buffer->dtype != kFloat32) return fails("the sums are not of float32");
  if (a.buffer->scope != MemoryScope::Shared || b.buffer->scope != MemoryScope::Shared) {
    return fails("the factors are not in shared memory");
  }
  if (c.buffer->scope != MemoryScope::Fragment || !c.whole()) return fails("the sums are not a whole fragment");
  const std::optional<std::vector<int64_t>> left = constant_shape(a.shape()), sums = constant_shape(c.shape());
  if (!left || !sums) return fails("the shapes are not constant");
  return ProductShape{(*sums)[0], (*sums)[1], (*left)[gemm.transposes(0) ? 0 : 1], gemm.transposes(0),
                      gemm.transposes(1)};
}

}  // namespace helve::cuda
