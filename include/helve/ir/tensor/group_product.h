// Products of matrices in shared memory by warpgroups: wgmma.mma_async.m64nNkK, where K is 256 bits of factors.
// Four warps multiply 64 x K elements by K x N and add to 64 x N sums of 32 bits in their registers. The factors stay
// in memory, where a descriptor tells the instruction how they lie; it follows from their layout. The first factor may
// be in registers instead. Rows in memory along M and N are read of elements of 16 bits only. Source: PTX ISA,
// "Asynchronous Warpgroup Level Matrix Instructions": register fragments, matrix descriptor, layouts of shared memory.
#pragma once

#include <optional>
#include <string>

#include "helve/ir/tensor/matrix_product.h"

namespace helve {

/// One instruction's product: C (64, n) += A (64, K) @ B (K, n), n a multiple of 8 up to 256, of integers beyond 32 of
/// 16.
inline constexpr int64_t kGroupRows = 64, kMostGroupColumns = 256;

/// How a factor lies in shared memory: in slabs of 16, 32, 64 or 128 bytes of all rows, each with the swizzle of its
/// width. Bytes; `leading` is 16 where the instruction reads nothing else by it.
struct MatrixDescriptor {
  int64_t leading = 16, stride = 16;
  int64_t swizzle = 0;  ///< bytes of a slab's row within which units of 16 are permuted: 128, 64, 32; 0: none

  bool operator==(const MatrixDescriptor&) const = default;
};

/// A factor as it stands in memory: rows of `columns` elements.
struct FactorTile {
  int64_t rows, columns;
  bool depth_last;  ///< elements of a row are neighbours along K, not along M or N
  int64_t bits = 16;  ///< of an element

  int64_t depth() const { return depth_last ? columns : rows; }
  int64_t lines() const { return depth_last ? rows : columns; }  ///< M or N
  /// The position of an element, row-major.
  int64_t at(int64_t line, int64_t k) const { return depth_last ? line * columns + k : k * columns + line; }
};
FactorTile tile_of_a(const ProductShape& shape);
FactorTile tile_of_b(const ProductShape& shape);

/// The layout with the widest slabs of which `part` columns are a whole number; a multiple of 16 bytes that divides the
/// columns.
Layout factor_layout(const FactorTile& tile, int64_t part);
inline Layout factor_layout(const FactorTile& tile) { return factor_layout(tile, tile.columns); }

/// The layout of a region that is a whole tile: all of the last two dimensions of its buffer, at one index of the
/// others. Nothing, with the reason, for other regions, and where a tile begins within the swizzle's period.
std::optional<Layout> tile_layout(const Region& region, std::string* reason);

/// The descriptor of a factor with this layout; nothing, with the reason, where it has none.
std::optional<MatrixDescriptor> matrix_descriptor(const Layout& layout, const FactorTile& tile, std::string* reason);

/// What an instruction reads: the address, in elements, of line `line` and depth `k` of the part whose descriptor has
/// `start`, by the definition of the descriptor alone.
int64_t described_address(const MatrixDescriptor& descriptor, const FactorTile& tile, int64_t start, int64_t line,
                          int64_t k);

/// The elements of the address before the swizzle, where a descriptor for the part from (line, k) on starts.
int64_t descriptor_start(const Layout& layout, const FactorTile& tile, int64_t line, int64_t k);

/// What each warpgroup computes: rows x columns parts of 64 x n sums, each in `depths` steps.
struct GroupProduct {
  WarpGrid groups;  ///< of warpgroups: group g has number g / columns along M, g % columns along N
  int64_t rows, columns, depths, n;

  int64_t own_columns() const { return columns * n; }
  /// The first row of part i of the groups with number `group` along M.
  int64_t first_row(int64_t i, int64_t group) const { return (i * groups.rows + group) * kGroupRows; }
  /// The first register of the sums of part (i, j).
  int64_t first_register(int64_t i, int64_t j) const { return (i * own_columns() + j * n) / 2; }
  int64_t registers() const { return rows * own_columns() / 2; }
  /// What ptxas demands that a thread begins with, for one instruction: its sums and 26 others (its error C7602).
  int64_t launch_registers() const { return n / 2 + 26; }
};

/// Why instructions do not make up a product of this shape; nothing where they do.
std::optional<std::string> uneven_for_groups(const ProductShape& shape);

/// The division among `groups` warpgroups with the most rows, whose instructions have columns in multiples of `unit`;
/// nothing if none is even.
std::optional<GroupProduct> divided_product(const ProductShape& shape, int64_t groups, int64_t unit);

/// The columns in whose multiples an instruction reads B: 8, or the slabs' width where they are along N.
int64_t column_unit(const MatrixDescriptor& b, const FactorTile& tile);

/// The layout of the sums on tx and reg.
Layout group_sums(const GroupProduct& product);

/// The layout of A in registers on tx and reg: warpgroups side by side along N have a copy each. A part of 64 rows has
/// `depths` times four words, in order.
Layout group_factor(const GroupProduct& product, const ProductShape& shape);

/// The division that the layout of the sums represents; nothing if it represents none.
std::optional<GroupProduct> group_product(const ProductShape& shape, const Layout& sums, int64_t unit);

/// The parts of a T.wgmma.
struct GroupOperands {
  const Region &a, &b, &c;
  MatrixDescriptor descriptor_a, descriptor_b;
  const Layout& sums;
  ProductShape shape;

  /// Is A a fragment? Then it has no descriptor.
  bool in_registers() const { return a.buffer->scope == MemoryScope::Fragment; }
  /// Has C a dimension of threads and one of registers? Before, it has the layout itself.
  bool divided() const { return !c.buffer->layout; }
  /// The division among warpgroups, which the verifier has found.
  GroupProduct product() const;
};
GroupOperands group_operands(const TileOp& op);

/// The operand of T.wgmma that a descriptor is.
std::vector<Expr> descriptor_operand(const MatrixDescriptor& descriptor);

}  // namespace helve
