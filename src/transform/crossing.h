// Which buffers carry a value from one part of a kernel to another.
// When a kernel is split, only these need a place outside of it; everything else stays private to its part.
#pragma once

#include <unordered_set>
#include <vector>

#include "helve/ir/tensor/function.h"

namespace helve {

using BufferSet = std::unordered_set<const Buffer*>;

/// What a sequence of statements does to buffers that outlive it.
struct Touch {
  BufferSet exposed;  ///< may be read before the statements have written all of it
  BufferSet written;  ///< may be written, in part or whole
  BufferSet whole;    ///< certainly written whole; what is written but not here keeps earlier contents in places
  BufferSet used;     ///< named at all: read, written, or what a tile loop counts the tiles of
};

Touch touch_of(const std::vector<Stmt>& stmts);

}  // namespace helve
