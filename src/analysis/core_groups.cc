// The cores between which a collective moves values.
// An operation that names cores instead of an axis involves the whole mesh.
#include "helve/analysis/core_groups.h"

#include <algorithm>
#include <bit>

#include "helve/arith/simplify.h"
#include "helve/ir/tensor/region.h"
#include "helve/ir/tensor/visit.h"
#include "helve/support/diagnostic.h"

namespace helve {

namespace {

int64_t product(const std::vector<int64_t>& extents, size_t from) {
  int64_t out = 1;
  for (size_t a = from; a < extents.size(); ++a) out *= extents[a];
  return out;
}

bool has(uint64_t axes, size_t axis) { return (axes >> axis & 1) != 0; }

size_t first_of(uint64_t axes) { return static_cast<size_t>(std::countr_zero(axes)); }

}  // namespace

uint64_t axes_of(const TileOp& collective, const MeshShape& mesh) {
  const std::string* axis = collective.axis();
  const std::optional<uint64_t> axes = axes_named(mesh, axis ? *axis : "all");
  HELVE_CHECK(axes, "a collective over axes that are not those of the mesh");
  return *axes;
}

std::vector<Expr> member_coordinates(uint64_t axes, const MeshShape& mesh, const std::vector<VarRef>& core,
                                     const Expr& member) {
  std::vector<Expr> out(core.begin(), core.end()), extents;
  for (size_t a = 0; a < mesh.extents.size(); ++a) {
    if (has(axes, a)) extents.push_back(int_imm(mesh.extents[a]));
  }
  const std::vector<Expr> digits = unravel(member, extents);
  size_t next = 0;
  for (size_t a = 0; a < mesh.extents.size(); ++a) {
    if (has(axes, a)) out[a] = extents.size() == 1 ? member : simplify(digits[next++]);
  }
  return out;
}

Expr core_number(const std::vector<Expr>& core, const MeshShape& mesh, size_t axis) {
  Expr number = int_imm(0);
  for (size_t a = axis; a < mesh.extents.size(); ++a) number = number * int_imm(mesh.extents[a]) + core[a];
  return number;
}

CoreSpan whole_span(const MeshShape& mesh) { return {0, mesh.size()}; }

CoreSpan span_of_collectives(const Kernel& kernel, const MeshShape& mesh) {
  size_t axis = mesh.extents.size();
  walk(kernel.body, [&](const Stmt& s) {
    const TileOp* op = as<TileOp>(s);
    if (op && op->row().is_collective()) axis = std::min(axis, first_of(axes_of(*op, mesh)));
  });
  HELVE_CHECK(axis < mesh.extents.size(), "a kernel without collectives");
  return {axis, product(mesh.extents, axis)};
}

CoreSync core_sync(const Kernel& kernel, const MeshShape& mesh, int64_t cluster_blocks) {
  const CoreSpan span = span_of_collectives(kernel, mesh);
  if (span.cores <= cluster_blocks) return {span, true};
  return {whole_span(mesh), false};
}

CoreGroup group_of(const TileOp& collective, const MeshShape& mesh, const std::vector<VarRef>& core, CoreSpan span) {
  const uint64_t axes = axes_of(collective, mesh);
  HELVE_CHECK(axes == 0 || first_of(axes) >= span.axis, "a span of cores that does not hold the group");
  CoreGroup out{group_size(mesh, axes), int_imm(0), int_imm(0)};
  for (size_t a = span.axis; a < mesh.extents.size(); ++a) {
    Expr& number = has(axes, a) ? out.me : out.place;
    number = number * int_imm(mesh.extents[a]) + Expr(core[a]);
  }
  return out;
}

}  // namespace helve
