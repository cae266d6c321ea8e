// Accesses of iterations that update elements, as what they update.
// Names that the loop binds are in the way: a user may name the old value, or a term of a condition.
#pragma once

#include "helve/ir/tensor/update.h"
#include "iterations.h"

namespace helve::proofs {

/// The update that the access makes of its element, with the conditions inside the loop under which it does, and values
/// in place of the names that the loop binds; nothing of what is no store, or an atomic one.
std::optional<Update> update_by(const Iterations& of, const Access& access);

}  // namespace helve::proofs
