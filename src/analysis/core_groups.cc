// The cores between which a collective moves values.
// An operation that names cores instead of an axis involves the whole mesh.
#include "helve/analysis/core_groups.h"

#include <algorithm>

#include "helve/ir/tensor/visit.h"
#include "helve/support/diagnostic.h"

namespace helve {

namespace {

int64_t product(const std::vector<int64_t>& extents, size_t from) {
  int64_t out = 1;
  for (size_t a = from; a < extents.size(); ++a) out *= extents[a];
  return out;
}

}  // namespace

std::optional<size_t> axis_of(const TileOp& collective, const MeshShape& mesh) {
  const std::string* axis = collective.axis();
  return axis ? mesh.axis(*axis) : std::nullopt;
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
    if (op && op->row().is_collective()) axis = std::min(axis, axis_of(*op, mesh).value_or(0));
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
  const std::optional<size_t> axis = axis_of(collective, mesh);
  HELVE_CHECK(axis.value_or(0) >= span.axis, "a span of cores that does not hold the group");
  const Expr number = core_number({core.begin(), core.end()}, mesh, span.axis);
  Expr first = int_imm(0), place = int_imm(0);
  for (size_t a = span.axis; a < mesh.extents.size(); ++a) {
    const Expr extent = int_imm(mesh.extents[a]);
    first = first * extent + (axis == a ? int_imm(0) : Expr(core[a]));
    if (axis != a) place = place * extent + Expr(core[a]);
  }
  if (!axis) return {mesh.size(), 1, int_imm(0), number, int_imm(0)};
  return {mesh.extents[*axis], product(mesh.extents, *axis + 1), first, Expr(core[*axis]), place};
}

}  // namespace helve
