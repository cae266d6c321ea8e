// Walks over nested tuples that more than one file of the algebra needs.
// Slicing is the same for shapes and for layouts, so it is written once for any leaf.
#pragma once

#include "helve/layout/cute/int_tuple.h"

namespace helve::cute {

[[noreturn]] void refuse_profile(const char* operation, IntCursor operand, IntCursor target);

/// Throws BoundsError for an extent below 1.
void check_extents(IntCursor shape);

/// Appends the kept subtrees of `at`, each as an entry.
template <class Leaf>
void collect_kept(const char* operation, IntCursor crd, Cursor<Leaf> at, const IntTuple& coordinate,
                  const IntTuple& shape, bool keep_all, Tree<Leaf>& kept, size_t& count) {
  if (crd.is_leaf()) {
    if ((*crd.leaves == kAll) != keep_all) return;
    kept.append(at);
    ++count;
    return;
  }
  if (at.is_leaf() || at.rank() != crd.rank()) refuse_profile(operation, coordinate.root(), shape.root());
  size_t rank = at.rank();
  crd = crd.front();
  at = at.front();
  for (size_t i = 0; i < rank; ++i, crd = crd.next(), at = at.next()) {
    collect_kept(operation, crd, at, coordinate, shape, keep_all, kept, count);
  }
}

/// The entries of `target` where the coordinate is kAll (or is not), one level up; `shape` names it in messages.
template <class Leaf>
Tree<Leaf> sliced(const char* operation, const IntTuple& coordinate, const Tree<Leaf>& target, const IntTuple& shape,
                  bool keep_all) {
  if (coordinate.is_leaf() && (coordinate.leaves[0] == kAll) == keep_all) return target;
  Tree<Leaf> kept;
  kept.profile.push_back(0);
  size_t count = 0;
  collect_kept(operation, coordinate.root(), target.root(), coordinate, shape, keep_all, kept, count);
  if (count == 0) throw_layout_error(Code::CuteNothingLeft, {{"operation", operation}});
  check_entries(count);
  kept.profile[0] = static_cast<uint16_t>(count);
  return kept;
}

}  // namespace helve::cute
