// The product that tensor cores are asked for.
// Its conditions are the same for all their instructions, and so are the reasons for declining.
#pragma once

#include <optional>
#include <string>

#include "helve/ir/tensor/matrix_product.h"

namespace helve::cuda {

/// The product of a T.gemm whose factors, of 16 bits, are in shared memory and whose sums are a whole fragment of
/// float32; nothing, with the reason, for others.
std::optional<ProductShape> product_in_shared_memory(const TileOp& gemm, std::string* reason);

}  // namespace helve::cuda
