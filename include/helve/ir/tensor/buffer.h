// Buffers and regions of them.
// A buffer is declared once and named by identity; its logical shape, its tile and its place are data that layouts are
// made from.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "helve/ir/expr/build.h"
#include "helve/ir/expr/expr.h"
#include "helve/layout/layout.h"
#include "helve/support/diagnostic.h"

namespace helve {

/// Where a buffer lives. `Param` is a tensor argument; `Global` outlives kernels (in a mesh function one instance a
/// core); `Shared` belongs to a block (a core); `Fragment` is spread over the executors' registers; `Local` is private
/// to a thread.
enum class MemoryScope { Param, Global, Shared, Fragment, Local };
std::string_view to_string(MemoryScope scope);

/// Where a buffer of a kernel is kept, decided in lowered code; has no effect on results. On a GPU a thread keeps its
/// part of a Fragment or Local buffer with an element a register, with elements smaller than a register packed, or in
/// memory, where subscripts are known only when the kernel runs. On a CPU a buffer of a block is kept on the stack;
/// with any other place, in the scratch memory of the worker that executes the block.
enum class ArrayPlace { Registers, Packed, Memory, Stack };
inline constexpr int kArrayPlaces = 4;
std::string_view to_string(ArrayPlace place);

struct Buffer final : Storage {
  MemoryScope scope = MemoryScope::Shared;
  std::vector<Expr> shape;     ///< logical extents (index expressions)
  std::vector<int64_t> tile;   ///< tile extents, one a dimension, or empty when the buffer has none
  std::vector<Expr> strides;   ///< declared strides of a parameter in elements, or empty for compact row-major
  std::optional<Layout> layout;  ///< where the elements of shared memory or of a fragment are to lie; no meaning else
  std::optional<int64_t> offset;  ///< of shared memory: its first byte in the memory of the block (shared_place.h)
  int64_t slots = 0;  ///< of shared memory that a ring hands over (ring.h): how many instances of it there are
  bool sorted = false;  ///< of a parameter: the elements of calls' arguments do not decrease
  ArrayPlace place = ArrayPlace::Registers;  ///< of what a thread has for itself, or a block on a CPU
  size_t rank() const override { return shape.size(); }

  static constexpr auto fields() {
    return std::tuple{field("dtype", &Buffer::dtype),     field("scope", &Buffer::scope),
                      field("shape", &Buffer::shape),     field("tile", &Buffer::tile),
                      field("strides", &Buffer::strides), field("layout", &Buffer::layout),
                      field("offset", &Buffer::offset),   field("slots", &Buffer::slots),
                      field("sorted", &Buffer::sorted),   field("place", &Buffer::place)};
  }
};
using BufferRef = Ref<const Buffer>;

/// Validates and makes a buffer: extents are index expressions, constants not negative (NegativeExtent), tile extents
/// positive and one a dimension; strides are index expressions, one a dimension.
BufferRef make_buffer(std::string name, DType dtype, MemoryScope scope, std::vector<Expr> shape,
                      std::vector<int64_t> tile = {}, std::vector<Expr> strides = {}, Span span = {});

/// The parameter with the promise that the elements of an argument do not decrease: of one dimension, of integers
/// (BadArgument).
BufferRef as_sorted(const BufferRef& buffer);

/// `buffer` at another place; it is a Fragment or Local, or Shared where the place is the stack or none.
BufferRef at_place(const BufferRef& buffer, ArrayPlace place);

/// A new buffer with the declaration of `b`.
BufferRef declare_again(const Buffer& b);

/// The Buffer behind a storage; every storage of the tensor IR is one.
inline const Buffer& buffer_of(const StorageRef& s) { return static_cast<const Buffer&>(*s); }
inline BufferRef buffer_ref(const StorageRef& s) { return BufferRef(static_cast<const Buffer*>(s.get())); }

/// Is the buffer a global tensor? Copies may reach past the end of one, and of nothing else.
inline bool is_global(const Buffer& b) { return b.scope == MemoryScope::Param || b.scope == MemoryScope::Global; }

/// One dimension of a region: `extent` elements from `begin`. A point drops its dimension from the region's shape.
struct Range {
  Expr begin;
  Expr extent;
  bool point = false;
};

/// A box of a buffer.
struct Region {
  BufferRef buffer;
  std::vector<Range> ranges;

  /// Extents of the dimensions that are not points.
  std::vector<Expr> shape() const;
  /// Does it take all indices of dimension `d`?
  bool covers(size_t d) const;
  bool whole() const;
};

/// A function of one index, `lambda var: value`; the variable is known in the value alone.
struct IndexMap {
  VarRef var;
  Expr value;
};

/// The region that covers all of `buffer`.
Region whole_region(BufferRef buffer);

/// Constant extents of `shape`, or empty when one of them is no constant.
std::optional<std::vector<int64_t>> constant_shape(const std::vector<Expr>& shape);

/// "(32, 256)" or "(M, 256)": the shape as in diagnostics.
std::string shape_text(const std::vector<Expr>& shape);

/// "'A' has shape (4, M)", at the buffer's declaration.
Note declaration_note(const Buffer& buffer);

/// What to do about a constant index that is outside of a dimension: no guard and no loop is to blame.
std::string range_remedy(int64_t dim, int64_t extent);

/// The tile of T.alloc_shared_tiles where none is asked for: 32 by 32 elements of the last dimensions.
std::vector<int64_t> default_tile(size_t rank);

/// Does the buffer consist of tiles?
inline bool is_tiled(const Buffer& b) { return !b.tile.empty(); }

}  // namespace helve
