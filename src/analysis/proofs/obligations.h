// The proof obligations of a program, by kind.
// Each kind has a file of its own; proofs.cc orders the results.
#pragma once

#include "query.h"

namespace helve::proofs {

/// One for each condition that the function assumes: calls are checked.
std::vector<Proof> assumed(const Function& f);

/// One proof for each operation whose operands have extents that constants do not decide.
std::vector<Proof> prove_shapes(const AccessModel& model, Budget& budget);

/// One proof for each box of a buffer that a statement accesses and that must lie inside.
std::vector<Proof> prove_bounds(const AccessModel& model, PathFacts& facts, Budget& budget);

/// One proof for each root of a collective, and each coordinate of a core of T.comm.put, that is no constant.
std::vector<Proof> prove_members(const AccessModel& model, PathFacts& facts, Budget& budget);

/// One proof for each loop whose iterations are promised to be independent.
std::vector<Proof> prove_races(const AccessModel& model, PathFacts& facts, Budget& budget);

/// One proof for each buffer of a kernel's asynchronous copies, in order of the first copy.
std::vector<Proof> prove_waits(const Function& f, Budget& budget);

/// One warning for each reduction that may combine the pad of a copy (ReducedPad).
std::vector<Diagnostic> find_reduced_pads(const Function& f);

/// One warning for each allocated buffer whose first access is a use, or of which a use reads an element that nothing
/// writes (UndefinedRead), in the order of allocations.
std::vector<Diagnostic> find_undefined_reads(const Function& f);

}  // namespace helve::proofs
