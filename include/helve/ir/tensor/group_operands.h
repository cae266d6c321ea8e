// Operands of a collective that say which core of a group it is about, and what cores of a group it leaves alone.
// A root, a shift, the source of a permutation, a core of the mesh: all cores of a group have the same, or the
// collective would mean something else to each of them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "helve/ir/tensor/function.h"

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

/// A value that counts members of a group, or cores along an axis of the mesh: it is in [0, count).
struct MemberOperand {
  size_t operand;
  Expr value;
  int64_t count;
  std::string reason;  ///< why others are none
  const char* remedy;
};

/// Those of a collective: its root, or the coordinates of the cores of a put in the order of its operands.
std::vector<MemberOperand> members_of(const TileOp& op, const MeshShape& mesh);

/// The source of each member of a permutation among so many, whichever way it is written.
IndexMap source_of(const TileOp& permute, int64_t members);

/// Do some cores keep their destination, or parts of it?
bool keeps_destinations(const TileOp& collective);

}  // namespace helve
