// The accesses that the lanes of a vectorized loop make, and which of them may be made for all lanes together.
// Legality by the access model; which widths are worth it is the matter of widen_accesses.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "helve/analysis/element_address.h"
#include "helve/ir/tensor/function.h"

namespace helve {

/// An access of a vector's lanes.
struct VectorWidth {
  int64_t width;              ///< bytes
  std::vector<Expr> indices;  ///< with values for names that the body binds
};

/// Bytes of one access if the lanes of `address`, of the loop over `lane`, are contiguous and `start`, the address of
/// the first before a swizzle, is aligned under `facts`, up to `widest`; else 0.
int64_t vector_width(const Buffer& buffer, const Address& address, const Expr& start, const For& loop,
                     const Facts& facts, int64_t widest);

/// The loads and stores of the loop's body that can be vector accesses of all lanes, by their nodes.
std::unordered_map<const Object*, VectorWidth> vector_widths(const For& loop, const Facts& facts,
                                                             const std::vector<MayAlias>& may_alias, int64_t widest);

}  // namespace helve
