// The operands of a copy: two matched regions and their ends.
// Targets differ in the order in which they visit elements, not in which elements exist.
#pragma once

#include <optional>

#include "helve/dispatch/schedule_table.h"

namespace helve {

/// Regions of equal rank; an extent is constant in both if it is in one. Elements at or past an end, one per dimension
/// of the buffer, do not exist: they read as `pad` and are not written.
struct CopyRegions {
  Region src;
  Region dst;
  std::vector<Expr> src_ends;
  std::vector<Expr> dst_ends;
  Expr pad;
};

/// For an operation with the rule Copy, CopyInstruction or MeshTensorCopy. Nothing, with the reason in `declined`, if
/// only the call determines which dimensions match.
std::optional<CopyRegions> copy_regions(const TileOp& op, const LoweringContext& context, std::string* declined);

/// Equal extents of two matched regions become the same constant if one of them is constant.
void share_constant_extents(Region* a, Region* b);

/// Where each dimension of the region's buffer ends for a copy: a global tensor is padded past its end; regions of
/// other memory do not reach past it.
std::vector<Expr> ends_of(const Region& region);

/// Is some dimension of the two regions of one buffer known to end before the other's begins?
bool disjoint(const Region& a, const Region& b, const Facts& facts);

}  // namespace helve
