// The use of private memory, allocated by the block outside of a loop, in the loop's iterations.
// Each iteration has its own copy: it finds the contents from before the loop, and its values are defined after the
// loop only if one iteration writes them. This analysis finds what an iteration reads before it writes, and what is
// read after the loop.
#pragma once

#include <vector>

#include "helve/ir/tensor/function.h"

namespace helve {

enum class ReadFirst {
  Never,   ///< elements are read only after they were written
  Maybe,
  Always,  ///< whenever the code runs, an element is read before any is written
};

/// Does `s` read elements of `buffer` before it writes them?
ReadFirst reads_before_writing(const Stmt& s, const Buffer& buffer);

/// Is an element of `buffer` that `loop`, a part of `body`, may store read after the loop before it is overwritten? If
/// the loop is in a sequential one, the next iteration of that one is also after it.
ReadFirst read_after_loop(const Stmt& body, const StmtNode& loop, const Buffer& buffer);

/// The subscripts by which an iteration, `body`, accesses the buffer, if it accesses only one element; else null. They
/// have the same value anywhere in the iteration.
const std::vector<Expr>* only_element(const Stmt& body, const Buffer& buffer, const std::vector<MayAlias>& may_alias);

/// Is an element of the buffer accessed whenever `s` is executed?
bool surely_accesses(const Stmt& s, const Buffer& buffer);

/// Does a subscript differ between iterations that differ in `var`, regardless of other variables? `others` are the
/// other variables that may differ: those of the iterations, and those bound inside of them.
bool tells_apart(const Expr& index, const Var* var, const std::vector<const Var*>& others);

/// May an iteration of `loop` access elements of `buffer` that another one writes? It may not only if subscripts
/// distinguish all iterations. Iterations that have private memory of their own may do so and still be independent, but
/// then one memory can serve them only one after the other.
bool iterations_may_conflict(const For& loop, const Buffer& buffer);

}  // namespace helve
