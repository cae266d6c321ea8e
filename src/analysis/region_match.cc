// The equal extents of tile operations, one case per rule.
// The verifier has refused what constants refute; the rest depends on extents that only the call knows.
#include "helve/analysis/region_match.h"

namespace helve {

namespace {

using Pairs = std::vector<std::pair<Expr, Expr>>;

Region squeezed(const Region& region) {
  Region out = region;
  for (Range& r : out.ranges) {
    const int64_t* extent = int_value(r.extent);
    r.point = r.point || (extent && *extent == 1);
  }
  return out;
}

Pairs zipped(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  Pairs out;
  for (size_t d = 0; d < a.size() && d < b.size(); ++d) out.emplace_back(a[d], b[d]);
  return out;
}

std::optional<Pairs> matched_extents(const Region& a, const Region& b) {
  const std::optional<std::pair<Region, Region>> both = matched_regions(a, b);
  if (!both) return std::nullopt;
  return zipped(both->first.shape(), both->second.shape());
}

Pairs of_gemm(const TileOp& op) {
  std::vector<std::vector<Expr>> shapes;
  for (size_t i = 0; i < 3; ++i) shapes.push_back(op.region(i).shape());
  if (op.transposes(0)) std::swap(shapes[0][0], shapes[0][1]);
  if (op.transposes(1)) std::swap(shapes[1][0], shapes[1][1]);
  return {{shapes[0][1], shapes[1][0]}, {shapes[0][0], shapes[2][0]}, {shapes[1][1], shapes[2][1]}};
}

Pairs of_reduce(const TileOp& op) {
  std::vector<Expr> shape = op.region(0).shape();
  const std::vector<Expr> dst = op.region(1).shape();
  const size_t dim = *op.dimension(shape.size());
  if (dst.size() == shape.size()) {
    shape[dim] = int_imm(1);
  } else {
    shape.erase(shape.begin() + static_cast<int64_t>(dim));
  }
  return zipped(shape, dst);
}

/// `whole` contains the parts of k cores: in a dimension of its own, or concatenated.
Pairs of_parts(const TileOp& op, const Region& part, const Region& whole, int64_t k) {
  std::vector<Expr> expected = part.shape();
  const std::vector<Expr> shape = whole.shape();
  if (shape.size() == expected.size() && !shape.empty()) {
    Expr& extent = expected[*op.dimension(shape.size())];
    extent = extent * int_imm(k);
  } else {
    expected.insert(expected.begin() + static_cast<int64_t>(*op.dimension(expected.size() + 1)), int_imm(k));
  }
  return zipped(expected, shape);
}

int64_t cores_of(const TileOp& op, const MeshShape& mesh) {
  const std::optional<uint64_t> axes = op.axis() ? axes_named(mesh, *op.axis()) : std::nullopt;
  return axes ? group_size(mesh, *axes) : mesh.size();
}

std::optional<Pairs> of_tile(const TileOp& op, const Function& f) {
  const MeshTensor* src = f.mesh_tensor(op.region(0).buffer.get());
  const MeshTensor* tensor = src ? src : f.mesh_tensor(op.region(1).buffer.get());
  if (!tensor) return Pairs{};
  Region tile{tensor->buffer, {}};
  for (int64_t extent : tensor->tiling) tile.ranges.push_back({int_imm(0), int_imm(extent), false});
  return matched_extents(tile, op.region(src ? 1 : 0));
}

}  // namespace

std::optional<std::pair<Region, Region>> matched_regions(const Region& a, const Region& b) {
  auto fit = [](const Region& x, const Region& y) { return x.shape().size() == y.shape().size(); };
  std::pair<Region, Region> out{squeezed(a), squeezed(b)};
  if (fit(out.first, out.second)) return out;
  if (fit(a, b)) return std::pair{a, b};
  return std::nullopt;
}

std::optional<Pairs> equal_extents(const TileOp& op, const Function& f) {
  switch (op.row().rule) {
    case TileRule::Copy:
    case TileRule::CopyInstruction:
    case TileRule::CommSame:
    case TileRule::CommPut: return matched_extents(op.region(0), op.region(1));
    case TileRule::Fill:
    case TileRule::Clear:
    case TileRule::Sync:
    case TileRule::Wait:
    case TileRule::StAsync:
    case TileRule::Instruction:  // constants, which the verifier has compared
    case TileRule::CommBarrier: return Pairs{};
    case TileRule::Gemm: return of_gemm(op);
    case TileRule::Reduce: return of_reduce(op);
    case TileRule::Scan: return zipped(op.region(0).shape(), op.region(1).shape());
    case TileRule::Atomic: return op.is_region(1) ? matched_extents(op.region(0), op.region(1)) : Pairs{};
    case TileRule::MeshTensorCopy: return of_tile(op, f);
    case TileRule::CommGather: return of_parts(op, op.region(0), op.region(1), cores_of(op, *f.mesh));
    case TileRule::CommScatter: return of_parts(op, op.region(1), op.region(0), cores_of(op, *f.mesh));
    case TileRule::CommAllToAll: {
      std::optional<Pairs> out = matched_extents(op.region(0), op.region(1));
      const std::vector<Expr> shape = op.region(0).shape();
      const Expr rest = floor_mod(shape[*op.dimension(shape.size())], int_imm(cores_of(op, *f.mesh)));
      if (out) out->emplace_back(rest, int_imm(0));
      return out;
    }
  }
  __builtin_unreachable();
}

}  // namespace helve
