// What a copy moves: two matched regions and where each ends.
// Targets differ in how they walk the elements, not in which elements there are.
#pragma once

#include <optional>

#include "helve/dispatch/schedule_table.h"

namespace helve {

/// Regions of as many dimensions, extents written with constants where one side has one. Elements at or past an end,
/// one a dimension of the buffer, do not exist: they read as `pad` and are not written.
struct CopyRegions {
  Region src;
  Region dst;
  std::vector<Expr> src_ends;
  std::vector<Expr> dst_ends;
  Expr pad;
};

/// Of an operation with the rule Copy, CopyInstruction or MeshTensorCopy. Nothing, with the reason in `declined`, where
/// only the call decides which dimensions match.
std::optional<CopyRegions> copy_regions(const TileOp& op, const LoweringContext& context, std::string* declined);

/// Equal extents of two matched regions: where one side's is a constant, both are written with it.
void share_constant_extents(Region* a, Region* b);

/// Where each dimension of the region's buffer ends for a copy: past it, a global tensor pads and drops; anything else
/// has no past.
std::vector<Expr> ends_of(const Region& region);

/// Is some dimension of the two regions of one buffer known to end before the other's begins?
bool disjoint(const Region& a, const Region& b, const Facts& facts);

}  // namespace helve
