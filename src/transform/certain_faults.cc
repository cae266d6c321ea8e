// The verifier's rules for constants, as predicates.
// The verifier refuses such code in a user's program; a pass may fold to the same constants in code that is not
// reached.
#include "certain_faults.h"

#include <algorithm>

#include "helve/arith/simplify.h"
#include "helve/ir/expr/number.h"
#include "helve/ir/tensor/verify.h"
#include "helve/ir/tensor/visit.h"
#include "helve/support/diagnostic.h"

namespace helve {

namespace {

/// In elements, or in tiles.
bool is_outside(const Buffer& buffer, const std::vector<Expr>& indices, bool tiles = false) {
  for (size_t d = 0; d < indices.size(); ++d) {
    const int64_t *index = int_value(indices[d]), *extent = int_value(buffer.shape[d]);
    const int64_t tile = tiles ? buffer.tile[d] : 1;
    if (index && (*index < 0 || (extent && *index >= (*extent + tile - 1) / tile))) return true;
  }
  return false;
}

bool is_outside(const Expr& node) {
  if (const Load* load = as<Load>(node)) return is_outside(buffer_of(load->buffer), load->indices);
  const TileLoad* load = as<TileLoad>(node);
  return load && is_outside(buffer_of(load->buffer), load->indices, true);
}

bool is_below(const Expr& e, int64_t limit) {
  const int64_t* value = int_value(e);
  return value && *value < limit;
}

/// A negative extent is that of an empty region, whose begin has no meaning.
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

/// Do constants refute a region or a shape? The verifier reports everything else.
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
  bool any = false;
  walk(e, [&](const Expr& node) { any |= is_outside(node); });
  if (!any) return e;
  return rewrite(e, [](const Expr& node) { return is_outside(node) ? number_imm(0, node->dtype, node->span) : node; });
}

Stmt without_fault(const Stmt& s, const MeshShape* mesh) {
  if (const Store* store = as<Store>(s); store && is_outside(*store->buffer, store->indices)) return seq({}, s->span);
  if (const Kernel* kernel = as<Kernel>(s); kernel && leaves_copies(*kernel)) {
    return copy_with(*kernel, [&](Kernel& out) {
      out.body = seq({kernel->body, tile_op(TileOpcode::WaitAsync, {int64_t{0}}, s->span)});
    });
  }
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

Stmt without_any_fault(const Stmt& s, const MeshShape* mesh) {
  const auto sound = [](const Expr& e) {
    const Expr out = without_faults(e);
    return out == e ? e : simplify(out);  // folds operators on the new constants
  };
  return rewrite(s, [&](const Stmt& each) { return without_fault(each, mesh); }, sound);
}

}  // namespace helve
