// Spelling of the parts of statements.
// Everything that has a default is left out when it equals it, so that printed programs look like written ones.
#include "spelling.h"

#include <fmt/format.h>

#include "helve/ir/expr/equal.h"
#include "helve/layout/notation.h"
#include "helve/support/diagnostic.h"
#include "helve/support/text.h"

namespace helve {

namespace {

bool is_zero(const Expr& e) {
  const int64_t* v = int_value(e);
  return v && *v == 0;
}

std::string numbers(const std::vector<int64_t>& items) {
  return join(items, ", ", [](int64_t i) { return std::to_string(i); });
}

/// The dtype that a plain number takes in this operation.
DType written_dtype(const TileOp& op) {
  const std::vector<TileParam>& params = op.row().params;
  for (size_t i = 0; i < params.size(); ++i) {
    if (params[i].writes()) return op.region(i).buffer->dtype;
  }
  HELVE_FAIL(fmt::format("'{}' writes nothing", op.row().python));
}

}  // namespace

std::string Spelling::tuple(const std::vector<Expr>& items) {
  return fmt::format("({}{})", join(items, ", ", [&](const Expr& e) { return expr(e); }), items.size() == 1 ? "," : "");
}

std::string Spelling::targets(const std::vector<VarRef>& vars) {
  return join(vars, ", ", [&](const VarRef& v) { return name(*v); });
}

std::string Spelling::end(const Expr& begin, const Expr& extent) {
  const int64_t* b = int_value(begin);
  const int64_t* e = int_value(extent);
  if (b && e) return std::to_string(*b + *e);
  if (is_zero(begin)) return expr(extent);
  const Apply* difference = as_op(extent, Op::Sub);
  if (difference && structural_equal(difference->args[1], begin)) {
    const Apply* sum = as_op(difference->args[0], Op::Add);
    if (!sum || !structural_equal(sum->args[0], begin)) return expr(difference->args[0]);
  }
  return expr(begin + extent);
}

std::string Spelling::bounds(const Expr& begin, const Expr& extent) {
  if (is_zero(begin)) return expr(extent);
  const std::string from = expr(begin);
  return from + ", " + end(begin, extent);
}

std::string Spelling::bound_item(const Expr& begin, const Expr& extent) {
  return is_zero(begin) ? expr(extent) : "(" + bounds(begin, extent) + ")";
}

std::string Spelling::value_for(const Expr& value, DType dtype) {
  return value->dtype == dtype ? to_text(value, namer_, true) : typed(value);
}

std::string Spelling::subscript(const Buffer& buffer, const std::vector<Expr>& indices) {
  const std::string target = name(buffer);
  const std::string inside = join(indices, ", ", [&](const Expr& e) { return expr(e); });
  return fmt::format("{}[{}]", target, inside.empty() ? "()" : inside);
}

std::string Spelling::region(const Region& region) {
  auto whole = [&](size_t d) {
    const Range& range = region.ranges[d];
    return !range.point && is_zero(range.begin) && structural_equal(range.extent, region.buffer->shape[d]);
  };
  const std::string target = name(*region.buffer);
  bool all = true;
  for (size_t d = 0; d < region.ranges.size(); ++d) all &= whole(d);
  if (all) return target;
  std::string inside;
  for (size_t d = 0; d < region.ranges.size(); ++d) {
    const Range& range = region.ranges[d];
    if (d) inside += ", ";
    if (range.point || !whole(d)) inside += expr(range.begin);
    if (!range.point) inside += whole(d) ? ":" : ":" + end(range.begin, range.extent);
  }
  return fmt::format("{}[{}]", target, inside);
}

std::string Spelling::tensor_type(const Buffer& buffer) {
  const std::string shape = tuple(buffer.shape);
  const std::string strides = buffer.strides.empty() ? "" : ", strides=" + tuple(buffer.strides);
  const char* sorted = buffer.sorted ? ", sorted=True" : "";
  return fmt::format("T.Tensor({}, \"{}\"{}{})", shape, to_string(buffer.dtype), strides, sorted);
}

std::string Spelling::allocation(const Buffer& buffer) {
  std::string function = fmt::format("alloc_{}", to_string(buffer.scope));
  std::string tile;
  if (is_tiled(buffer)) {
    if (buffer.scope == MemoryScope::Shared) function = "alloc_shared_tiles";
    if (buffer.scope != MemoryScope::Shared || buffer.tile != default_tile(buffer.rank())) {
      tile = ", tile_size=" + shape_text(buffer.tile);
    }
  }
  const std::string layout = buffer.layout ? fmt::format(", layout={}", quoted(to_string(*buffer.layout))) : "";
  const std::string offset = buffer.offset ? fmt::format(", offset={}", *buffer.offset) : "";
  const std::string slots = buffer.slots > 0 ? fmt::format(", slots={}", buffer.slots) : "";
  const std::string place = buffer.place == ArrayPlace::Registers
                                ? ""
                                : fmt::format(", place={}", quoted(std::string(to_string(buffer.place))));
  return fmt::format("T.{}({}, \"{}\"{}{}{}{}{})", function, tuple(buffer.shape), to_string(buffer.dtype), tile, layout,
                     offset, slots, place);
}

bool Spelling::is_default(const TileOp& op, size_t i) {
  const TileParam& param = op.row().params[i];
  if (param.required()) return false;
  switch (param.kind) {
    case ParamKind::Value: {
      const double fallback = std::get<double>(param.fallback);
      const Expr& value = op.expr(i);
      if (value->dtype != written_dtype(op)) return false;
      if (const FloatImm* f = as<FloatImm>(value)) return structural_equal(value, float_imm(fallback, f->dtype));
      const int64_t* v = int_value(value);
      return v && static_cast<double>(*v) == fallback;
    }
    case ParamKind::Index: {
      const int64_t* v = int_value(op.expr(i));
      return v && *v == std::get<int64_t>(param.fallback);
    }
    case ParamKind::Map: return !std::holds_alternative<IndexMap>(op.operands[i]);
    case ParamKind::Integer: return op.integer(i) == std::get<int64_t>(param.fallback);
    case ParamKind::Flag: return op.flag(i) == std::get<bool>(param.fallback);
    case ParamKind::Barriers: return !op.is_region(i);
    case ParamKind::Text:
    case ParamKind::Axes: return op.text(i) == std::get<std::string_view>(param.fallback);
    case ParamKind::In:
    case ParamKind::Out:
    case ParamKind::InOut:
    case ParamKind::Source:
    case ParamKind::Layout:
    case ParamKind::Coord: return false;
  }
  __builtin_unreachable();
}

std::string Spelling::axes(const std::string& names) {
  const std::vector<std::string> each = names_of_axes(names);
  return each.size() == 1 ? quoted(names)
                          : "(" + join(each, ", ", [](const std::string& n) { return quoted(n); }) + ")";
}

std::string Spelling::map(const IndexMap& map) {
  const std::string var = name(*map.var);
  return fmt::format("lambda {}: {}", var, expr(map.value));
}

std::string Spelling::operand(const TileOp& op, size_t i) {
  switch (op.row().params[i].kind) {
    case ParamKind::In:
    case ParamKind::Out:
    case ParamKind::InOut: return region(op.region(i));
    case ParamKind::Source: return op.is_region(i) ? region(op.region(i)) : value_for(op.expr(i), written_dtype(op));
    case ParamKind::Value: return value_for(op.expr(i), written_dtype(op));
    case ParamKind::Coord: return "[" + join(op.exprs(i), ", ", [&](const Expr& e) { return expr(e); }) + "]";
    case ParamKind::Index: return expr(op.expr(i));
    case ParamKind::Map: return is_default(op, i) ? "None" : map(std::get<IndexMap>(op.operands[i]));
    case ParamKind::Integer: return std::to_string(op.integer(i));
    case ParamKind::Flag: return op.flag(i) ? "True" : "False";
    case ParamKind::Text: return quoted(op.text(i));
    case ParamKind::Axes: return axes(op.text(i));
    case ParamKind::Layout: return quoted(to_string(op.layout(i)));
    case ParamKind::Barriers: return op.is_region(i) ? region(op.region(i)) : "None";
  }
  __builtin_unreachable();
}

std::string Spelling::call(const TileOp& op) {
  const TileOpRow& row = op.row();
  std::string inside;
  for (size_t i = 0; i < row.params.size(); ++i) {
    if (is_default(op, i) && !op.is_given(i)) continue;
    if (!inside.empty()) inside += ", ";
    const ParamKind kind = row.params[i].kind;
    const bool positional = row.params[i].required() && kind != ParamKind::Coord && kind != ParamKind::Layout;
    inside += positional ? operand(op, i) : fmt::format("{}={}", row.params[i].name, operand(op, i));
  }
  return fmt::format("T.{}({})", row.python, inside);
}

std::string Spelling::mesh(const MeshShape& mesh) {
  const std::string names = join(mesh.names, ", ", [](const std::string& n) { return quoted(n); });
  return fmt::format("T.Mesh({}, ({}{}))", shape_text(mesh.extents), names, mesh.names.size() == 1 ? "," : "");
}

std::string Spelling::placement(const std::vector<MeshTensor>& tensors) {
  auto cut = [](const std::pair<std::string, int64_t>& item) {
    return fmt::format("{}: {}", quoted(item.first), item.second);
  };
  auto entry = [&](const MeshTensor& t) {
    return fmt::format("{}: {{\"sharding\": {{{}}}, \"tiling\": [{}]}}", name(*t.buffer), join(t.sharding, ", ", cut),
                       numbers(t.tiling));
  };
  return "{" + join(tensors, ", ", entry) + "}";
}

}  // namespace helve
