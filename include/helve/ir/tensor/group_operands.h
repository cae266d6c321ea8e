// Operands of a collective that say which core of a group it is about, and what cores of a group it leaves alone.
// A root, a shift, the source of a permutation, a core of the mesh: all cores of a group have the same, or the
// collective would mean something else to each of them.
#pragma once

#include <functional>

#include "helve/ir/tensor/stmt.h"

namespace helve {

/// Is operand `i` such an operand?
bool is_of_group(const TileOp& op, size_t i);

/// Calls `f` on the expressions of those operands, with the number of the operand; of a map, on its value.
void for_each_of_group(const TileOp& op, const std::function<void(size_t, const Expr&)>& f);

/// The collective with `f` of those expressions; of a map, `f` of the largest index and bool expressions in which its
/// variable does not occur. What `f` gets has a value wherever the collective runs: a part that the map evaluates only
/// under conditions comes as a selection by them. Where they depend on the variable, only parts that always have a
/// value are mapped, and loads at subscripts that are not constant stay. The collective itself if nothing changes.
Ref<const TileOp> map_of_group(const TileOp& op, const std::function<Expr(size_t, const Expr&)>& f);

/// The source of each member of a permutation among so many, whichever way it is written.
IndexMap source_of(const TileOp& permute, int64_t members);

/// Do some cores keep their destination, or parts of it?
bool keeps_destinations(const TileOp& collective);

}  // namespace helve
