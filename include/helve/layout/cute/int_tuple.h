// Nested tuples of integers: shapes, strides and coordinates of CuTe layouts.
// A tuple is its leaves from left to right and a profile, the structure alone; most questions need only the leaves.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "helve/layout/layout_error.h"
#include "helve/support/inline_vector.h"

namespace helve::cute {

/// The structure of a nested tuple in prefix order: a leaf, or a number of entries followed by these.
using Profile = InlineVector<uint16_t, 12>;
inline constexpr uint16_t kLeaf = 0xffff;
/// Deeper nesting is refused, so that recursion over a profile is bounded.
inline constexpr size_t kMaxDepth = 64;

/// A place in a nested tuple: the structure from here on and the leaves from here on.
template <class Leaf>
struct Cursor {
  const uint16_t* tokens;
  const Leaf* leaves;

  bool is_leaf() const { return *tokens == kLeaf; }
  /// The entries of a tuple; a leaf counts as one entry, itself.
  size_t rank() const { return is_leaf() ? 1 : *tokens; }
  /// The first entry.
  Cursor front() const { return is_leaf() ? *this : Cursor{tokens + 1, leaves}; }
  /// The neighbour to the right.
  Cursor next() const {
    Cursor at = *this;
    for (size_t open = 1; open > 0; ++at.tokens) {
      --open;
      if (*at.tokens == kLeaf) {
        ++at.leaves;
      } else {
        open += *at.tokens;
      }
    }
    return at;
  }
  Cursor entry(size_t i) const {
    Cursor at = front();
    while (i-- > 0) at = at.next();
    return at;
  }
};

/// A nested tuple with leaves of any plain type.
template <class Leaf>
struct Tree {
  InlineVector<Leaf, 6> leaves;
  Profile profile;

  Tree() = default;
  explicit Tree(Leaf leaf) : leaves{leaf}, profile{kLeaf} {}

  /// A tuple of `rank` entries, to be appended.
  static Tree tuple_of(size_t rank);
  static Tree flat(const Leaf* first, const Leaf* last) {
    Tree tree = tuple_of(static_cast<size_t>(last - first));
    tree.profile.append(static_cast<size_t>(last - first), kLeaf);
    tree.leaves.append(first, last);
    return tree;
  }

  Cursor<Leaf> root() const { return {profile.data(), leaves.data()}; }
  bool is_leaf() const { return profile[0] == kLeaf; }
  size_t rank() const { return root().rank(); }
  void append_leaf(Leaf leaf) {
    profile.push_back(kLeaf);
    leaves.push_back(leaf);
  }
  void append(Cursor<Leaf> from) {
    Cursor<Leaf> end = from.next();
    profile.append(from.tokens, end.tokens);
    leaves.append(from.leaves, end.leaves);
  }
  void append(const Tree& tree) {
    profile.append(tree.profile.begin(), tree.profile.end());
    leaves.append(tree.leaves.begin(), tree.leaves.end());
  }
  /// A copy of the subtree at a cursor.
  static Tree at(Cursor<Leaf> from) {
    Tree tree;
    tree.append(from);
    return tree;
  }
  friend bool operator==(const Tree& a, const Tree& b) { return a.profile == b.profile && a.leaves == b.leaves; }
};

/// An integer or a tuple of IntTuples.
using IntTuple = Tree<int64_t>;
using IntCursor = Cursor<int64_t>;

/// In a coordinate: every value of this mode (`None` in Python, an underscore in CuTe).
inline constexpr int64_t kAll = std::numeric_limits<int64_t>::min();

/// Throws for an empty tuple, for one with more entries than a profile can count, and for one nested too deeply.
void check_entries(size_t entries);
[[noreturn]] void refuse_depth();

template <class Leaf>
Tree<Leaf> Tree<Leaf>::tuple_of(size_t rank) {
  check_entries(rank);
  Tree tree;
  tree.profile.push_back(static_cast<uint16_t>(rank));
  return tree;
}

/// The levels of nesting; 0 for an integer.
size_t depth(const Profile& profile);

/// "(4,(2,3))"; a tuple of one entry is "(4,)", and kAll is "_".
std::string to_string(IntCursor tuple);
inline std::string to_string(const IntTuple& tuple) { return to_string(tuple.root()); }

/// The product of all leaves. Throws UnsupportedError beyond 64 bits.
int64_t product(IntCursor tuple);
inline int64_t product(const IntTuple& tuple) { return product(tuple.root()); }
/// The products of the entries.
IntTuple product_each(const IntTuple& tuple);
/// Exclusive products from the left, in the tuple's profile: the strides of a compact layout.
IntTuple prefix_product(const IntTuple& shape);
IntTuple flatten(const IntTuple& tuple);

/// Equal structure.
bool congruent(const IntTuple& a, const IntTuple& b);
/// Every coordinate's profile of `a` is one of `b`: where `a` has a leaf, `b` has anything.
bool weakly_congruent(const IntTuple& a, const IntTuple& b);
/// Every coordinate into `a` is one into `b`: at each leaf of `a`, `b` has as many elements.
bool compatible(const IntTuple& a, const IntTuple& b);
/// At each leaf of `a`, `b` has a multiple of as many elements.
bool weakly_compatible(const IntTuple& a, const IntTuple& b);

/// Division of shapes, entry by entry, or from the left where `b` is an integer: (4,5,6) by 40 is (1,1,3).
/// Throws DivisibilityError where of two integers neither divides the other, ShapeError for different ranks.
IntTuple shape_div(const IntTuple& a, const IntTuple& b);
/// The quotients rounded up, entry by entry.
IntTuple ceil_div(const IntTuple& a, const IntTuple& b);
/// The sum of the products of leaves. Throws ShapeError unless congruent.
int64_t inner_product(const IntTuple& a, const IntTuple& b);

/// The colexicographic index of a coordinate (an integer stands for a whole tuple anywhere). Throws ShapeError for a
/// coordinate that is not weakly congruent, BoundsError outside the shape; only the last mode may be exceeded.
int64_t crd2idx(const IntTuple& coordinate, const IntTuple& shape);
/// The same with strides: an offset.
int64_t crd2idx(const IntTuple& coordinate, const IntTuple& shape, const IntTuple& stride);
/// The natural coordinate of an index or of a coordinate; inverse of crd2idx on [0, size). Throws ShapeError,
/// BoundsError.
IntTuple idx2crd(const IntTuple& index, const IntTuple& shape);
/// The coordinate whose offset is `index`. Throws InjectivityError unless the strides are compact, in any order.
IntTuple idx2crd(const IntTuple& index, const IntTuple& shape, const IntTuple& stride);
/// A coordinate of one shape as one of another of as many elements.
IntTuple crd2crd(const IntTuple& coordinate, const IntTuple& target, const IntTuple& source);

/// The entries of `target` at kAll, as one tuple (`target` itself when the coordinate is kAll alone).
IntTuple slice(const IntTuple& coordinate, const IntTuple& target);
/// The other entries.
IntTuple dice(const IntTuple& coordinate, const IntTuple& target);
bool has_all(const IntTuple& coordinate);

}  // namespace helve::cute
