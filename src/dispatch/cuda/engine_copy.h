// What all schedules of the copy engine ask before they look at addresses.
// The engine's accesses are ordered with those of the block's own threads, and with no others.
#pragma once

#include <string>

#include "copy_regions.h"

namespace helve::cuda {

/// Why the engine makes no copy there; empty if it may.
std::string why_no_engine(const LoweringContext& context, const CopyRegions& copy);

/// An instruction of the engine that a program gives, as code generation takes it: loads are always counted, so that
/// one that is to be complete at once is one with a wait behind it.
Stmt kept(const TileOp& op);

}  // namespace helve::cuda
