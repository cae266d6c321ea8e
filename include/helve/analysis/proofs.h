// What is asked of every program before it is compiled: do independent iterations stay apart, do subscripts stay
// inside. A refuted promise is an error with a witness; what stays unknown compiles and is listed, so that nobody takes
// it for proved.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "helve/arith/relation.h"
#include "helve/ir/tensor/function.h"
#include "helve/support/diagnostic.h"

namespace helve {

enum class ProofKind { Race, Bounds, Shape, Async };
/// "race", "bounds", "shape", "async".
std::string_view to_string(ProofKind kind);

enum class ProofVerdict {
  Proved,  ///< holds of every call
  Checked,  ///< holds of the calls that meet a known condition; every call is checked
  Refuted,  ///< broken by every call that comes to the code: to the access, or by two iterations to the two of a race
  Unknown
};
/// "proved", "checked", "refuted", "unknown".
std::string_view to_string(ProofVerdict verdict);

/// What a call must meet: a condition on the function's extents and integer parameters, and the error when it does not.
/// Integer parameters of the condition stand for their values, whatever their types.
struct CallCondition {
  Expr condition;
  Diagnostic fault;  ///< lacks the argument "values", which the call knows
};

/// One question and its answer.
struct Proof {
  ProofKind kind = ProofKind::Bounds;
  std::string question;  ///< "A[b * 64 + i] is inside (100,)"
  ProofVerdict verdict = ProofVerdict::Unknown;
  Span span;  ///< the access, or the loop
  std::string witness;  ///< of a refuted question: "b=1, i=36"
  std::string reason;  ///< of an unknown one
  std::optional<Diagnostic> fault;  ///< of a refuted one: the error that it is
  std::vector<Diagnostic> warnings = {};  ///< of a loop: what is allowed and hardly meant (PrivateAccumulation)
  std::vector<CallCondition> conditions = {};  ///< each is needed; all together suffice for a checked one
};

/// All questions about a verified function: the shapes that operations need equal and the bounds of each access in
/// program order, then for each parallel loop, persistent loop and kernel whether two of its iterations conflict, then
/// for each buffer of asynchronous copies whether they are complete where it is used.
///
/// A promise is refuted only when every call that comes to the code breaks it. Where extents and integer parameters
/// decide, the exact condition on them is part of the answer.
std::vector<Proof> prove(const Function& f);

/// Remarks about a verified function that stop no compile: those of its proofs, then ReducedPad in program order.
std::vector<Diagnostic> find_warnings(const Function& f, const std::vector<Proof>& proofs);

/// The conditions of all proofs, each once, in order.
std::vector<CallCondition> call_conditions(const std::vector<Proof>& proofs);

/// Throws the first shape that stayed unknown as UserError (OpenShape): compiled code trusts that extents are equal.
void refuse_open_shapes(const std::vector<Proof>& proofs);

/// Throws the first refuted one as UserError (OutOfBounds, RacingLoop).
void refuse_refuted(const std::vector<Proof>& proofs);

}  // namespace helve
