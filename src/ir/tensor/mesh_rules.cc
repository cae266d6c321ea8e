// The rules of meshes: placement of tensors, copies of their tiles, collectives.
// The number of cores of a group decides shapes, so every rule here needs the mesh.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "helve/ir/expr/text.h"
#include "helve/ir/expr/visit.h"
#include "helve/ir/tensor/group_operands.h"
#include "helve/support/text.h"
#include "verify_rules.h"

namespace helve::verify_rules {

namespace {

std::string axes_text(const MeshShape& mesh, bool with_all) {
  std::string text = join(mesh.names, ", ", [](const std::string& name) { return quoted(name); });
  return with_all ? text + ", \"all\"" : text;
}

[[noreturn]] void unknown_axis(const MeshShape& mesh, const std::string& axis, const Span& span, bool with_all) {
  throw UserError(Code::UnknownMeshAxis, span, {{"axis", axis}, {"axes", axes_text(mesh, with_all)}});
}

/// The result, operand 1, has another shape than the collective gives.
[[noreturn]] void wrong_result(const TileOp& op, const std::string& expected) {
  const Region& region = op.region(1);
  throw UserError(Code::CollectiveShape, op.place(1),
                  {{"operation", operation_text(op)},
                   {"expected", expected},
                   {"buffer", region.buffer->name},
                   {"given", shape_text(region.shape())}},
                  {declaration_note(*region.buffer)});
}

Expr times(const Expr& extent, int64_t k) {
  const int64_t* v = int_value(extent);
  return v ? int_imm(*v * k) : extent * int_imm(k);
}

/// The dimension that `dim` names among `rank`.
size_t dimension(const TileOp& op, size_t rank) {
  if (const std::optional<size_t> dim = op.dimension(rank)) return *dim;
  refuse_argument(operation_text(op), "dim", std::to_string(op.dim()), fmt::format("there are {} dimensions", rank),
                  "dimensions count from 0, or from the end with -1", op.place(*op.dim_position()));
}

/// `whole` holds the parts of k cores along `dim`: in a dimension of its own, or concatenated.
void check_parts(const TileOp& op, const Region& part, const Region& whole, int64_t k, bool result_is_whole) {
  std::vector<Expr> expected = part.shape();
  const size_t rank = whole.shape().size();
  if (rank == expected.size() && rank > 0) {
    const size_t dim = dimension(op, rank);
    expected[dim] = times(expected[dim], k);
  } else {
    const size_t dim = dimension(op, expected.size() + 1);
    expected.insert(expected.begin() + static_cast<int64_t>(dim), int_imm(k));
  }
  if (may_equal(whole.shape(), expected)) return;
  if (result_is_whole) wrong_result(op, shape_text(expected));
  throw UserError(Code::ShapeMismatch, op.span,
                  {{"what", fmt::format("{} cores' parts of {}", k, operation_text(op))},
                   {"left", shape_text(whole.shape())},
                   {"right", shape_text(expected)}},
                  {declaration_note(*whole.buffer), declaration_note(*part.buffer)});
}

void check_same(const TileOp& op) {
  if (!may_equal_squeezed(op.region(0).shape(), op.region(1).shape())) {
    wrong_result(op, shape_text(op.region(0).shape()));
  }
}

void check_all_to_all(const TileOp& op, int64_t k) {
  check_same(op);
  const std::vector<Expr> shape = op.region(0).shape();
  const size_t dim = dimension(op, shape.size());
  const int64_t* extent = int_value(shape[dim]);
  if (!extent || *extent % k == 0) return;
  refuse_argument(operation_text(op), "dim", std::to_string(op.dim()),
                  fmt::format("{} elements are not {} equal parts", *extent, k),
                  "make the extent a multiple of the number of cores in the group", op.place(*op.dim_position()));
}

struct Refusal {
  std::string reason, remedy;
};

/// Why a map reads memory that is not read before it, and what to write instead. `rest` is the map with constants for
/// what is read before.
std::optional<Refusal> refusal_of(const IndexMap& rest) {
  const std::string& name = rest.var->name;
  const Load* by_member = nullptr;
  const Load* other = nullptr;
  bool guarded = false;
  walk(rest.value, [&](const Expr& e) {
    const bool fixed = !mentions(e, rest.var.get());
    guarded |= fixed && (e->dtype.is_index() || e->dtype.is_bool()) && has_load(e);
    if (const Load* load = as<Load>(e)) (fixed ? other : by_member) = load;
  });
  if (by_member) {
    return Refusal{fmt::format("it reads memory by '{}'", name),
                   "read only index values that all cores share, and compute with them"};
  }
  if (guarded) {
    return Refusal{fmt::format("a condition on '{}' decides if it reads memory", name),
                   "name what it reads before the collective, and use the name in the function"};
  }
  if (!other) return std::nullopt;
  return Refusal{fmt::format("it combines '{}' with {} values from memory", name, to_string(other->dtype)),
                 "read index values, as T.index(...) gives them"};
}

/// A map is the only word on where values come from, and it reads memory only for what it has in common for all cores.
void check_source(const TileOp& op) {
  const size_t i = op.row().index_of("source"), shift = op.row().index_of("shift");
  const IndexMap* source = std::get_if<IndexMap>(&op.operands[i]);
  if (!source) return;
  const int64_t* by = int_value(op.expr(shift));
  if (op.is_given(shift) || !by || *by != 1) {
    refuse_argument(operation_text(op), "shift", to_text(op.expr(shift)), "source says where values come from",
                    "give shift or source", op.place(shift));
  }
  const Ref<const TileOp> fixed =
      map_of_group(op, [](size_t, const Expr& e) { return e->dtype.is_bool() ? bool_imm(false) : int_imm(0); });
  if (const std::optional<Refusal> refusal = refusal_of(std::get<IndexMap>(fixed->operands[i]))) {
    refuse_argument(operation_text(op), "source", fmt::format("'{}'", to_text(source->value)), refusal->reason,
                    refusal->remedy, op.place(i));
  }
}

void check_members(const TileOp& op, const MeshShape& mesh) {
  for (size_t i = 0; i < op.row().params.size(); ++i) {
    if (op.row().params[i].kind != ParamKind::Coord || op.exprs(i).size() == mesh.extents.size()) continue;
    refuse_argument(operation_text(op), std::string(op.row().params[i].name), shape_text(op.exprs(i)),
                    fmt::format("the mesh is {}", to_string(mesh)), "give one coordinate for each mesh axis",
                    op.place(i));
  }
  for (const MemberOperand& each : members_of(op, mesh)) {
    const int64_t* value = int_value(each.value);
    if (!value || (*value >= 0 && *value < each.count)) continue;
    refuse_argument(operation_text(op), std::string(op.row().params[each.operand].name), std::to_string(*value),
                    each.reason, each.remedy, op.place(each.operand));
  }
}

void check_dtypes(const TileOp& op) {
  const Buffer &src = *op.region(0).buffer, &dst = *op.region(1).buffer;
  if (src.dtype == dst.dtype) return;
  throw UserError(Code::WrongType, op.place(1),
                  {{"what", fmt::format("'{}' in {}", dst.name, operation_text(op))},
                   {"given", to_string(dst.dtype)},
                   {"expected", to_string(src.dtype) + ", as the source"}},
                  {declaration_note(dst)});
}

void check_reduction(const TileOp& op, const std::string& name) {
  if (!parse_reduce_kind(name)) {
    refuse_argument(operation_text(op), "op", quoted(name), "it is no reduction",
                    "op is \"sum\", \"prod\", \"max\" or \"min\"", op.place(op.row().index_of("op")));
  }
  const Buffer& src = *op.region(0).buffer;
  if (!src.dtype.is_bool()) return;
  throw UserError(
      Code::WrongType, op.place(0),
      {{"what", fmt::format("'{}' in {}", src.name, operation_text(op))}, {"given", "bool"}, {"expected", "a number"}},
      {declaration_note(src)});
}

uint64_t checked_axes(const TileOp& op, const MeshShape& mesh) {
  const Span& place = op.place(op.row().index_of("axis"));
  if (const std::optional<uint64_t> axes = axes_named(mesh, *op.axis())) return *axes;
  const std::vector<std::string> names = names_of_axes(*op.axis());
  for (const std::string& name : names) {
    if (!mesh.axis(name)) unknown_axis(mesh, name, place, names.size() == 1);
  }
  std::string ordered;
  for (const std::string& name : mesh.names) {
    const bool named = std::find(names.begin(), names.end(), name) != names.end();
    if (named) ordered += (ordered.empty() ? "" : ", ") + quoted(name);
  }
  refuse_argument(operation_text(op), "axis", join(names, ", ", [](const std::string& name) { return quoted(name); }),
                  "members of a group count in the order of the mesh's axes",
                  fmt::format("name each axis once, in that order: {}", ordered), place);
}

}  // namespace

void verify_collective(const TileOp& op, const MeshShape& mesh) {
  const int64_t k = op.axis() ? group_size(mesh, checked_axes(op, mesh)) : mesh.size();
  if (op.row().rule == TileRule::CommBarrier) return;
  check_dtypes(op);
  if (const std::string* combination = op.combination()) check_reduction(op, *combination);
  check_members(op, mesh);
  if (op.op == TileOpcode::CommPermute) check_source(op);
  switch (op.row().rule) {
    case TileRule::CommGather: return check_parts(op, op.region(0), op.region(1), k, true);
    case TileRule::CommScatter: return check_parts(op, op.region(1), op.region(0), k, false);
    case TileRule::CommAllToAll: return check_all_to_all(op, k);
    default: return check_same(op);
  }
}

void verify_peer(const Peer& peer, const MeshShape& mesh) {
  const auto refuse = [&](const char* parameter, const std::string& value, const std::string& reason,
                          const char* remedy) {
    refuse_argument("T.peer", parameter, value, reason, remedy, peer.span);
  };
  const Buffer& source = *peer.source;
  if (source.scope != MemoryScope::Shared && source.scope != MemoryScope::Global) {
    refuse("buffer", fmt::format("'{}'", source.name),
           source.scope == MemoryScope::Param ? "it is a tensor of the call, not a core's own"
                                              : "it is in the registers of a core",
           "name a buffer of T.alloc_shared or T.alloc_global");
  }
  const char* remedy = "give one coordinate for each mesh axis, counted from 0";
  if (peer.core.size() != mesh.extents.size()) {
    refuse("core", shape_text(peer.core), fmt::format("the mesh is {}", to_string(mesh)), remedy);
  }
  for (size_t d = 0; d < peer.core.size(); ++d) {
    const int64_t* at = int_value(peer.core[d]);
    if (at && (*at < 0 || *at >= mesh.extents[d])) {
      refuse("core", shape_text(peer.core), fmt::format("the mesh is {}", to_string(mesh)), remedy);
    }
  }
}

void verify_mesh_tensor_copy(const TileOp& op, const Function& f) {
  const MeshTensor *src = f.mesh_tensor(op.region(0).buffer.get()), *dst = f.mesh_tensor(op.region(1).buffer.get());
  const std::string function = operation_text(op);
  if (!src && !dst) {
    const bool from_param =
        op.region(0).buffer->scope == MemoryScope::Param || op.region(1).buffer->scope != MemoryScope::Param;
    const Buffer& named = *op.region(from_param ? 0 : 1).buffer;
    throw UserError(Code::NotSharded, op.place(from_param ? 0 : 1), {{"tensor", named.name}},
                    {declaration_note(named)});
  }
  if (src && dst) {
    refuse_argument(function, "dst", fmt::format("'{}'", dst->buffer->name), "both operands are mesh tensors",
                    "copy through a buffer of the core", op.place(1), {declaration_note(*dst->buffer)});
  }
  const MeshTensor& tensor = src ? *src : *dst;
  const Region &global = op.region(src ? 0 : 1), &local = op.region(src ? 1 : 0);
  const Buffer& buffer = *tensor.buffer;
  if (!may_equal(global.shape(), buffer.shape)) {
    refuse_argument(function, src ? "src" : "dst", fmt::format("a part of '{}'", buffer.name), "coord chooses the tile",
                    fmt::format("give '{}' whole", buffer.name), op.place(src ? 0 : 1));
  }
  check_indices(buffer, op.coord(), op.place(op.row().index_of("coord")));
  std::vector<Expr> tiling;
  for (int64_t extent : tensor.tiling) tiling.push_back(int_imm(extent));
  if (may_equal_squeezed(local.shape(), tiling)) return;
  throw UserError(
      Code::ShapeMismatch, op.span,
      {{"what", fmt::format("the tiling of '{}' and '{}'", buffer.name, local.buffer->name)},
       {"left", shape_text(tensor.tiling)},
       {"right", shape_text(local.shape())}},
      {{tensor.span, fmt::format("the tiling of '{}' is declared as {}", buffer.name, shape_text(tensor.tiling))},
       declaration_note(*local.buffer)});
}

void verify_placement(const Function& f) {
  HELVE_CHECK(f.mesh || f.mesh_tensors.empty(), "mesh tensors in a function without a mesh");
  for (const MeshTensor& tensor : f.mesh_tensors) {
    const Buffer& buffer = *tensor.buffer;
    const int64_t rank = static_cast<int64_t>(buffer.rank());
    std::set<std::string> seen;
    for (const auto& [axis, dim] : tensor.sharding) {
      if (!f.mesh->axis(axis)) unknown_axis(*f.mesh, axis, tensor.span, false);
      if (dim < 0 || dim >= rank) {
        throw UserError(Code::ShardedDimension, tensor.span, {{"tensor", buffer.name}, {"dim", dim}, {"rank", rank}},
                        {declaration_note(buffer)});
      }
      if (!seen.insert(axis).second) {
        refuse_argument("T.annotate_mesh_tensor", "sharding", quoted(axis), "the axis cuts a dimension already",
                        "name each mesh axis once", tensor.span);
      }
    }
    if (static_cast<int64_t>(tensor.tiling.size()) != rank) {
      throw UserError(Code::ShapeMismatch, tensor.span,
                      {{"what", fmt::format("tiling of '{}'", buffer.name)},
                       {"left", shape_text(tensor.tiling)},
                       {"right", shape_text(buffer.shape)}},
                      {declaration_note(buffer)}, {"the tiling has one extent for each dimension"});
    }
    for (int64_t extent : tensor.tiling) {
      if (extent < 1) {
        refuse_argument("T.annotate_mesh_tensor", "tiling", shape_text(tensor.tiling), "a tile has elements",
                        "every extent of a tiling is 1 or more", tensor.span);
      }
    }
  }
}

}  // namespace helve::verify_rules
