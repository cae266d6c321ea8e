// Operands that are the same for a group, by the kinds of the table.
// Passes that move, evaluate or print a collective ask here, so that a row with a root needs no case in them.
#include "helve/ir/tensor/group_operands.h"

#include <fmt/format.h>

#include "helve/ir/expr/build.h"
#include "helve/ir/expr/visit.h"
#include "helve/support/diagnostic.h"

namespace helve {

namespace {

/// Has the expression a value wherever it is evaluated? Elements at constant subscripts exist.
bool always_has_a_value(const Expr& e) {
  bool always = true;
  walk(e, [&](const Expr& node) {
    if (const Load* load = as<Load>(node)) {
      const Buffer& buffer = buffer_of(load->buffer);
      for (size_t d = 0; d < load->indices.size(); ++d) {
        const int64_t *at = int_value(load->indices[d]), *extent = int_value(buffer.shape[d]);
        always &= at && extent && *at >= 0 && *at < *extent;
      }
      return;
    }
    const Apply* apply = as<Apply>(node);
    if (!apply) {
      const Cast* cast = as<Cast>(node);
      always &= as<Var>(node) || as<IntImm>(node) || (cast && !cast->value->dtype.is_float());
      return;
    }
    switch (apply->op) {
      case Op::FloorDiv:
      case Op::FloorMod: {
        const int64_t* divisor = int_value(apply->args[1]);
        always &= divisor && *divisor > 0;
        return;
      }
      case Op::Add:
      case Op::Sub:
      case Op::Mul:
      case Op::Neg:
      case Op::Min:
      case Op::Max:
      case Op::Lt:
      case Op::Le:
      case Op::Gt:
      case Op::Ge:
      case Op::Eq:
      case Op::Ne:
      case Op::Not:
      case Op::And:
      case Op::Or:
      case Op::Select: return;
      default: always = false;
    }
  });
  return always;
}

/// Maps the parts of a map's value that its variable leaves fixed. They are evaluated once, before the map is, so a
/// part that the map evaluates only under conditions keeps them, or stays where it is if they depend on the variable.
class FixedParts {
 public:
  FixedParts(const Var* var, const std::function<Expr(const Expr&)>& f) : var_(var), f_(f) {}

  Expr map(const Expr& e, const Expr& condition, bool by_variable) const {
    if (!mentions(e, var_) && (e->dtype.is_index() || e->dtype.is_bool())) {
      if ((!condition && !by_variable) || always_has_a_value(e)) return f_(e);
      if (!by_variable) return under(e, condition);
      if (as<Load>(e)) return e;
    }
    const Apply* apply = as<Apply>(e);
    const bool lazy = apply && (apply->op == Op::Select || apply->op == Op::And || apply->op == Op::Or);
    if (!lazy) return map_children(e, [&](const Expr& child) { return map(child, condition, by_variable); });
    const Expr& first = apply->args[0];
    const bool inside_by_variable = by_variable || mentions(first, var_);
    const auto inside = [&](const Expr& holds) {
      return inside_by_variable ? Expr() : condition ? logical_and(condition, holds) : holds;
    };
    size_t operand = 0;
    return map_children(e, [&](const Expr& child) {
      const size_t i = operand++;
      if (i == 0) return map(child, condition, by_variable);
      const bool otherwise = apply->op == Op::Or || (apply->op == Op::Select && i == 2);
      return map(child, inside(otherwise ? helve::apply(Op::Not, {first}) : first), inside_by_variable);
    });
  }

 private:
  Expr under(const Expr& e, const Expr& condition) const {
    const Expr nothing = e->dtype.is_bool() ? bool_imm(false) : int_imm(0);
    const Expr guarded = select(condition, e, nothing);
    const Expr mapped = f_(guarded);
    return mapped == guarded ? e : mapped;
  }

  const Var* var_;
  const std::function<Expr(const Expr&)>& f_;
};

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
      const std::function<Expr(const Expr&)> mapped = [&](const Expr& e) { return f(i, e); };
      set(map->value, FixedParts(map->var.get(), mapped).map(map->value, {}, false));
    }
  }
  return changed ? Ref<const TileOp>(out) : Ref<const TileOp>(&op);
}

std::vector<MemberOperand> members_of(const TileOp& op, const MeshShape& mesh) {
  std::vector<MemberOperand> out;
  if (const std::optional<size_t> root = op.row().find("root")) {
    const std::optional<uint64_t> axes = axes_named(mesh, *op.axis());
    HELVE_CHECK(axes, "a collective over axes that are not those of the mesh");
    const int64_t count = group_size(mesh, *axes);
    out.push_back({*root, op.expr(*root), count, fmt::format("the group has {} cores", count),
                   "roots count from 0 in each group"});
  }
  for (size_t i = 0; i < op.row().params.size(); ++i) {
    if (!op.row().is_collective() || op.row().params[i].kind != ParamKind::Coord) continue;
    for (size_t a = 0; a < mesh.extents.size(); ++a) {
      out.push_back({i, op.exprs(i)[a], mesh.extents[a],
                     fmt::format("the mesh has {} cores along axis '{}'", mesh.extents[a], mesh.names[a]),
                     "coordinates of a core count from 0 along each axis of the mesh"});
    }
  }
  return out;
}

IndexMap source_of(const TileOp& permute, int64_t members) {
  const size_t i = permute.row().index_of("source");
  if (const IndexMap* map = std::get_if<IndexMap>(&permute.operands[i])) return *map;
  const VarRef member = make_var("k");
  const Expr k(member), count = int_imm(members), shift = permute.expr(permute.row().index_of("shift"));
  if (const int64_t* known = int_value(shift)) return {member, floor_mod(k - int_imm(*known % members), count)};
  // A shift may be any index, so `k - shift` may overflow: no remainder of it, which is what (k - rest) % count
  // becomes.
  const Expr rest = floor_mod(shift, count);
  return {member, select(less(k, rest), k + (count - rest), k - rest)};
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
