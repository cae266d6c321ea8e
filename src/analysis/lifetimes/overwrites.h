// Statements that write all of a buffer.
// Such a statement ends the life of what the buffer held, which is what lets loops use memory again.
#pragma once

#include "helve/arith/relation.h"
#include "helve/ir/tensor/stmt.h"

namespace helve::lifetimes {

/// Does the statement, whenever it is run, write every element of the buffer, and read none?
bool overwrites(const Stmt& s, const Buffer& buffer, const ExactEngine& engine);

}  // namespace helve::lifetimes
