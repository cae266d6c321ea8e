// Layouts whose values are coordinates: strides that are sums of multiples of basis elements (CuTe's ScaledBasis).
// The identity layout of a shape, cut and sliced as data are, says where in the tensor each piece lies.
#pragma once

#include <string>
#include <vector>

#include "helve/layout/cute/algebra.h"

namespace helve::cute {

/// `value` steps of the entry at `path` of a coordinate: E<path> * value.
struct BasisTerm {
  std::vector<size_t> path;
  int64_t value = 1;

  bool operator==(const BasisTerm&) const = default;
};
/// A sum of multiples of basis elements, sorted by path, none with value 0.
using Basis = std::vector<BasisTerm>;

Basis add(const Basis& a, const Basis& b);
Basis multiply(const Basis& a, int64_t factor);
/// "2@0", "1@1@0" for entry 0 of entry 1, "1@0+3@1"; "0" for none.
std::string to_string(const Basis& basis);

/// A function from coordinates of a shape to coordinates: nested tuples of the least structure that has all paths.
///
/// It is kept as an ordinary layout whose offsets number the coordinates, so that the algebra of layouts is that of
/// these. Entries of a value are below 2^(62 / n) / 4, where it has n: beyond, UnsupportedError.
class CoordinateLayout {
 public:
  /// One stride for each leaf of `shape`. Throws ShapeError for another number of them, UnsupportedError for a path
  /// that goes through another.
  CoordinateLayout(const IntTuple& shape, const std::vector<Basis>& strides);

  /// The layout of the numbers.
  const Layout& inner() const { return inner_; }
  /// The same numbering after another layout.
  CoordinateLayout with_inner(Layout inner) const;

  /// Of the entries of values, from left to right: where each stands.
  const std::vector<std::vector<size_t>>& paths() const { return paths_; }
  /// Entry i of values, as a layout of this shape.
  Layout entry(size_t i) const;

  IntTuple shape() const { return inner_.shape(); }
  /// The strides of the leaves.
  std::vector<Basis> strides() const;
  int64_t size() const { return inner_.size(); }
  size_t rank() const { return inner_.rank(); }
  size_t depth() const { return inner_.depth(); }
  CoordinateLayout mode(size_t i) const { return with_inner(inner_.mode(i)); }

  IntTuple operator()(int64_t index) const { return value(inner_(index)); }
  IntTuple operator()(const IntTuple& coordinate) const { return value(inner_(coordinate)); }
  /// The coordinate with a number of inner().
  IntTuple value(int64_t number) const;

  /// Throws UnsupportedError when a tiler reaches so far past the end that entries leave their bounds.
  void check_reach(const Tiler& tiler) const;

  friend bool operator==(const CoordinateLayout& a, const CoordinateLayout& b) = default;

 private:
  void check_bounds(int64_t past) const;

  Layout inner_;
  Profile codomain_;
  std::vector<std::vector<size_t>> paths_;
};

/// The coordinates of `shape` themselves: stride E<path> at each leaf.
CoordinateLayout make_identity_layout(const IntTuple& shape);
/// "(4,8):(1@0,1@1)".
std::string to_string(const CoordinateLayout& layout);

CoordinateLayout composition(const CoordinateLayout& layout, const Tiler& tiler);
/// The layout R of b's shape with R(c) = a(b(c)), where there is one: values of b are coordinates of a. An entry that
/// is past the end of its mode continues that mode, as an index does; a mode without an entry stays at 0. Throws
/// BoundsError for an entry that a has no mode for, UnsupportedError with a witness where there is no such layout, and
/// for strides along several entries that go down.
Layout composition(const Layout& a, const CoordinateLayout& b);
/// The kept modes.
CoordinateLayout slice(const IntTuple& coordinate, const CoordinateLayout& layout);
/// The kept modes, and the value of the fixed ones.
std::pair<CoordinateLayout, IntTuple> slice_and_offset(const IntTuple& coordinate, const CoordinateLayout& layout);

}  // namespace helve::cute
