// What statements read and write.
// Argument checks, output allocation, dependence and scheduling ask the same question; it is answered once, from the
// fields of statements and the rows of tile operations.
#pragma once

#include <unordered_set>
#include <vector>

#include "helve/ir/tensor/function.h"

namespace helve {

/// A box of a buffer that a statement may touch, in elements. The box is not cut at the buffer's end; a tile access is
/// the box of the whole tile. An annotated operand of mesh_tensor_copy is its whole tensor: which part depends on the
/// executing core.
struct RegionAccess {
  Region region;
  bool write = false;
  Span span;
};

/// Does the operation read region operand `i`? What it writes it also reads under clear=False: it combines with what
/// stands there.
bool reads_operand(const TileOp& op, size_t i);

/// The accesses of the statement itself (conditions and extents included, nested statements not), in order of
/// evaluation: everything is read before anything is written.
std::vector<RegionAccess> direct_accesses(const Stmt& s);

/// The accesses of the statement and of all below it, in program order.
std::vector<RegionAccess> accesses(const Stmt& s);

/// Whether a buffer is read and written.
struct BufferEffect {
  BufferRef buffer;
  bool read = false;
  bool written = false;
};

/// One entry for each buffer that is touched, in order of first access.
std::vector<BufferEffect> buffer_effects(const Stmt& s);

/// The buffers of whose elements some may be written, under their own name or as part of a parameter that may share the
/// memory.
std::unordered_set<const Buffer*> written_memory(const Function& f);

/// One entry for each tensor parameter in order, untouched ones included.
std::vector<BufferEffect> param_effects(const Function& f);

}  // namespace helve
