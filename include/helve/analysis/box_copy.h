// Copies between a tensor of the call and block memory that the copy engine of sm_90 makes by a tensor map.
// A map describes a whole tensor, from which boxes come and to which they go; what lies past its ends reads as zero
// and is not written. Choosing such a copy and printing it ask how the regions fall into boxes, so that is answered
// once.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "helve/analysis/bulk_copy.h"

namespace helve {

/// What a map can say: dimensions, elements of a box along one, bytes at whose multiples a box begins in block memory.
inline constexpr size_t kMostBoxRank = 5;
inline constexpr int64_t kMostBoxExtent = 256;
inline constexpr int64_t kBoxAlignment = 128;

/// Two matched regions as loops over boxes. Coordinates and extents are row-major, one a dimension of the tensor.
struct CopyBoxes {
  struct Loop {
    size_t tensor, memory;  ///< the dimension of each region
    int64_t count;          ///< of boxes
    int64_t step;           ///< elements from one to the next
  };
  size_t tensor;  ///< which region of the copy is the tensor's: 0 or 1
  std::vector<int64_t> box;
  std::vector<Loop> loops;
  int64_t swizzle = 0;  ///< bytes of a row of the box within which 16-byte units change places: 32, 64, 128; 0: none

  int64_t elements() const;  ///< of a box
  /// The first element of a box in either region, where `at` counts each loop's boxes.
  std::vector<Expr> begin(const Region& region, bool of_tensor, const std::vector<Expr>& at) const;
};

/// The largest boxes; nothing, with the reason, where no map describes the tensor or the memory is no box.
std::optional<CopyBoxes> copy_boxes(const Region& src, const Region& dst, std::string* reason);

/// Can TMA make the copy of a block by a map, under `facts`? It converts nothing and pads with zeros (`pad` is what the
/// copy has past the tensor's ends), the tensor's rows lie at multiples of 16 bytes from its base, and every box begins
/// at a multiple of 16 bytes in its row and where TMA can write it in shared memory.
/// Alignment of the bases, and extents that no map has, are the caller's business. Says in `reason` why not.
bool is_box_copy(const TileOp& op, const Expr& pad, const Facts& facts, std::string* reason);

/// The swizzle with which the map of a copy of boxes can fill its memory, or empty it, in place of row-major order;
/// nothing where rows of a box are no 32, 64 or 128 bytes, or boxes may begin within its period.
std::optional<Swizzle> box_swizzle(const TileOp& op);

}  // namespace helve
