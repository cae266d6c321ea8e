// Common parts of the verifier: comparison of shapes that may be symbolic, and parts of its messages.
// A rule refuses only what constants refute; the rest is checked when the program runs.
#pragma once

#include <string>
#include <vector>

#include "helve/ir/tensor/function.h"
#include "helve/support/diagnostic.h"

namespace helve::verify_rules {

/// The expression's span, or that of the statement it stands in.
inline Span span_of(const Expr& e, const Span& outer) { return e->span.known() ? e->span : outer; }

/// Can the two extents be equal? Refuted only for two different constants.
bool may_equal(const Expr& a, const Expr& b);
/// Equal ranks, and every dimension may be equal.
bool may_equal(const std::vector<Expr>& a, const std::vector<Expr>& b);
/// Can the shapes be equal when dimensions of extent 1 are dropped from both? A symbolic extent may be 1.
bool may_equal_squeezed(const std::vector<Expr>& a, const std::vector<Expr>& b);

/// BadArgument.
[[noreturn]] void refuse_argument(const std::string& function, const std::string& parameter, const std::string& value,
                                  const std::string& reason, const std::string& remedy, const Span& span,
                                  std::vector<Note> notes = {});

/// WrongType: operand `i` has a dtype that the operation does not take.
[[noreturn]] void wrong_type(const TileOp& op, size_t i, std::string what, std::string expected);

/// The rules of instructions that copy between global and shared memory, and of those on registers.
void verify_copy_instruction(const TileOp& op);
void verify_st_async(const TileOp& op);
void verify_instruction(const TileOp& op);

/// What counts a copy, and the mbarriers that an operation is given: BadArgument.
void verify_barriers(const TileOp& op);

/// Arrays of mbarriers that are not initialized once, at the first level of the kernel and before their other uses, or
/// that it accesses as memory (BadArgument).
void verify_barrier_uses(const Kernel& kernel);

/// A copy that one iteration starts is one run: BadArgument for a region with an extent other than 1 before its last
/// dimension, or with a dynamic one.
void verify_run(const TileOp& op);

/// The copies that `kernel` certainly leaves unfinished at its end (UnfinishedCopy).
void verify_copies_end(const Kernel& kernel);

/// `operation` updates elements of the buffer atomically: other blocks and threads must be able to access it
/// (BadArgument), and memory must support atomic updates of its type (WrongType).
void check_atomic_target(const std::string& operation, const Buffer& buffer, const Span& span);

/// Tile accesses inside `loop`: matching tiles, affine indices (NoMatchingTile, TileStoreIndex, OutOfBounds), and for a
/// store the loop's own variables (ImplicitReduction, MixedRankStore). Constants out of bounds are errors only in code
/// that certainly `runs`.
void verify_tile_load(const ForTiles& loop, const TileLoad& load, const Span& outer, bool runs);
void verify_tile_store(const ForTiles& loop, const TileStore& store, bool runs);

/// What tells the memory system something (BadArgument): the alignment of a tensor in global memory, and its unit; a
/// store around the caches, directly in `lanes`, the vectorized loop around it or null, whose lanes are contiguous and
/// whole pieces; a prefetch, whose subscripts read nothing.
void verify_misalignment(const Buffer& buffer, int64_t unit, const Span& span);
void verify_nontemporal_store(const Store& store, const For* lanes);
void verify_prefetch(const Prefetch& prefetch);

/// A vector access of the lanes of `lanes`, the vectorized loop directly around it or null: whole accesses of 2 bytes
/// or more, larger than an element, of anything but local memory (BadArgument). `operand` is the parameter that names
/// it.
void verify_vector_access(const std::string& operation, const char* operand, const Buffer& buffer,
                          const std::vector<Expr>& indices, int64_t width, const For* lanes, const Span& span);

/// The rule of mesh_tensor_copy, which needs the placement of the function's tensors.
void verify_mesh_tensor_copy(const TileOp& op, const Function& f);

/// Shared memory or a buffer of T.alloc_global, on a core that the mesh may have (BadArgument).
void verify_peer(const Peer& peer, const MeshShape& mesh);

/// The rules of collectives.
void verify_collective(const TileOp& op, const MeshShape& mesh);

/// What T.Kernel is given aside from its grid: threads, clusters, and what is said of roles (BadArgument).
void verify_launch(const Kernel& kernel, bool in_mesh);
/// What T.role is given, which has the threads from `end` on, those behind the role before (BadArgument).
void verify_role(const Role& role, const Kernel& kernel, int64_t end);

/// mesh_tensors: axes, dimensions and tilings.
void verify_placement(const Function& f);

}  // namespace helve::verify_rules
