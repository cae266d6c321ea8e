// What the primitives on loops share: names of new variables, chains of loops, loops with other headers.
// Each is a fact of the program's form; whether a change of it is legal is asked elsewhere (legality.h).
#pragma once

#include <string>
#include <vector>

#include "helve/arith/facts.h"
#include "helve/ir/tensor/renamed.h"
#include "helve/schedule/primitive.h"

namespace helve {

/// A variable for a new loop, with a name that no other variable of the function has: `hint`, `hint_1`, ... A number at
/// the end of the hint is left out.
VarRef fresh_var(const FunctionRef& f, const std::string& hint);

/// Such names for all that a statement defines: no two are the same. "_" stays as it is.
NewName fresh_names(const FunctionRef& f);

/// The memory that a word of the primitives names: "local", "shared", "fragment" or "global".
MemoryScope memory_named(const std::string& word);

/// Of the begin, the extent, and what stands for the variable in the body.
Expr simplified(const Expr& e);

/// The statement with values for variables. Index expressions that use these are simplified, so that no sum of
/// constants is left in them.
Stmt with_values(const Stmt& s, const Substitution& values);

/// The statement at the place, which must have one.
Stmt required_at(const FunctionRef& f, const Cursor& at);

/// Steps and passes that come later leave the loop as it is (For::scheduled). A loop of unknown extent promises neither
/// copies nor lanes, so that one of these kinds stays a wish; a loop over threads is what it is anyway.
void mark(For& loop);

/// The edit that marks the statement where it is a loop.
Edited marked(const FunctionRef& f, const Cursor& at);

/// The loop with other variables, bounds and kind, marked; its span stays.
Stmt with_header(const For& loop, LoopKind kind, std::vector<VarRef> vars, std::vector<Expr> begins,
                 std::vector<Expr> extents, Stmt body);

/// The allocation of the buffer that the argument names; refused if there is none, or several.
Cursor allocation_named(const FunctionRef& f, const Arguments& arguments, size_t argument);

/// Refuses a buffer that the statement itself allocates, for steps that name it in front of the statement or behind.
void require_outside(const Arguments& arguments, const Stmt& s, const Buffer& buffer);

/// What holds at the place.
Facts facts_at(const FunctionRef& f, const Cursor& at);

/// What the statement defines for those behind it, and is used by `later`; empty if nothing is.
std::string used_behind(const Stmt& s, const Stmt& later);

/// The only statement of a block, if it has one.
const Stmt* only_statement(const std::vector<Stmt>& block);

/// Puts the loop or branch at `outer` into the one that is its only statement, whose cursor is `inner`: `A { B { s } }`
/// becomes `B { A { s } }`. Both loops are marked.
Edited swap_nested(const FunctionRef& f, const Cursor& outer, const Cursor& inner);

/// The field that a loop, or a branch without `else`, holds its statements in.
std::string body_field(const Stmt& s);

#define HELVE_PRIMITIVE(name, function, ...) Rewrite function(const FunctionRef& f, const Arguments& arguments);
#include "primitive_table.inc"
#undef HELVE_PRIMITIVE

}  // namespace helve
