// Structural equality and hash of statements and functions.
// parse(print(f)) == f is judged by them; a failed comparison tells where the trees part.
#pragma once

#include <string>

#include "helve/ir/tensor/function.h"

namespace helve {

/// Equal functions: parameters, mesh, placement and body, names and spans aside. `path`, when given, receives the first
/// difference.
bool structural_equal(const FunctionRef& a, const FunctionRef& b, std::string* path = nullptr);

/// Equal statements; free variables and buffers by identity.
bool structural_equal(const Stmt& a, const Stmt& b, std::string* path = nullptr);

/// Equal functions have equal hashes, in every process and on every machine: variables and buffers count by the order
/// of their definitions, names and spans not at all.
uint64_t structural_hash(const FunctionRef& f);

}  // namespace helve
