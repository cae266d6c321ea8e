// The error of a loop whose iterations race, by a counterexample.
// It names both iterations, the element, the later access and what to do.
#pragma once

#include "meeting.h"

namespace helve::proofs {

/// Refutes the proof (RacingLoop): both iterations of the witness touch the element of the meeting.
void refute(const Iterations& of, const Pair& pair, const Meeting& met, const Witness& witness, Proof& proof);

/// Refutes the proof (LoopScratch): both iterations of the witness leave a value in private memory that is read after
/// the loop, perhaps one to which each adds.
void refute_scratch(const Iterations& of, const Pair& pair, const Meeting& met, const Witness& witness,
                    bool may_accumulate, Proof& proof);

/// The later access in program order; the store, if both are in one statement.
const Access& later(const Pair& pair);

}  // namespace helve::proofs
