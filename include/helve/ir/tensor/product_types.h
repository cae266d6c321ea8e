// The types that tensor cores multiply.
// How a factor's elements share registers and how deep one instruction is follow from the bits of an element alone.
#pragma once

#include <string>
#include <string_view>

#include "helve/ir/expr/dtype.h"

namespace helve {

struct ProductTypes {
  DType factor, sum;
  std::string_view name, sum_name;  ///< in PTX
  bool by_warps, by_groups;         ///< does mma.sync, does wgmma multiply them?
};

/// The row of a factor's type; null if there is none.
const ProductTypes* product_types(DType factor);

/// "float16, bfloat16 or float32": the types of factors that mma.sync, or wgmma, multiplies.
std::string factor_types(bool by_groups);

}  // namespace helve
