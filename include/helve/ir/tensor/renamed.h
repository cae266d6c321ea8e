// A second copy of a statement, with names of its own.
// Names say nothing to the compiler, but a schedule finds statements by them.
#pragma once

#include <functional>
#include <string>

#include "helve/ir/tensor/renewed.h"

namespace helve {

/// Gives a definition its name in a copy, from the one that it has.
using NewName = std::function<std::string(const std::string&)>;

/// A copy with variables and buffers of its own, under the names that `name` gives, and values for others.
Renewal renew(const Stmt& s, const Substitution& values, const NewName& name);

}  // namespace helve
