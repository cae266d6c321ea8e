// A nest with the iterations that one iteration of another loop needs of it.
// What compute_at and reverse_compute_at move: bounds follow from what the two sides access, so that tails, splits and
// guards of either side need no cases.
#pragma once

#include <string>
#include <vector>

#include "helve/schedule/cursor.h"

namespace helve {

enum class NestRole {
  Producer,  ///< its stores to what the loop's body reads, at elements that an iteration of the loop reads
  Consumer  ///< its statements that read what the loop's body writes, in the last iteration that writes it
};

struct Narrowed {
  Stmt nest;  ///< of the same form; null if there are no such bounds
  std::vector<BufferRef> through;  ///< that both sides access in these ways
  std::string reason;
};

/// The statement `nest` with other bounds of its loops, over the variables of `loop` and of what stands around that. A
/// loop that holds none of the accesses in question keeps its bounds, and each runs a part of its old iterations.
/// `nest` is a statement of a block, and `loop` stands below another one of the block.
Narrowed narrowed(const FunctionRef& f, const Cursor& nest, const Cursor& loop, NestRole role);

}  // namespace helve
