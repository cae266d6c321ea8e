// Strided boxes of elements in memory, and which of them overlap.
// Calls compare the memory of arguments, and compiles the declared strides of parameters, by the same search.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace helve {

/// Do two strided boxes of elements share a byte? Exact up to a limit of the search, beyond which the result is true.
/// Strides in bytes; `element` bytes each.
struct StridedBox {
  const std::byte* base;
  std::span<const int64_t> extents;
  std::span<const int64_t> strides;
  int64_t element;
};
bool share_memory(const StridedBox& a, const StridedBox& b);

/// Do elements not overlap because each stride exceeds the reach of all smaller ones? Sufficient, and allocates
/// nothing: true for slices, transposed and padded tensors.
bool strides_nest(std::span<const int64_t> extents, std::span<const int64_t> strides);

/// Do the elements of one box have different addresses? Open if the search was abandoned.
struct Separation {
  enum Kind { Apart, Together, Open } kind = Apart;
  std::vector<int64_t> first, second;  ///< of Together: two elements with one address
};
Separation separation(std::span<const int64_t> extents, std::span<const int64_t> strides);
/// "elements (1, 0) and (0, 2) have one address"; not of Apart.
std::string fault_text(const Separation& separation);

/// What to do about an argument with other strides than its parameter declares.
std::string strides_remedy(std::span<const int64_t> declared, std::span<const int64_t> given);

}  // namespace helve
