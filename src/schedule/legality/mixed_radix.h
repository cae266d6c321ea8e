// Loops over numbers in mixed radix, as loops over their digits, and back.
// isl has no products of two symbols. By the definition of division, 0 <= ij < n * m and the pairs 0 <= q < n,
// 0 <= r < m are in bijection by ij = q * m + r, in the same order, with q = ij // m and r = ij % m. So a loop may be
// counted either way, and in one of them what is asked of it is affine.
#pragma once

#include <optional>
#include <vector>

#include "helve/schedule/legality.h"

namespace helve::legality {

/// What check_rewrite is asked.
struct Question {
  FunctionRef before;
  Stmt before_region, after_region;
  std::vector<Origin> origins;
};

/// The same question about the same programs, in which
/// - a loop over n * m values that are taken apart by `// m` and `% m`, where m is no constant, runs over digits: it
///   has two variables in the place of one, and
/// - two nested loops that use their variables in o * m + r only, where m is no constant and the extent of the inner
///   one, run over these values: the outer one does, and the inner one has one iteration.
/// Nothing where there is no such loop.
std::optional<Question> in_mixed_radix(const Question& question);

}  // namespace helve::legality
