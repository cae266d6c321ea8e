// Threads that are apart wherever their accesses begin.
// Where bases are multiples of some number, only remainders decide: a thread's elements are counted, without isl.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "access_table.h"

namespace helve::barriers {

/// Indices of one dimension are equal if these values are, or, for a modulus other than 0, their remainders.
struct ComparedOffsets {
  Expr earlier, later;  ///< over the own variables of the two accesses
  int64_t modulus;
};

/// Does no element that a thread touches by `earlier` meet one of another thread by `later`, for all bases? Nothing if
/// they cannot be counted: ranges or values are not known, or there are too many.
std::optional<bool> threads_apart(const BlockAccess& earlier, const BlockAccess& later,
                                  const std::vector<ComparedOffsets>& dimensions);

}  // namespace helve::barriers
