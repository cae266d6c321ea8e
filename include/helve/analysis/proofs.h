// What is asked of every program before it is compiled: do independent iterations stay apart, do subscripts stay inside.
// A refuted promise is an error with a witness; what stays unknown compiles and is listed, so that nobody takes it for proved.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "helve/arith/relation.h"
#include "helve/ir/tensor/function.h"
#include "helve/support/diagnostic.h"

namespace helve {

enum class ProofKind { Race, Bounds };
/// "race", "bounds".
std::string_view to_string(ProofKind kind);

/// One question and its answer.
struct Proof {
  ProofKind kind = ProofKind::Bounds;
  std::string question;             ///< "A[b * 64 + i] is inside (100,)"
  Verdict verdict = Verdict::Unknown;
  Span span;                        ///< the access, or the loop
  std::string witness;              ///< of a refuted question: "b=1, i=36"
  std::string reason;               ///< of an unknown one
  std::optional<Diagnostic> fault;  ///< of a refuted one: the error that it is
};

/// All questions about a verified function: the bounds of each access in program order, then for each parallel loop, persistent
/// loop and kernel whether two of its iterations conflict.
///
/// Extents are arguments of any size, so one size that breaks a promise refutes it. Scalar parameters have a meaning that only
/// the caller knows: a promise is refuted only when every value of them under which the code runs breaks it.
std::vector<Proof> prove(const Function& f);

/// Remarks about a verified function that stop no compile, in program order (ReducedPad).
std::vector<Diagnostic> find_warnings(const Function& f);

/// Throws the first refuted one as UserError (OutOfBounds, RacingLoop).
void refuse_refuted(const std::vector<Proof>& proofs);

}  // namespace helve
