// The error of a loop whose iterations race, by a counterexample.
// It names both iterations, the element, the later access and what to do.
#pragma once

#include "overlap.h"
#include "updates.h"

namespace helve::proofs {

/// Refutes the proof (RacingLoop): both iterations of the witness touch the element of the overlap.
void refute(const Iterations& of, const Pair& pair, const Overlap& overlap, const Witness& witness, Proof& proof);

/// Refutes the proof (LoopScratch): both iterations of the witness leave a value in private memory that is read after
/// the loop, perhaps an update of the one that they find.
void refute_scratch(const Iterations& of, const Pair& pair, const Overlap& overlap, const Witness& witness,
                    const std::optional<Update>& update, Proof& proof);

/// RacingUpdate: `store` makes the update, and it is unknown, for the `reason`, whether two iterations make it of one
/// element.
Diagnostic racing_update(const Iterations& of, const Access& store, const Update& update, const std::string& reason);

/// What the iterations are those of, as a note names it: "the kernel", "the threads", "the loop".
const char* executors_text(const Iterations& of);

/// The later access in program order; the store, if both are in one statement.
const Access& later(const Pair& pair);

}  // namespace helve::proofs
