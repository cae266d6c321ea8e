// Conditions of all TMA schedules that do not depend on addresses.
// Barriers order TMA's accesses with those of the block's own threads, not with those of other cores.
#pragma once

#include <string>

#include "copy_regions.h"

namespace helve::cuda {

/// Why TMA cannot make the copy; empty if it may.
std::string why_no_tma(const LoweringContext& context, const CopyRegions& copy);

/// A TMA instruction of the program, in the form of code generation: loads are always counted in groups, so a blocking
/// one becomes a load followed by a wait.
Stmt kept(const TileOp& op);

}  // namespace helve::cuda
