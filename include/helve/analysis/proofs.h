// Proof obligations of every program before it is compiled: independent iterations do not conflict, subscripts are in
// bounds. A refuted one is an error with a witness; an unknown one compiles and is listed, so that nobody takes it for
// proved.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "helve/arith/relation.h"
#include "helve/ir/tensor/function.h"
#include "helve/support/diagnostic.h"

namespace helve {

enum class ProofKind { Call, Race, Bounds, Shape, Async };
/// "call", "race", "bounds", "shape", "async".
std::string_view to_string(ProofKind kind);

enum class ProofVerdict {
  Proved,  ///< holds in every call
  Checked,  ///< holds in the calls that satisfy a known condition; every call is checked
  Refuted,  ///< violated by every call that executes the access, or two iterations with the accesses of a race
  Unknown
};
/// "proved", "checked", "refuted", "unknown".
std::string_view to_string(ProofVerdict verdict);

/// A requirement on calls: a condition on the function's extents and integer parameters, and the error if it does not
/// hold. Integer parameters of the condition represent their values, whatever their types.
struct CallCondition {
  Expr condition;
  Diagnostic fault;  ///< lacks the argument "values", which the call knows
};

/// One proof obligation and its verdict.
struct Proof {
  ProofKind kind = ProofKind::Bounds;
  std::string question;  ///< the claim: "A[b * 64 + i] is inside (100,)"
  ProofVerdict verdict = ProofVerdict::Unknown;
  Span span;  ///< the access, or the loop
  std::string witness;  ///< if refuted: "b=1, i=36"
  std::string reason;  ///< if unknown
  std::optional<Diagnostic> fault;  ///< if refuted: the error
  /// Of a loop: legal but probably not intended (PrivateAccumulation, RacingUpdate).
  std::vector<Diagnostic> warnings = {};
  std::vector<CallCondition> conditions = {};  ///< each is needed; all together suffice for a checked one
};

/// All proofs of a verified function: what it assumes of its calls, the shapes that operations need equal and the
/// bounds of each access in program order (of a statement's accesses to one box once), then for each root of a
/// collective that is no constant whether its group has such a member, then for each parallel loop,
/// persistent loop and kernel whether two of its iterations conflict, then for each buffer of asynchronous copies
/// whether they are complete where it is used.
///
/// A claim is refuted only if every call that executes the code violates it. If that depends on extents and integer
/// parameters, the exact condition on them is part of the result.
std::vector<Proof> prove(const Function& f);

/// Warnings about a verified function: those of its proofs, each place once, then ReducedPad, then UndefinedRead, each
/// in program order.
std::vector<Diagnostic> find_warnings(const Function& f, const std::vector<Proof>& proofs);

/// The conditions of all proofs, each once, in order.
std::vector<CallCondition> call_conditions(const std::vector<Proof>& proofs);

/// Throws the first shape that stayed unknown as UserError (OpenShape): compiled code trusts that extents are equal.
void refuse_open_shapes(const std::vector<Proof>& proofs);

/// Throws the first refuted one as UserError (OutOfBounds, BadArgument, RacingLoop).
void refuse_refuted(const std::vector<Proof>& proofs);

}  // namespace helve
