// Structural equality of statements and functions.
// parse(print(f)) == f is judged by it, and a failed comparison tells where the trees part.
#pragma once

#include <string>

#include "helve/ir/tensor/function.h"

namespace helve {

/// Equal functions: parameters, mesh, placement and body, names and spans aside. `path`, when given, receives the first difference.
bool structural_equal(const FunctionRef& a, const FunctionRef& b, std::string* path = nullptr);

/// Equal statements; free variables and buffers by identity.
bool structural_equal(const Stmt& a, const Stmt& b, std::string* path = nullptr);

}  // namespace helve
