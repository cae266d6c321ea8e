// Which products of tiles the tensor cores compute, and how the warps of a block share one.
// Asked before layouts are inferred, which C's then is the first of, and again where the product is lowered.
#pragma once

#include <optional>
#include <string>

#include "helve/ir/tensor/matrix_product.h"

namespace helve {

/// The product of a T.gemm whose factors stand in shared memory and whose sums are a fragment; nothing, with the
/// reason, where T.mma does not compute it.
std::optional<ProductShape> tensor_core_product(const TileOp& gemm, std::string* reason);

/// The division of C among `warps` for which they read the fewest elements of the factors; nothing where none is even.
std::optional<WarpGrid> warp_grid(const ProductShape& shape, int64_t warps);

/// The division of C that its layout is; nothing where it is none.
std::optional<WarpGrid> warp_grid_of(const ProductShape& shape, int64_t warps, const Layout& sums);

}  // namespace helve
