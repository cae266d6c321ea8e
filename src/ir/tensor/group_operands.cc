// Operands that are the same for a group, by the kinds of the table.
// Passes that move, evaluate or print a collective ask here, so that a row with a root needs no case in them.
#include "helve/ir/tensor/group_operands.h"

#include "helve/ir/expr/build.h"
#include "helve/ir/expr/visit.h"

namespace helve {

namespace {

Expr map_fixed(const Expr& e, const Var* var, const std::function<Expr(const Expr&)>& f) {
  if (!mentions(e, var) && e->dtype.is_index()) return f(e);
  return map_children(e, [&](const Expr& child) { return map_fixed(child, var, f); });
}

}  // namespace

bool is_of_group(const TileOp& op, size_t i) {
  const ParamKind kind = op.row().params[i].kind;
  return op.row().is_collective() && (kind == ParamKind::Index || kind == ParamKind::Map || kind == ParamKind::Coord);
}

void for_each_of_group(const TileOp& op, const std::function<void(size_t, const Expr&)>& f) {
  for (size_t i = 0; i < op.operands.size(); ++i) {
    if (!is_of_group(op, i)) continue;
    if (const Expr* e = std::get_if<Expr>(&op.operands[i])) f(i, *e);
    if (const IndexMap* map = std::get_if<IndexMap>(&op.operands[i])) f(i, map->value);
    if (const std::vector<Expr>* list = std::get_if<std::vector<Expr>>(&op.operands[i])) {
      for (const Expr& e : *list) f(i, e);
    }
  }
}

Ref<const TileOp> map_of_group(const TileOp& op, const std::function<Expr(size_t, const Expr&)>& f) {
  Ref<TileOp> out = make_ref<TileOp>(op);
  bool changed = false;
  for (size_t i = 0; i < op.operands.size(); ++i) {
    if (!is_of_group(op, i)) continue;
    const auto set = [&](Expr& e, Expr mapped) {
      changed |= mapped != e;
      e = std::move(mapped);
    };
    if (Expr* e = std::get_if<Expr>(&out->operands[i])) set(*e, f(i, *e));
    if (std::vector<Expr>* list = std::get_if<std::vector<Expr>>(&out->operands[i])) {
      for (Expr& e : *list) set(e, f(i, e));
    }
    if (IndexMap* map = std::get_if<IndexMap>(&out->operands[i])) {
      set(map->value, map_fixed(map->value, map->var.get(), [&](const Expr& e) { return f(i, e); }));
    }
  }
  return changed ? Ref<const TileOp>(out) : Ref<const TileOp>(&op);
}

IndexMap source_of(const TileOp& permute, int64_t members) {
  const size_t i = permute.row().index_of("source");
  if (const IndexMap* map = std::get_if<IndexMap>(&permute.operands[i])) return *map;
  const VarRef member = make_var("k");
  return {member, floor_mod(Expr(member) - permute.expr(permute.row().index_of("shift")), int_imm(members))};
}

bool keeps_destinations(const TileOp& op) {
  switch (op.op) {
    case TileOpcode::CommPut:
    case TileOpcode::CommGather:
    case TileOpcode::CommReduce: return true;
    case TileOpcode::CommPermute: return std::holds_alternative<IndexMap>(op.operands[op.row().index_of("source")]);
    default: return false;
  }
}

}  // namespace helve
