// The rows of the table of tile operations.
// The parameter lists are written in the table as calls; they become data here.
#include "helve/ir/tensor/tile_op.h"

#include <fmt/format.h>

#include "helve/ir/tensor/stmt.h"
#include "helve/support/diagnostic.h"

namespace helve {

namespace {

/// The words of the table, in a room of their own: one of them is the name of a class too.
namespace parameters {

TileParam In(std::string_view name) { return {ParamKind::In, name, {}}; }
TileParam Out(std::string_view name) { return {ParamKind::Out, name, {}}; }
TileParam InOut(std::string_view name) { return {ParamKind::InOut, name, {}}; }
TileParam Source(std::string_view name) { return {ParamKind::Source, name, {}}; }
TileParam Value(std::string_view name) { return {ParamKind::Value, name, {}}; }
TileParam Value(std::string_view name, double fallback) { return {ParamKind::Value, name, fallback}; }
TileParam Coord(std::string_view name) { return {ParamKind::Coord, name, {}}; }
TileParam Index(std::string_view name) { return {ParamKind::Index, name, {}}; }
TileParam Index(std::string_view name, int64_t fallback) { return {ParamKind::Index, name, fallback}; }
TileParam Map(std::string_view name, bool fallback) { return {ParamKind::Map, name, fallback}; }
TileParam Integer(std::string_view name) { return {ParamKind::Integer, name, {}}; }
TileParam Integer(std::string_view name, int64_t fallback) { return {ParamKind::Integer, name, fallback}; }
TileParam Flag(std::string_view name, bool fallback) { return {ParamKind::Flag, name, fallback}; }
TileParam Text(std::string_view name, std::string_view fallback) { return {ParamKind::Text, name, fallback}; }
/// Axes of the mesh, as `axes_named` reads them.
TileParam Axes(std::string_view name, std::string_view fallback) { return {ParamKind::Axes, name, fallback}; }
TileParam Layout(std::string_view name) { return {ParamKind::Layout, name, {}}; }
TileParam Barriers(std::string_view name) { return {ParamKind::Barriers, name, {}}; }
TileParam Barriers(std::string_view name, bool fallback) { return {ParamKind::Barriers, name, fallback}; }

template <class... P>
std::vector<TileParam> list(P... params) {
  return {params...};
}

std::vector<TileOpRow> rows() {
  return {
#define HELVE_TILE_OP(name, python, rule, scopes, params, documentation) \
  {TileOpcode::name, #name, python, TileRule::rule, OpScope::scopes, list params, documentation},
#include "helve/ir/tensor/tile_op_table.inc"
#undef HELVE_TILE_OP
  };
}

}  // namespace parameters

}  // namespace

const std::vector<TileOpRow>& tile_op_rows() {
  static const std::vector<TileOpRow> rows = parameters::rows();
  return rows;
}

std::optional<size_t> TileOpRow::find(std::string_view param) const {
  for (size_t i = 0; i < params.size(); ++i) {
    if (params[i].name == param) return i;
  }
  return std::nullopt;
}

size_t TileOpRow::index_of(std::string_view param) const {
  const std::optional<size_t> found = find(param);
  HELVE_CHECK(found, fmt::format("'{}' has no parameter '{}'", name, param));
  return *found;
}

std::optional<size_t> TileOp::dim_position() const { return row().find("dim"); }
int64_t TileOp::dim() const { return integer(row().index_of("dim")); }

std::optional<size_t> TileOp::dimension(size_t rank) const {
  const int64_t n = static_cast<int64_t>(rank);
  if (dim() < -n || dim() >= n) return std::nullopt;
  return static_cast<size_t>(dim() < 0 ? dim() + n : dim());
}

std::string operation_text(const TileOp& op) { return fmt::format("T.{}", op.row().python); }

const Expr& TileOp::root() const { return expr(row().index_of("root")); }
const std::vector<Expr>& TileOp::coord() const { return exprs(row().index_of("coord")); }

std::optional<bool> TileOp::clears() const {
  const std::optional<size_t> found = row().find("clear");
  return found ? std::optional(flag(*found)) : std::nullopt;
}

bool TileOp::transposes(size_t matrix) const {
  HELVE_CHECK(matrix < 2, "a product has two factors");
  return flag(row().index_of(matrix == 0 ? "transpose_A" : "transpose_B"));
}

const std::string* TileOp::axis() const {
  const std::optional<size_t> found = row().find("axis");
  return found ? &text(*found) : nullptr;
}

const std::string* TileOp::combination() const {
  const std::optional<size_t> found = row().find("op");
  return found ? &text(*found) : nullptr;
}

const Region* TileOp::barriers() const {
  const std::optional<size_t> found = row().find("barriers");
  return found && is_region(*found) ? &region(*found) : nullptr;
}

int64_t TileOp::pending() const { return integer(row().index_of("pending")); }

int64_t TileOp::multicast() const {
  const std::optional<size_t> found = row().find("multicast");
  return found ? integer(*found) : 1;
}

int64_t TileOp::warpgroup() const {
  const std::optional<size_t> found = row().find("warpgroup");
  return found ? integer(*found) : 0;
}

bool TileOp::waits_for_sources() const {
  const std::optional<size_t> found = row().find("sources");
  return found && flag(*found);
}

bool TileOp::begins_copy() const {
  if (op == TileOpcode::CopyAsync || op == TileOpcode::CpAsync) return true;
  const std::optional<size_t> wait = row().find("wait");
  return wait && !flag(*wait);
}

bool TileOp::is_by_tma() const { return op == TileOpcode::CpAsyncBulk || op == TileOpcode::CpAsyncBulkTensor; }

bool TileOp::in_async_proxy(size_t i) const {
  return is_region(i) && (is_by_tma() || (op == TileOpcode::Wgmma && region(i).buffer->scope == MemoryScope::Shared));
}

bool TileOp::may_pass_end(size_t i) const {
  const bool copies = row().rule == TileRule::Copy || row().rule == TileRule::CopyInstruction;
  return copies && op != TileOpcode::CpAsyncBulk && is_global(*region(i).buffer);
}

ReduceKind reduce_kind(TileOpcode op) {
  switch (op) {
    case TileOpcode::ReduceSum: return ReduceKind::Sum;
    case TileOpcode::ReduceProd: return ReduceKind::Prod;
    case TileOpcode::ReduceMax: return ReduceKind::Max;
    case TileOpcode::ReduceMin: return ReduceKind::Min;
    case TileOpcode::ReduceAbsMax: return ReduceKind::AbsMax;
    case TileOpcode::ReduceAny: return ReduceKind::Any;
    case TileOpcode::ReduceAll: return ReduceKind::All;
    default: HELVE_FAIL("not a reduction");
  }
}

std::optional<ReduceKind> parse_reduce_kind(std::string_view name) {
  if (name == "sum") return ReduceKind::Sum;
  if (name == "prod") return ReduceKind::Prod;
  if (name == "max") return ReduceKind::Max;
  if (name == "min") return ReduceKind::Min;
  return std::nullopt;
}

}  // namespace helve
