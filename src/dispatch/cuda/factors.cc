// The product that tensor cores are asked for.
// The conditions that all their instructions share: which types, and where the operands are.
#include "factors.h"

#include <fmt/format.h>

#include "helve/ir/tensor/product_types.h"

namespace helve::cuda {

std::optional<ProductShape> product_on_tensor_cores(const TileOp& gemm, bool by_groups, std::string* reason) {
  const auto fails = [&](std::string why) -> std::optional<ProductShape> {
    *reason = std::move(why);
    return std::nullopt;
  };
  const Region &a = gemm.region(0), &b = gemm.region(1), &c = gemm.region(2);
  const DType factor = a.buffer->dtype;
  const ProductTypes* types = product_types(factor);
  if (!types || !(by_groups ? types->by_groups : types->by_warps) || b.buffer->dtype != factor) {
    return fails("the factors are not both of " + factor_types(by_groups));
  }
  if (c.buffer->dtype != types->sum) {
    return fails(fmt::format("the sums of {} are not of {}", to_string(factor), to_string(types->sum)));
  }
  const bool registers = by_groups && a.buffer->scope == MemoryScope::Fragment;
  if (registers) {
    if (!a.whole() || gemm.transposes(0)) return fails("A in registers is not a whole fragment (M, K)");
  } else if (a.buffer->scope != MemoryScope::Shared) {
    return fails("A is not in shared memory");
  }
  if (b.buffer->scope != MemoryScope::Shared) return fails("B is not in shared memory");
  if (by_groups && factor.bits != 16 && (gemm.transposes(0) || !gemm.transposes(1))) {
    return fails(fmt::format("factors of {} need K as their last dimension: A (M, K), and B (N, K) with "
                             "transpose_B=True",
                             to_string(factor)));
  }
  if (c.buffer->scope != MemoryScope::Fragment || !c.whole()) return fails("the sums are not a whole fragment");
  const std::optional<std::vector<int64_t>> left = constant_shape(a.shape()), sums = constant_shape(c.shape());
  if (!left || !sums) return fails("the shapes are not constant");
  return with_types(
      {(*sums)[0], (*sums)[1], (*left)[gemm.transposes(0) ? 0 : 1], gemm.transposes(0), gemm.transposes(1)}, factor);
}

}  // namespace helve::cuda
