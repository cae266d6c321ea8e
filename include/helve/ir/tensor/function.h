// Functions, meshes and the placement of tensors on a mesh.
// A function is a host body over tensor and scalar parameters; what is sharded, and how, is part of the function, not
// of a buffer.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "helve/ir/tensor/stmt.h"

namespace helve {

/// A grid of cores (devices). Ranks are row-major.
struct MeshShape {
  std::vector<int64_t> extents;
  std::vector<std::string> names;

  int64_t size() const;
  /// The position of an axis name, or nothing.
  std::optional<size_t> axis(std::string_view name) const;
  bool operator==(const MeshShape&) const = default;
};
std::string to_string(const MeshShape& mesh);

/// The annotation of one tensor: mesh axis name to tensor dimension, and the tile that mesh_tensor_copy moves.
struct MeshTensor {
  BufferRef buffer;
  std::vector<std::pair<std::string, int64_t>> sharding;  ///< in the order of the mesh's axes
  std::vector<int64_t> tiling;                            ///< one a dimension
  Span span;
};

/// A promise that the program takes back: arguments of these parameters may share memory, each with each.
struct MayAlias {
  std::vector<BufferRef> buffers;
  std::vector<Span> places;  ///< where each is named; may be empty
  Span span;
};

/// A condition on extents and integer parameters that a function states: each call must meet it, so all of the function
/// relies on it.
struct Assumption {
  Expr condition;
  Span span;
};

/// A parameter: a tensor or a scalar.
using Param = std::variant<BufferRef, VarRef>;

struct Function final : Node {
  std::string name;
  std::vector<VarRef> dims;  ///< dynamic extents (T.dyn), bound by the shapes of arguments
  std::vector<Param> params;
  std::optional<MeshShape> mesh;  ///< present in a mesh function
  std::vector<MeshTensor> mesh_tensors;
  std::vector<MayAlias> may_alias;
  std::vector<Assumption> assumptions;
  Stmt body;

  const MeshTensor* mesh_tensor(const Buffer* buffer) const;
};
using FunctionRef = Ref<const Function>;

/// May an element of `a` be an element of `b`? Two buffers are two pieces of memory unless declared otherwise.
bool may_overlap(const std::vector<MayAlias>& declared, const Buffer* a, const Buffer* b);

/// The extent of the mesh along the axes that `dim` of the tensor is cut over; 1 when it is not cut.
int64_t shard_count(const MeshShape& mesh, const MeshTensor& tensor, int64_t dim);

/// The block of a core: ceil(extent / shards) for each dimension, equal on every core.
std::vector<Expr> sharded_shape(const MeshShape& mesh, const MeshTensor& tensor);

/// The start of the block of the core with these coordinates (one index expression a mesh axis), unclamped.
std::vector<Expr> shard_begin(const MeshShape& mesh, const MeshTensor& tensor, const std::vector<Expr>& core);

/// The true extents of that block: sharded_shape cut at the tensor's end, 0 where nothing is left.
std::vector<Expr> local_shape(const MeshShape& mesh, const MeshTensor& tensor, const std::vector<Expr>& core);

/// The axes that a collective names, bit a for axis a of the mesh: "all", a name, or several in the order of the mesh
/// as "x, z". Nothing where one is unknown, or they are not in that order.
std::optional<uint64_t> axes_named(const MeshShape& mesh, std::string_view axes);
/// The names of such a set, one by one.
std::vector<std::string> names_of_axes(std::string_view axes);
/// The number of cores in a group over the axes.
int64_t group_size(const MeshShape& mesh, uint64_t axes);

}  // namespace helve
