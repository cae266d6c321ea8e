// Reads and writes of statements.
// Argument checks, output allocation, dependence and scheduling share this analysis, which follows from the fields of
// statements and the rows of tile operations.
#pragma once

#include <unordered_set>
#include <vector>

#include "helve/ir/tensor/function.h"

namespace helve {

/// A box of a buffer that a statement may access, in elements. The box is not clipped at the buffer's end; a tile
/// access is the box of the whole tile. An annotated operand of mesh_tensor_copy is its whole tensor: which part is
/// accessed depends on the executing core.
struct RegionAccess {
  Region region;
  bool write = false;
  Span span;
};

/// What an operation does with a region operand. A result with which it combines what it computes, as under
/// clear=False, is read too. Operations count in mbarriers, atomically.
struct OperandEffect {
  bool reads = false;
  bool writes = false;
  StoreMode mode = StoreMode::Write;  ///< of the write
};
/// For each operand i that is a region, from its row's parameter and the operation's flags. The access model
/// (analysis/access.h) has it from here too.
OperandEffect operand_effect(const TileOp& op, size_t i);

/// The accesses of the statement itself (conditions and extents included, nested statements not), in order of
/// evaluation: all reads come before any write.
std::vector<RegionAccess> direct_accesses(const Stmt& s);

/// The accesses of the statement and of all statements in it, in program order.
std::vector<RegionAccess> accesses(const Stmt& s);

/// An element that a Load reads or a Store writes; the buffer and the subscripts are parts of the statement. An atomic
/// store is a write alone, an update a read and a write.
struct ElementUse {
  const Buffer* buffer;
  const std::vector<Expr>* indices;
  bool write = false;
};

/// The elements that loads and stores below the statement access, in program order: what a statement reads comes before
/// what it writes. Operands of tile operations and whole tiles are none. One walk that makes no expression, for those
/// who ask about many pieces of lowered code and need no path (analysis/access.h).
std::vector<ElementUse> element_uses(const Stmt& s);

/// Does a load or a store below `s` access the buffer?
bool uses_elements(const Stmt& s, const Buffer& buffer);

/// Whether a buffer is read and written.
struct BufferEffect {
  BufferRef buffer;
  bool read = false;
  bool written = false;
};

/// One entry for each accessed buffer, in order of first access.
std::vector<BufferEffect> buffer_effects(const Stmt& s);

/// The buffers that may be written, under their own name or as part of a parameter that may share their memory.
std::unordered_set<const Buffer*> written_memory(const Stmt& s, const std::vector<MayAlias>& may_alias);
std::unordered_set<const Buffer*> written_memory(const Function& f);

/// The buffers of which elements are loaded, and none written.
std::unordered_set<const Buffer*> constant_memory(const Stmt& s, const std::vector<MayAlias>& may_alias);

/// One entry for each tensor parameter in order, including those that are not accessed.
std::vector<BufferEffect> param_effects(const Function& f);

}  // namespace helve
