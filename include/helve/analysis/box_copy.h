// TMA tensor copies between a tensor of the call and shared memory (cp.async.bulk.tensor).
// A tensor map describes a whole tensor; boxes of it are copied to and from shared memory. Elements past its ends are
// read as zero and not written. Dispatch and code generation both need the division of the regions into boxes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "helve/analysis/bulk_copy.h"

namespace helve {

/// Limits of a tensor map: dimensions, elements of a box along one of them, alignment of a box in shared memory.
inline constexpr size_t kMaxBoxRank = 5;
inline constexpr int64_t kMaxBoxExtent = 256;
inline constexpr int64_t kBoxAlignment = 128;

/// Two matched regions as loops over boxes. Coordinates and extents are row-major, one per dimension of the tensor.
struct CopyBoxes {
  struct Loop {
    size_t tensor, memory;  ///< the dimension of each region
    int64_t count;          ///< of boxes
    int64_t step;           ///< elements from one to the next
  };
  size_t tensor;  ///< which region of the copy is the tensor's: 0 or 1
  std::vector<int64_t> box;
  std::vector<Loop> loops;
  int64_t blocks = 1;  ///< of a cluster that make the copy together: each has the boxes of its turn of the first loop
  int64_t swizzle = 0;  ///< bytes of a row of the box within which 16-byte units are permuted: 32, 64, 128; 0: none

  int64_t elements() const;  ///< of a box
  /// The first element of a box in either region, where `at` is the box's number in each loop.
  std::vector<Expr> begin(const Region& region, bool of_tensor, const std::vector<Expr>& at) const;
};

/// The largest boxes; nothing, with the reason, if no map describes the tensor or the memory is not a box.
std::optional<CopyBoxes> copy_boxes(const Region& src, const Region& dst, std::string* reason);

/// What a tensor map describes: boxes of a tensor, and their swizzle.
struct BoxMap {
  BufferRef tensor;
  std::vector<int64_t> box;
  int64_t swizzle = 0;

  bool serves(const Buffer* other, const CopyBoxes& boxes) const {
    return tensor.get() == other && box == boxes.box && swizzle == boxes.swizzle;
  }
};

/// A map takes 128 bytes of a kernel's parameters, of which there are at most 32,764.
inline constexpr size_t kMaxBoxMaps = 200;

/// The boxes of a copy by T.cp_async_bulk_tensor.
CopyBoxes boxes_of(const TileOp& copy);

/// The same boxes, or parts of them, of which each of so many blocks has as many; nothing where they are not divided.
std::optional<CopyBoxes> shared_boxes(const TileOp& copy, int64_t blocks);

/// The maps that the copies below `body` need, in the order of their first copies, which `first` gets.
std::vector<BoxMap> box_maps(const Stmt& body, std::vector<const TileOp*>* first = nullptr);

/// Can TMA make the copy of a block by a map, under `facts`? It converts nothing and pads with zeros (`pad` is the
/// copy's value past the tensor's ends), the tensor's rows are at multiples of 16 bytes from its base, and every box
/// begins at a multiple of 16 bytes in its row and at an address that TMA supports in shared memory. Alignment of the
/// bases, and extents beyond the limits of a map, are the caller's responsibility. Gives the reason in `reason` if not.
bool is_box_copy(const TileOp& op, const Expr& pad, const Facts& facts, std::string* reason);

/// The swizzle that the map of a copy of boxes can use instead of row-major order; nothing if rows of a box are not 32,
/// 64 or 128 bytes, or boxes may begin within its period.
std::optional<Swizzle> box_swizzle(const TileOp& op);

}  // namespace helve
