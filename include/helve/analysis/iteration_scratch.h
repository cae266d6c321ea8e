// What iterations do with private memory that their block allocates outside of the loop.
// Each iteration has such memory for itself: what it finds there is from before the loop, and what it leaves there has
// a meaning only where one iteration does. So the questions are what an iteration reads before it writes, and what is
// read behind the loop.
#pragma once

#include "helve/ir/tensor/stmt.h"

namespace helve {

enum class ReadFirst {
  Never,   ///< elements are read only after they were written
  Maybe,
  Always,  ///< wherever the code runs, an element is read before any is written
};

/// Does `s` read elements of `buffer` before it writes them?
ReadFirst reads_before_writing(const Stmt& s, const Buffer& buffer);

/// Is something of `buffer` read behind `loop`, which stands in `body`, before it is written there? Behind a loop in
/// another one is the next turn of that one too.
ReadFirst read_behind(const Stmt& body, const StmtNode& loop, const Buffer& buffer);

}  // namespace helve
