// Functions and the arithmetic of meshes.
// Blocks are ceil-sized; the one definition of where a core's block begins and ends stands here.
#include "helve/ir/tensor/function.h"

#include <algorithm>

#include "helve/support/text.h"

namespace helve {

int64_t MeshShape::size() const {
  int64_t n = 1;
  for (int64_t e : extents) n *= e;
  return n;
}

std::optional<size_t> MeshShape::axis(std::string_view name) const {
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return i;
  }
  return std::nullopt;
}

std::string to_string(const MeshShape& mesh) { return shape_text(mesh.extents); }

const MeshTensor* Function::mesh_tensor(const Buffer* buffer) const {
  for (const MeshTensor& t : mesh_tensors) {
    if (t.buffer.get() == buffer) return &t;
  }
  return nullptr;
}

bool may_overlap(const std::vector<MayAlias>& declared, const Buffer* a, const Buffer* b) {
  if (a == b) return true;
  return std::any_of(declared.begin(), declared.end(), [&](const MayAlias& each) {
    const auto names = [&](const Buffer* x) {
      return std::any_of(each.buffers.begin(), each.buffers.end(), [&](const BufferRef& b) { return b.get() == x; });
    };
    return names(a) && names(b);
  });
}

int64_t shard_count(const MeshShape& mesh, const MeshTensor& tensor, int64_t dim) {
  int64_t count = 1;
  for (const auto& [name, cut] : tensor.sharding) {
    if (cut == dim) count *= mesh.extents[*mesh.axis(name)];
  }
  return count;
}

namespace {

Expr ceil_quotient(const Expr& extent, int64_t count) { return count == 1 ? extent : ceil_div(extent, int_imm(count)); }

/// The index of the core among the shards of `dim`: axes in the order of the annotation, the last fastest.
Expr shard_index(const MeshShape& mesh, const MeshTensor& tensor, int64_t dim, const std::vector<Expr>& core) {
  Expr index;
  for (const auto& [name, cut] : tensor.sharding) {
    if (cut != dim) continue;
    const size_t axis = *mesh.axis(name);
    index = index ? index * int_imm(mesh.extents[axis]) + core[axis] : core[axis];
  }
  return index;
}

}  // namespace

std::vector<Expr> sharded_shape(const MeshShape& mesh, const MeshTensor& tensor) {
  std::vector<Expr> out;
  for (size_t d = 0; d < tensor.buffer->rank(); ++d) {
    const int64_t dim = static_cast<int64_t>(d);
    out.push_back(ceil_quotient(tensor.buffer->shape[d], shard_count(mesh, tensor, dim)));
  }
  return out;
}

std::vector<Expr> shard_begin(const MeshShape& mesh, const MeshTensor& tensor, const std::vector<Expr>& core) {
  std::vector<Expr> blocks = sharded_shape(mesh, tensor);
  std::vector<Expr> out;
  for (size_t d = 0; d < blocks.size(); ++d) {
    Expr index = shard_index(mesh, tensor, static_cast<int64_t>(d), core);
    out.push_back(index ? index * blocks[d] : int_imm(0));
  }
  return out;
}

std::vector<Expr> local_shape(const MeshShape& mesh, const MeshTensor& tensor, const std::vector<Expr>& core) {
  std::vector<Expr> blocks = sharded_shape(mesh, tensor);
  std::vector<Expr> begins = shard_begin(mesh, tensor, core);
  std::vector<Expr> out;
  for (size_t d = 0; d < blocks.size(); ++d) {
    if (shard_count(mesh, tensor, static_cast<int64_t>(d)) == 1) {
      out.push_back(blocks[d]);
    } else {
      out.push_back(max(int_imm(0), min(blocks[d], tensor.buffer->shape[d] - begins[d])));
    }
  }
  return out;
}

std::vector<std::string> names_of_axes(std::string_view axes) {
  std::vector<std::string> out;
  for (size_t from = 0; from <= axes.size();) {
    const size_t end = std::min(axes.find(", ", from), axes.size());
    out.emplace_back(axes.substr(from, end - from));
    from = end + 2;
  }
  return out;
}

std::optional<uint64_t> axes_named(const MeshShape& mesh, std::string_view axes) {
  if (axes == "all") return (uint64_t{1} << mesh.extents.size()) - 1;
  uint64_t out = 0;
  for (size_t from = 0; from <= axes.size();) {  // asked for each core that meets others: without a list of names
    const size_t end = std::min(axes.find(", ", from), axes.size());
    const std::optional<size_t> axis = mesh.axis(axes.substr(from, end - from));
    if (!axis || out >> *axis != 0) return std::nullopt;
    out |= uint64_t{1} << *axis;
    from = end + 2;
  }
  return out;
}

int64_t group_size(const MeshShape& mesh, uint64_t axes) {
  int64_t out = 1;
  for (size_t a = 0; a < mesh.extents.size(); ++a) out *= (axes >> a & 1) != 0 ? mesh.extents[a] : 1;
  return out;
}

}  // namespace helve
