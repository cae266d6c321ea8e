// Which copies of a loop can begin iterations before the one that uses them.
// A pipeline is made where this says so, and the reasons are what a user reads where it does not.
#pragma once

#include <string>
#include <vector>

#include "helve/analysis/access.h"

namespace helve {

/// A T.copy of a loop's body.
struct EarlyCopy {
  size_t position = 0;    ///< in the body, of the statement that it is or is a part of
  Ref<const TileOp> op;   ///< in terms of the loop's variable and of what is defined around the loop
  std::string reason;     ///< why it cannot begin early; empty where it can
};

/// The copies of a loop with one variable of `kernel`, in program order: all at the top of its body, and those from
/// global tensors below. One can begin early where it stands at the top, where its iteration alone uses what it fills,
/// which nothing else writes and which every iteration fills at the same place; where the loop leaves alone what it
/// reads; and where both are known when the loop begins.
/// The loop may have changed since the model was made, below its variable.
std::vector<EarlyCopy> early_copies(const For& loop, const AccessModel& kernel, const std::vector<MayAlias>& may_alias);

/// The statements of a body.
std::vector<Stmt> statements_of(const Stmt& body);

}  // namespace helve
