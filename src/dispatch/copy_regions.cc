// The operands of a copy: two matched regions and their ends.
// A tile of a placed tensor ends with its core's own block, even where the tensor continues.
#include "copy_regions.h"

#include "element_nest.h"
#include "helve/analysis/region_match.h"
#include "helve/arith/simplify.h"
#include "helve/ir/expr/number.h"

namespace helve {

void share_constant_extents(Region* a, Region* b) {
  size_t j = 0;
  for (Range& x : a->ranges) {
    if (x.point) continue;
    while (j < b->ranges.size() && b->ranges[j].point) ++j;
    if (j == b->ranges.size()) return;
    Range& y = b->ranges[j++];
    if (int_value(x.extent)) y.extent = x.extent;
    if (int_value(y.extent)) x.extent = y.extent;
  }
}

namespace {

std::optional<CopyRegions> matched(const Region& src, std::vector<Expr> src_ends, const Region& dst,
                                   std::vector<Expr> dst_ends, const Expr& pad, std::string* declined) {
  std::optional<std::pair<Region, Region>> both = matched_regions(src, dst);
  if (!both) {
    *declined = "extents known at the call decide which dimensions match";
    return std::nullopt;
  }
  share_constant_extents(&both->first, &both->second);
  return CopyRegions{std::move(both->first), std::move(both->second), std::move(src_ends), std::move(dst_ends), pad};
}

std::optional<CopyRegions> of_mesh_tensor(const TileOp& op, const LoweringContext& context, std::string* declined) {
  const Function& f = *context.function;
  const bool reads = f.mesh_tensor(op.region(0).buffer.get()) != nullptr;
  const Region& local = op.region(reads ? 1 : 0);
  const MeshTensor& tensor = *f.mesh_tensor(op.region(reads ? 0 : 1).buffer.get());
  const std::vector<Expr> core(context.kernel->vars.begin(), context.kernel->vars.end());
  const std::vector<Expr> begins = shard_begin(*f.mesh, tensor, core);
  const std::vector<Expr> extents = local_shape(*f.mesh, tensor, core);
  Region global{tensor.buffer, {}};
  std::vector<Expr> ends;
  for (size_t d = 0; d < begins.size(); ++d) {
    const Expr start = op.exprs(2)[d] * int_imm(tensor.tiling[d]);
    global.ranges.push_back({plus(begins[d], start), int_imm(tensor.tiling[d]), false});
    ends.push_back(plus(begins[d], extents[d]));
  }
  if (reads) return matched(global, ends, local, ends_of(local), op.expr(3), declined);
  return matched(local, ends_of(local), global, ends, op.expr(3), declined);
}

}  // namespace

std::optional<CopyRegions> copy_regions(const TileOp& op, const LoweringContext& context, std::string* declined) {
  if (op.op == TileOpcode::MeshTensorCopy) return of_mesh_tensor(op, context, declined);
  const std::optional<size_t> pad = op.row().find("pad");
  return matched(op.region(0), ends_of(op.region(0)), op.region(1), ends_of(op.region(1)),
                 pad ? op.expr(*pad) : number_imm(0, op.region(1).buffer->dtype), declined);
}

std::vector<Expr> ends_of(const Region& region) {
  if (is_global(*region.buffer)) return region.buffer->shape;
  std::vector<Expr> out;
  for (const Range& r : region.ranges) out.push_back(r.begin + r.extent);
  return out;
}

bool disjoint(const Region& a, const Region& b, const Facts& facts) {
  auto before = [&](const Range& x, const Range& y) {
    return can_prove(apply(Op::Le, {x.begin + x.extent, y.begin}), facts);
  };
  for (size_t d = 0; d < a.ranges.size(); ++d) {
    if (before(a.ranges[d], b.ranges[d]) || before(b.ranges[d], a.ranges[d])) return true;
  }
  return false;
}

}  // namespace helve
