// Tile operations prepared for running.
// The operands are prepared by the row's declaration; each row then has one function that runs it.
#pragma once

#include <optional>
#include <vector>

#include "region.h"
#include "stmt_code.h"

namespace helve::interp {

/// A function of one index.
class MapCode {
 public:
  MapCode(const IndexMap& map, Scope& scope) : var_(scope.define(map.var)), value_(prepare(map.value, scope)) {}

  int64_t eval(Frame& frame, int64_t index) const {
    frame.vars[var_] = of_int(index);
    return value_->eval(frame).i;
  }

 private:
  size_t var_;
  ExprCodeRef value_;
};

/// The operands of one tile operation, by position in its row.
struct Operands {
  Operands(const TileOp& node, Scope& scope);

  const RegionCode& region(std::string_view name) const { return *regions[row->index_of(name)]; }
  const ExprCode& value(std::string_view name) const { return *values[row->index_of(name)]; }
  const std::vector<ExprCodeRef>& coord(std::string_view name) const { return coords[row->index_of(name)]; }
  const std::optional<MapCode>& map(std::string_view name) const { return maps[row->index_of(name)]; }
  int64_t integer(std::string_view name) const { return node->integer(row->index_of(name)); }

  /// "T.comm.all_gather".
  std::string operation() const { return operation_text(*node); }

  Ref<const TileOp> node;
  const TileOpRow* row;
  std::vector<std::optional<RegionCode>> regions;
  std::vector<ExprCodeRef> values;
  std::vector<std::vector<ExprCodeRef>> coords;
  std::vector<std::optional<MapCode>> maps;
  size_t queue;  ///< of the copies that it begins, commits or waits for
  Span span;
};

/// ShapeMismatch unless the shapes are equal; `what` names the operands.
void require_shape(bool equal, const Operands& op, const std::string& what, const std::vector<int64_t>& left,
                   const std::vector<int64_t>& right);

/// The dimension that `dim` names, counted from the end when negative (BadArgument outside [-rank, rank)).
size_t dimension_of(const Operands& op, size_t rank);

/// The operator and the identity of a reduction, in the evaluation dtype of `dtype`.
Fold fold_of(ReduceKind kind, DType dtype, const Span& span);
Scalar identity_of(ReduceKind kind, DType dtype);

/// The cores of one group, by their index in it.
using Group = CoreSet;
using CollectiveFunction = void (*)(const Operands& op, const Group& group, const Scope& scope);

// One function a row. CollectiveWithoutMesh where there is no mesh.
void run_broadcast(const Operands& op, const Group& group, const Scope& scope);
void run_scatter(const Operands& op, const Group& group, const Scope& scope);
void run_gather(const Operands& op, const Group& group, const Scope& scope);
void run_reduce(const Operands& op, const Group& group, const Scope& scope);
void run_put(const Operands& op, const Group& group, const Scope& scope);
void run_all_gather(const Operands& op, const Group& group, const Scope& scope);
void run_reduce_scatter(const Operands& op, const Group& group, const Scope& scope);
void run_all_reduce(const Operands& op, const Group& group, const Scope& scope);
void run_all_to_all(const Operands& op, const Group& group, const Scope& scope);
void run_permute(const Operands& op, const Group& group, const Scope& scope);
void run_barrier(const Operands& op, const Group& group, const Scope& scope);
void run_wait_bytes(const Operands& op, const Group& group, const Scope& scope);
/// With `synchronises`, all that the cores of a group did before is visible to all of them.
StmtCodeRef prepare_collective(const TileOp& s, Scope& scope, CollectiveFunction function, bool synchronises = true);
StmtCodeRef prepare_st_async(const TileOp& s, Scope& scope);
StmtCodeRef prepare_mesh_tensor_copy(const TileOp& s, Scope& scope);
void require_mesh(const TileOp& s, const Scope& scope);

}  // namespace helve::interp
