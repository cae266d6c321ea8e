// Boxes of elements that strides place in memory, and which of them meet.
// Calls compare the memory of arguments and compiles the declared strides of parameters by one search.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace helve {

/// Whether two strided boxes of elements share a byte. Exact but for a bound on the search, beyond which it answers
/// true. Strides in bytes; `element` bytes each.
struct StridedBox {
  const std::byte* base;
  std::span<const int64_t> extents;
  std::span<const int64_t> strides;
  int64_t element;
};
bool share_memory(const StridedBox& a, const StridedBox& b);

/// Do the strides keep the elements apart because each steps over all that the smaller ones reach? Sufficient, and
/// allocates nothing: slices, transposed and padded tensors are of this kind.
bool strides_nest(std::span<const int64_t> extents, std::span<const int64_t> strides);

/// Whether the elements of one box have addresses of their own. Open where the search was given up.
struct Separation {
  enum Kind { Apart, Together, Open } kind = Apart;
  std::vector<int64_t> first, second;  ///< of Together: two elements with one address
};
Separation separation(std::span<const int64_t> extents, std::span<const int64_t> strides);
/// "elements (1, 0) and (0, 2) have one address"; not of Apart.
std::string fault_text(const Separation& separation);

}  // namespace helve
