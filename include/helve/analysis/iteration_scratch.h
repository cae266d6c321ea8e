// What iterations do with private memory that their block allocates outside of the loop.
// Each iteration has such memory for itself: what it finds there is from before the loop, and what it leaves there has
// a meaning only where one iteration does. So the questions are what an iteration reads before it writes, and what is
// read behind the loop.
#pragma once

#include <vector>

#include "helve/ir/tensor/function.h"

namespace helve {

enum class ReadFirst {
  Never,   ///< elements are read only after they were written
  Maybe,
  Always,  ///< wherever the code runs, an element is read before any is written
};

/// Does `s` read elements of `buffer` before it writes them?
ReadFirst reads_before_writing(const Stmt& s, const Buffer& buffer);

/// Is something of `buffer` that `loop`, which stands in `body`, may store read behind it before it is written there?
/// Behind a loop in a sequential one is the next turn of that one too.
ReadFirst read_behind(const Stmt& body, const StmtNode& loop, const Buffer& buffer);

/// The subscripts by which an iteration, `body`, accesses the buffer, where it accesses one element only; else null.
/// They have one value wherever in the iteration they stand.
const std::vector<Expr>* only_element(const Stmt& body, const Buffer& buffer, const std::vector<MayAlias>& may_alias);

/// Does what an iteration reads of its only element become nothing but part of what it stores there? Then no other
/// iteration can show what it wrote: where two of them store, nothing is left that could be read.
bool keeps_to_itself(const Stmt& body, const Buffer& buffer);

/// Is an element of the buffer accessed wherever `s` is executed?
bool surely_accesses(const Stmt& s, const Buffer& buffer);

/// Does a subscript differ between iterations that differ in `var`, whatever else they do? `others` are the other
/// variables that may differ between them: of the iterations, and bound inside of them.
bool tells_apart(const Expr& index, const Var* var, const std::vector<const Var*>& others);

/// May an iteration of `loop` touch elements of `buffer` that another one writes? No only where subscripts tell all
/// iterations apart. In memory that iterations have each for themselves they may, and yet depend on nothing: but one
/// memory then serves them only one after the other.
bool iterations_may_meet(const For& loop, const Buffer& buffer);

}  // namespace helve
