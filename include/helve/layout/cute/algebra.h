// The algebra of CuTe layouts: composition, complement, inverses, division and products.
// Each operation states its law and its precondition; a result that breaks the law is refused, with the coordinate that
// shows it.
#pragma once

#include <variant>

#include "helve/layout/cute/layout.h"

namespace helve::cute {

struct Tiler;
/// Mode by mode: a tuple of tilers for the modes from the left.
using TilerTuple = std::vector<Tiler>;
/// Leave the mode as it is.
struct Keep {};

/// What tiles a layout: a layout over its whole domain (an integer n is n:1), or one tiler a mode.
struct Tiler {
  std::variant<Keep, Layout, TilerTuple> value;

  Tiler() = default;
  Tiler(Layout layout) : value(std::move(layout)) {}
  Tiler(TilerTuple modes) : value(std::move(modes)) {}
  /// Integers become n:1, kAll becomes Keep.
  explicit Tiler(const IntTuple& tuple);
};
std::string to_string(const Tiler& tiler);

/// The shortest flat layout with the same values on [0, size).
Layout coalesce(const Layout& layout);
/// The same for each entry of `profile` apart; modes beyond it stay. Throws ShapeError for a profile of higher rank.
Layout coalesce(const Layout& layout, const IntTuple& profile);
/// The modes with stride 0 get extent 1.
Layout filter_zeros(const Layout& layout);
/// Neither modes of stride 0 nor of extent 1, coalesced; 1:0 when nothing is left.
Layout filter(const Layout& layout);
Layout filter(const Layout& layout, const IntTuple& profile);

/// R with R(c) = A(B(c)) for every coordinate c of B, compatible(B, R). Exact: answers whenever such an R exists, else
/// throws DivisibilityError with a coordinate where no layout has the value. (UnsupportedError after kLayoutStepLimit
/// steps, for operands whose carries cancel.) R is coalesced below each leaf of B.
Layout composition(const Layout& a, const Layout& b);
/// By mode; modes beyond a short tuple stay. Throws ShapeError for a tuple with more modes.
Layout composition(const Layout& a, const Tiler& b);

/// R, ordered, whose offsets with those of L are all different: (L, R) is injective. Needs non-negative strides that,
/// sorted, each begin at or after the end, extent * stride, of the mode before: InjectivityError when L is not
/// injective, else DivisibilityError; UnsupportedError for negative strides. Copies of L up to its last end cover
/// [0, cosize_hi). Where each stride is a multiple of the end before, (L, R) is a permutation of [0, size), and
/// cosize((L, R)) >= cosize_hi.
Layout complement(const Layout& layout, int64_t cosize_hi = 1);

/// R with L(R(i)) = i for i < size(R): the longest chain of whole modes. Where the modes of L with a stride above 0 map
/// injectively and none is negative, no function has a larger domain.
Layout right_inverse(const Layout& layout);
/// R with L(R(L(i))) = L(i), and R(L(i)) = i where L is injective. Needs non-negative strides that, sorted, divide each
/// other: DivisibilityError, UnsupportedError; InjectivityError where overlapping modes break the law.
Layout left_inverse(const Layout& layout);

/// R with a(R(i)) = b(R(i)) = i for i < size(R), the longest one that begins right_inverse(b).
Layout max_common_layout(const Layout& a, const Layout& b);
int64_t max_common_vector(const Layout& a, const Layout& b);
/// K with L(K(i)) = 0, of as many elements as L has for each of filter(L).
Layout nullspace(const Layout& layout);
/// An ordered layout whose size divides n and that divides `shape`: at each leaf the greatest common divisor.
Layout domain_distribute(const IntTuple& shape, int64_t n);
/// Whether the tiler cuts `shape` into equal tiles with nothing left over. Throws BoundsError for an extent below 1.
bool evenly_divides(const IntTuple& shape, const Tiler& tiler);
/// How many tiles cover `shape`: shape(complement(tiler, shape)).
IntTuple ceil_div(const IntTuple& shape, const Layout& tiler);

/// (tile, rest): A o (B, complement(B, size(A))). Every element of A is in one tile; the last tiles may go past the end
/// of A, which continues its last mode. Throws like composition and complement; DivisibilityError when the tile has
/// gaps that no other tile can fill.
Layout logical_divide(const Layout& a, const Layout& tile);
Layout logical_divide(const Layout& a, const Tiler& tiler);
/// ((tile modes), (rest modes)); by mode, the modes beyond the tiler are rest.
Layout zipped_divide(const Layout& a, const Tiler& tiler);
/// ((tile modes), rest modes...).
Layout tiled_divide(const Layout& a, const Tiler& tiler);
/// (tile modes..., rest modes...).
Layout flat_divide(const Layout& a, const Tiler& tiler);

/// (A, complement(A, M) o B), M large enough for every offset of B: a copy of A for every element of B, which do not
/// overlap where B is injective.
Layout logical_product(const Layout& a, const Layout& b);
/// By mode, each for itself: the results of two modes may overlap.
Layout logical_product(const Layout& a, const Tiler& tiler);
Layout zipped_product(const Layout& a, const Tiler& tiler);
Layout tiled_product(const Layout& a, const Tiler& tiler);
Layout flat_product(const Layout& a, const Tiler& tiler);
/// Mode i is (mode i of A, mode i of the copies): blocks side by side.
Layout blocked_product(const Layout& a, const Layout& b);
/// Mode i is (mode i of the copies, mode i of A): blocks interleaved.
Layout raked_product(const Layout& a, const Layout& b);
/// Copies of `block` up to `shape`, in `order` (left first when there is none). Throws DivisibilityError when an extent
/// of the block does not divide that of the shape, ShapeError when the block has more modes.
Layout tile_to_shape(const Layout& block, const IntTuple& shape, const std::optional<IntTuple>& order = std::nullopt);

/// ((M, N), TV) of a thread and a value layout: the tile that both cover, raked, and the layout that maps (thread,
/// value) to the tile's colexicographic index. Throws InjectivityError unless both are compact.
std::pair<IntTuple, Layout> make_tv_layout(const Layout& threads, const Layout& values);

/// The tile at `coordinate` of zipped_divide(layout, tiler), and its offset; rest modes at kAll follow the tile's.
/// Throws like zipped_divide and slice.
std::pair<Layout, int64_t> local_tile(const Layout& layout, const Tiler& tiler, const IntTuple& coordinate);
/// What one of the threads of a compact layout gets of `layout`, one element of every tile of the threads' shape: the
/// rest modes and the offset. Throws like zipped_divide; BoundsError for a thread that is not there, InjectivityError
/// when the threads are not compact.
std::pair<Layout, int64_t> local_partition(const Layout& layout, const Layout& threads, int64_t thread);
/// A compact layout for registers: mode 0 first, left fastest and with stride 0 kept, then the other modes in the order
/// of their strides.
Layout make_fragment_like(const Layout& layout);

/// Offsets in units of n elements: U(c) = L(c) / n rounded down, c without the digits inside a unit. Each stride is a
/// multiple of n or divides n, and then its extent and n / stride divide one another. Throws DivisibilityError.
Layout upcast(const Layout& layout, int64_t n);
/// Offsets in units of 1 / n element: the mode of stride 1 (or -1) grows n-fold. Throws DivisibilityError without one,
/// InjectivityError with several.
Layout downcast(const Layout& layout, int64_t n);
/// The same memory as elements of `new_bits` instead of `old_bits`.
Layout recast(const Layout& layout, int64_t old_bits, int64_t new_bits);

}  // namespace helve::cute
