// The product that tensor cores are asked for.
// Its conditions are the same for all their instructions, and so are the reasons for declining.
#pragma once

#include <optional>
#include <string>

#include "helve/ir/tensor/matrix_product.h"

namespace helve::cuda {

/// The product of a T.gemm whose factors have a type that warps, or warpgroups, multiply and are in shared memory, and
/// whose sums are a whole fragment of the type for them; A of warpgroups may be a whole fragment too. Nothing, with the
/// reason, for others.
std::optional<ProductShape> product_on_tensor_cores(const TileOp& gemm, bool by_groups, std::string* reason);

}  // namespace helve::cuda
