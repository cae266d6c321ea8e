// Copies between global and shared memory that TMA makes in contiguous pieces: T.cp_async_bulk.
// Dispatch and code generation both need the division of the regions into pieces.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "helve/arith/facts.h"
#include "helve/ir/tensor/stmt.h"

namespace helve {

/// The alignment of addresses and sizes that TMA requires, in bytes.
inline constexpr int64_t kBulkUnit = 16;

/// Two matched regions as loops over pieces that are contiguous in both.
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

/// The largest pieces; nothing, with the reason, if a last dimension is not contiguous.
std::optional<BulkPieces> bulk_pieces(const Region& src, const Region& dst, std::string* reason);

/// Can TMA make the copy of a block, under `facts`? It goes from global to shared memory or back and converts nothing;
/// every piece begins at a multiple of 16 bytes from the buffer's base, has a multiple of 16 bytes and is inside of the
/// tensor. Alignment of the base is the caller's responsibility. Gives the reason in `reason` if not.
bool is_bulk_copy(const TileOp& op, const Facts& facts, std::string* reason);

/// The condition under which the range begins inside of the first `end` elements (null if it is known to hold), and the
/// number of its elements that are.
Expr begins_before(const Range& range, const Expr& end, const Facts& facts);
Expr extent_before(const Range& range, const Expr& end, const Facts& facts);

}  // namespace helve
