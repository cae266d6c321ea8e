// Copies between global and shared memory that TMA makes in whole pieces: T.cp_async_bulk.
// Choosing such a copy and printing it ask how the regions fall into pieces, so that is answered once.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "helve/arith/facts.h"
#include "helve/ir/tensor/stmt.h"

namespace helve {

/// What TMA asks of addresses and sizes, in bytes.
inline constexpr int64_t kBulkUnit = 16;

/// Two matched regions as loops over pieces that lie side by side in both.
struct BulkPieces {
  struct Loop {
    size_t src, dst;  ///< the dimension of each region
    Expr extent;
  };
  std::vector<Loop> loops;
  Expr length;  ///< of a piece, in elements

  /// The first element of a piece in region `i` of the copy (0 or 1), where `at` has a coordinate for each loop.
  std::vector<Expr> begin(const Region& region, size_t i, const std::vector<Expr>& at) const;
};

/// The largest pieces; nothing, with the reason, where neighbours along a last dimension are not side by side.
std::optional<BulkPieces> bulk_pieces(const Region& src, const Region& dst, std::string* reason);

/// Can TMA make the copy of a block, under `facts`? It goes from global to shared memory or back and converts nothing;
/// every piece begins at a multiple of 16 bytes from the buffer's base, is as many bytes long and lies inside of the
/// tensor. Alignment of the base is the caller's business. Says in `reason` why not.
bool is_bulk_copy(const TileOp& op, const Facts& facts, std::string* reason);

/// The condition, null where it is known to hold, under which the range begins inside of the first `end` elements, and
/// the elements of it that do.
Expr begins_before(const Range& range, const Expr& end, const Facts& facts);
Expr extent_before(const Range& range, const Expr& end, const Facts& facts);

}  // namespace helve
