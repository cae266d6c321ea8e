// Layouts with more stages than one: a layout, then swizzles or layouts of its offsets.
// A swizzle is no layout (it is linear in bits, not in integers), so what follows the layout is kept as it is.
#pragma once

#include <variant>
#include <vector>

#include "helve/layout/cute/algebra.h"
#include "helve/layout/layout.h"

namespace helve::cute {

/// Checked: 0 <= bits <= |shift|, 0 <= base; a shift of 0 has no bits. Negative shifts key high bits by low ones.
/// Throws UnsupportedError.
Swizzle make_swizzle(int64_t bits, int64_t base, int64_t shift);
/// "SW_3_2_4".
std::string to_string(const Swizzle& swizzle);
/// 2^(bits + base + |shift|): the swizzle permutes every aligned block of so many.
int64_t size(const Swizzle& swizzle);

/// s o t as one swizzle. Throws UnsupportedError unless the shifts are equal, the bits that are read stay unwritten,
/// and the exclusive or of the masks is one run of bits.
Swizzle composition(const Swizzle& s, const Swizzle& t);
/// In units of n elements, a power of two: the base sinks, and below 0 low bits fall inside a unit. Throws
/// DivisibilityError, UnsupportedError where bits inside a unit would move units.
Swizzle upcast(const Swizzle& swizzle, int64_t n);
Swizzle downcast(const Swizzle& swizzle, int64_t n);
Swizzle recast(const Swizzle& swizzle, int64_t old_bits, int64_t new_bits);

/// An offset is added, then the map applied.
struct Stage {
  int64_t offset = 0;
  std::variant<Swizzle, Layout> map;

  bool operator==(const Stage&) const = default;
};

/// c -> stage_n(... stage_1(inner(c))). It has the shape of `inner` and no strides.
class ComposedLayout {
 public:
  ComposedLayout(Layout inner, std::vector<Stage> stages);

  const Layout& inner() const { return inner_; }
  const std::vector<Stage>& stages() const { return stages_; }
  /// The same stages after another layout.
  ComposedLayout with_inner(Layout inner) const { return ComposedLayout(std::move(inner), stages_); }
  /// One more stage at the outside.
  ComposedLayout then(Stage stage) const;

  int64_t size() const { return inner_.size(); }
  size_t rank() const { return inner_.rank(); }
  size_t depth() const { return inner_.depth(); }
  ComposedLayout mode(size_t i) const { return with_inner(inner_.mode(i)); }
  /// The largest value + 1, by evaluation. Throws UnsupportedError beyond kLayoutStepLimit elements.
  int64_t cosize() const;

  int64_t operator()(int64_t index) const { return through(inner_(index)); }
  int64_t operator()(const IntTuple& coordinate) const { return through(inner_(coordinate)); }

  friend bool operator==(const ComposedLayout& a, const ComposedLayout& b) = default;

 private:
  int64_t through(int64_t value) const;
  Layout inner_;
  std::vector<Stage> stages_;
};

/// "SW_3_2_4 o 0 o (8,8):(8,1)".
std::string to_string(const ComposedLayout& layout);
std::string print_layout(const ComposedLayout& layout);

/// The kept modes; the offset of the fixed ones is added before the first stage.
ComposedLayout slice(const IntTuple& coordinate, const ComposedLayout& layout);

ComposedLayout composition(const Swizzle& swizzle, const Layout& layout);
ComposedLayout composition(const Swizzle& swizzle, const ComposedLayout& layout);
/// A o (f o L) as one more stage.
ComposedLayout composition(const Layout& a, const ComposedLayout& layout);
/// (f o L) o B = f o (L o B).
ComposedLayout composition(const ComposedLayout& layout, const Tiler& b);
/// A o s = s' o A, where the bits of s go to runs of bits by A. Throws UnsupportedError, with an index where no such s'
/// has the value.
ComposedLayout composition(const Layout& a, const Swizzle& swizzle);

/// Layout and offset with the same values, when there are such: a slice inside the bits that the swizzle leaves alone
/// is an ordinary layout. By evaluation; throws UnsupportedError beyond kLayoutStepLimit elements.
std::optional<std::pair<Layout, int64_t>> affine(const ComposedLayout& layout);

/// The inverses of s o L, s a swizzle without an offset: those of L, after s. Throws UnsupportedError for other stages.
ComposedLayout right_inverse(const ComposedLayout& layout);
ComposedLayout left_inverse(const ComposedLayout& layout);
/// That of the inner layouts, inside the 2^base elements that a swizzle keeps together.
Layout max_common_layout(const ComposedLayout& a, const Layout& b);

ComposedLayout upcast(const ComposedLayout& layout, int64_t n);
ComposedLayout downcast(const ComposedLayout& layout, int64_t n);
ComposedLayout recast(const ComposedLayout& layout, int64_t old_bits, int64_t new_bits);

}  // namespace helve::cute
