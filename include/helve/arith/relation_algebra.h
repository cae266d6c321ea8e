// The algebra of sets and relations.
// Every result is what the operation names, or a superset of it whose inexact() says why. A superset arises of inexact
// operands; an operation that an inexact operand would make too small keeps what it would otherwise take away. An
// operation that exceeds the budget, and any on its result, has a result about which all queries answer "unknown".
//
// Operands are of one engine. Tuples correspond by position; the result names its entries as the first operand does.
#pragma once

#include <string>
#include <vector>

#include "helve/arith/relation.h"

namespace helve {

/// The points of either set, of both, and of `a` without those of `b`. Sets of tuples of equal lengths. No point is
/// known to be one of an inexact `b`: the difference is then `a`, and inexact.
IntegerSet union_of(const IntegerSet& a, const IntegerSet& b);
IntegerSet intersection_of(const IntegerSet& a, const IntegerSet& b);
IntegerSet difference_of(const IntegerSet& a, const IntegerSet& b);

/// The same of the pairs of relations of equal arities.
IntegerRelation union_of(const IntegerRelation& a, const IntegerRelation& b);
IntegerRelation intersection_of(const IntegerRelation& a, const IntegerRelation& b);
IntegerRelation difference_of(const IntegerRelation& a, const IntegerRelation& b);

/// { b -> a : a -> b in relation }.
IntegerRelation inverse_of(const IntegerRelation& relation);
/// { a -> c : a -> b in first and b -> c in second for some b }.
IntegerRelation composition_of(const IntegerRelation& first, const IntegerRelation& second);

/// The tuples that have an image, and the images.
IntegerSet domain_of(const IntegerRelation& relation);
IntegerSet range_of(const IntegerRelation& relation);
/// The pairs whose tuple, or whose image, is in the set.
IntegerRelation with_domain_in(const IntegerRelation& relation, const IntegerSet& set);
IntegerRelation with_range_in(const IntegerRelation& relation, const IntegerSet& set);
/// The images of the tuples in the set.
IntegerSet image_of(const IntegerSet& set, const IntegerRelation& relation);

/// The pairs as tuples: those of the relation's tuple and image, one after the other.
IntegerSet pairs_of(const IntegerRelation& relation);
/// { the first `arity` entries -> the others }: the inverse of pairs_of, by which a condition on tuple and image
/// becomes a relation.
IntegerRelation relation_of(const IntegerSet& pairs, size_t arity);
/// The set as a superset of what its user means, for that reason; an inexact one keeps its own.
IntegerSet as_superset(const IntegerSet& set, const std::string& reason);
/// The same points with other variables as the names of the entries, for a tuple that names a variable twice.
IntegerSet renamed(const IntegerSet& set, std::vector<VarRef> tuple);

}  // namespace helve
