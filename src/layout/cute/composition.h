// The left operand of a composition, and operations mode by mode.
// Shared with the operations that ask for values of one layout at the offsets of another.
#pragma once

#include <string>

#include "flat.h"
#include "helve/layout/cute/algebra.h"
#include "helve/layout/layout.h"

namespace helve::cute {

/// Counts the steps of an exact search and refuses after kLayoutStepLimit.
class Steps {
 public:
  explicit Steps(const char* operation) : operation_(operation) {}
  void count() {
    if (++used_ > kLayoutStepLimit) refuse();
  }

 private:
  [[noreturn]] void refuse() const;
  const char* operation_;
  int64_t used_ = 0;
};

/// Even steps of the right operand: `extent` steps of `stride` in indices of the left one, of `value` in its offsets.
struct Piece {
  int64_t extent;
  int64_t stride;
  int64_t value;
  size_t leaf;   ///< of the right operand
  int64_t step;  ///< in that leaf's coordinate
};
using Pieces = InlineVector<Piece, 6>;

/// A layout as a function of all integers.
class Outer {
 public:
  explicit Outer(const Modes& modes);

  Wide at(int64_t index) const;
  /// The least x in (0, extent) with at(x * stride) other than x * at(stride); `extent` when there is none.
  int64_t first_uneven(int64_t extent, int64_t stride, Steps& steps) const;
  /// The stride of a mode of extent 1, which is never taken: that of the last mode, in the steps that reach it.
  int64_t idle_stride(int64_t stride) const;
  /// Whether a sum of pieces can cross a border that its parts do not cross.
  bool carries(const Pieces& pieces) const;

 private:
  /// floor(x / at) enters the value `jump` times.
  struct Border {
    int64_t at;
    Wide jump;
  };
  Modes modes_;
  InlineVector<Border, 6> borders_;
};

/// The composition of flat endless modes with a layout; the modes name themselves in messages.
Layout compose(const Modes& a, const Layout& b);

using Binary = Layout (*)(const Layout&, const Layout&);

/// `apply` where the tiler has a layout; modes at Keep and beyond a tuple stay. Throws ShapeError for too many modes.
Layout by_mode(const char* operation, const Layout& a, const Tiler& tiler, Binary apply);
void check_tiler(const char* operation, const Layout& layout, const TilerTuple& modes);

}  // namespace helve::cute
