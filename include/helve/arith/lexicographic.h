// The lexicographic order of tuples, and first and last images in it.
// The order in which a loop nest runs its iterations: what a value is read from is the last write before the read.
#pragma once

#include <vector>

#include "helve/arith/relation.h"

namespace helve {

/// { a -> b : a << b }: the first entry in which they differ is smaller in `a`. Tuples of one length, named as given.
IntegerRelation before(const ExactEngine& engine, std::vector<VarRef> a, std::vector<VarRef> b);
/// { a -> b : a << b or a = b }.
IntegerRelation before_or_same(const ExactEngine& engine, std::vector<VarRef> a, std::vector<VarRef> b);

/// The reason of an inexact result where a tuple's images are not bounded.
inline constexpr std::string_view kUnboundedImages = "the images of a tuple are not bounded";

/// { a -> the lexicographically least b : a -> b in relation }, in which every tuple has one image. Where the least one
/// is not known (the relation is inexact, or has tuples, parameters given, without bounds of all entries of their
/// images) the relation itself: a superset, in which tuples may have several, with a reason in inexact().
IntegerRelation least_images(const IntegerRelation& relation);
/// The greatest ones, likewise.
IntegerRelation greatest_images(const IntegerRelation& relation);

}  // namespace helve
