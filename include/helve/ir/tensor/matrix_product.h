// Products of matrices that stand in registers: mma.sync.m16n8kK, where K is 256 bits of factors.
// A warp multiplies 16 x K elements by K x 8 and adds to 16 x 8 sums of 32 bits; which thread holds which element is a
// layout, and everything else about a larger product is arithmetic on layouts.
// Source: PTX ISA, "Matrix fragments for mma.m16n8k16 with floating point type", and those for m16n8k8 with .tf32 and
// m16n8k32, which differ in how many elements share a register of 32 bits.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "helve/ir/tensor/stmt.h"

namespace helve {

/// One instruction's product: C (16, 8) += A (16, K) @ B (K, 8).
inline constexpr int64_t kProductRows = 16, kProductColumns = 8;

/// A (M, K) @ B (K, N), where a factor may stand in memory as its transpose.
struct ProductShape {
  int64_t m, n, k;
  bool transpose_a = false, transpose_b = false;
  int64_t bits = 16;  ///< of an element of a factor
  bool integers = false;

  /// The depth of one instruction, and the elements of a factor in a register of 32 bits.
  int64_t depth() const { return 256 / bits; }
  int64_t packed() const { return 32 / bits; }
};

ProductShape with_types(ProductShape shape, DType factor);

/// Why instructions do not make up a product of this shape; nothing where they do.
std::optional<std::string> uneven(const ProductShape& shape);

/// The layouts of the factors and of the sums on tx and reg.
struct ProductLayouts {
  Layout a, b, c;
};

/// `rows` x `columns` warps, side by side in the rows of C first: each has equal parts of M and of N.
struct WarpGrid {
  int64_t rows, columns;
};

/// The layouts of a block whose warps divide C so; M is a multiple of 16 * rows, N of 8 * columns, K of the depth.
/// Warps that multiply by the same elements have a copy each.
ProductLayouts product_layouts(const ProductShape& shape, const WarpGrid& warps);

/// What each warp computes: m x n sums of instructions, over k of them. Registers of operands begin at multiples of
/// what an instruction takes: 4 words of A, 2 of B, 4 sums.
struct MatrixProduct {
  int64_t m, n, k;
  std::vector<int64_t> a;  ///< a[i * k + l]: the first register of the factor's part (i, l)
  std::vector<int64_t> b;  ///< b[l * n + j]
  std::vector<int64_t> c;  ///< c[i * n + j]
};

/// The product that operands with these layouts are; nothing, with the reason, where the instruction does not serve
/// them: elements of an instruction that stand otherwise, or a warp without the elements that its sums need.
std::optional<MatrixProduct> matrix_product(const ProductShape& shape, const ProductLayouts& layouts,
                                            std::string* reason);

/// The parts of a T.mma.
struct ProductOperands {
  const Region &a, &b, &c;
  ProductLayouts layouts;
  ProductShape shape;

  /// Have the fragments a dimension of threads and one of registers? Before, they have the layouts themselves.
  bool divided() const { return !c.buffer->layout; }
};
ProductOperands product_operands(const TileOp& op);

}  // namespace helve
