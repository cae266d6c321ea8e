// The verifier's rules for constants, as questions.
// It refuses what a user writes down wrongly; what a pass folded to the same constants stands where it is not reached.
#include "certain_faults.h"

#include <algorithm>

#include "helve/ir/expr/number.h"
#include "helve/ir/tensor/verify.h"
#include "helve/ir/tensor/visit.h"
#include "helve/support/diagnostic.h"

namespace helve {

namespace {

bool is_outside(const Buffer& buffer, const std::vector<Expr>& indices) {
  for (size_t d = 0; d < indices.size(); ++d) {
    const int64_t *index = int_value(indices[d]), *extent = int_value(buffer.shape[d]);
    if (index && (*index < 0 || (extent && *index >= *extent))) return true;
  }
  return false;
}

bool is_below(const Expr& e, int64_t limit) {
  const int64_t* value = int_value(e);
  return value && *value < limit;
}

/// An extent below 0 is that of an empty region, and where an empty one begins says nothing.
bool count_extents(Region& region) {
  bool changed = false;
  const bool empty = std::any_of(region.ranges.begin(), region.ranges.end(),
                                 [](const Range& range) { return is_below(range.extent, 1); });
  for (Range& range : region.ranges) {
    for (Expr* e : {&range.begin, &range.extent}) {
      if (!empty || !is_below(*e, 0)) continue;
      *e = int_imm(0, (*e)->dtype, (*e)->span);
      changed = true;
    }
  }
  return changed;
}

/// Do constants refute a region or a shape? Whatever else is wrong is the verifier's to say.
bool faults(const TileOp& op, const MeshShape* mesh) {
  try {
    verify_tile_op(op, mesh);
  } catch (const UserError& error) {
    const Code code = error.diagnostic().code;
    return code == Code::NegativeIndex || code == Code::OutOfBounds || code == Code::ShapeMismatch;
  }
  return false;
}

}  // namespace

Expr without_faults(const Expr& e) {
  if (!has_load(e)) return e;
  return rewrite(e, [](const Expr& node) {
    const Load* load = as<Load>(node);
    if (!load || !is_outside(buffer_of(load->buffer), load->indices)) return node;
    return number_imm(0, load->dtype, node->span);
  });
}

Stmt without_fault(const Stmt& s, const MeshShape* mesh) {
  if (const Store* store = as<Store>(s); store && is_outside(*store->buffer, store->indices)) return seq({}, s->span);
  const TileOp* op = as<TileOp>(s);
  if (!op) return s;
  const Ref<TileOp> counted = copy_with(*op, [](TileOp& out) {
    bool changed = false;
    for (TileOperand& operand : out.operands) {
      if (Region* region = std::get_if<Region>(&operand)) changed |= count_extents(*region);
    }
    return changed;
  });
  const Stmt out = counted ? Stmt(counted) : s;
  return faults(*as<TileOp>(out), mesh) ? seq({}, s->span) : out;
}

}  // namespace helve
