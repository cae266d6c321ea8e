// The direct exchange, from its definition.
// Block numbers are sums of coordinates, so every condition is affine without a division.
#include "helve/plan/need.h"

#include <algorithm>

#include "helve/ir/expr/build.h"
#include "helve/ir/expr/chain.h"

namespace helve {

namespace {

std::vector<VarRef> make_vars(const char* name, size_t count) {
  std::vector<VarRef> out;
  for (size_t k = 0; k < count; ++k) out.push_back(make_var(name));
  return out;
}

Expr within(const Expr& begin, const VarRef& var, const Expr& end) {
  return logical_and(apply(Op::Le, {begin, Expr(var)}), less(Expr(var), end));
}

}  // namespace

TransferSpace::TransferSpace(const Distribution& distribution)
    : receiver(make_vars("r", distribution.mesh.size())),
      sender(make_vars("s", distribution.mesh.size())),
      element(make_vars("e", distribution.shape.size())) {}

std::vector<VarRef> TransferSpace::tuple() const {
  std::vector<VarRef> out = receiver;
  out.insert(out.end(), sender.begin(), sender.end());
  out.insert(out.end(), element.begin(), element.end());
  return out;
}

Expr TransferSpace::agree(size_t axis) const { return apply(Op::Eq, {Expr(receiver[axis]), Expr(sender[axis])}); }

Expr TransferSpace::apart() const {
  std::vector<Expr> differ;
  for (size_t a = 0; a < receiver.size(); ++a) {
    differ.push_back(apply(Op::Ne, {Expr(receiver[a]), Expr(sender[a])}));
  }
  return chain(Op::Or, differ);
}

Expr holds(const Distribution& distribution, const std::vector<VarRef>& coordinates,
           const std::vector<VarRef>& element) {
  const std::vector<MeshAxis>& mesh = distribution.mesh;
  std::vector<Expr> conditions;
  for (size_t a = 0; a < mesh.size(); ++a) {
    conditions.push_back(within(int_imm(0), coordinates[a], int_imm(mesh[a].extent)));
    if (!distribution.layout.offset().count(mesh[a].axis)) continue;
    conditions.push_back(apply(Op::Eq, {Expr(coordinates[a]), int_imm(distribution.layout.offset(mesh[a].axis))}));
  }
  for (size_t d = 0; d < distribution.shape.size(); ++d) {
    Expr number = int_imm(0);
    for (const MeshAxis& each : distribution.cut[d]) {
      const size_t a = static_cast<size_t>(std::find(mesh.begin(), mesh.end(), each) - mesh.begin());
      number = number * int_imm(each.extent) + Expr(coordinates[a]);
    }
    const Expr begin = number * int_imm(distribution.block[d]);
    conditions.push_back(within(begin, element[d], begin + int_imm(distribution.block[d])));
    conditions.push_back(within(int_imm(0), element[d], int_imm(distribution.shape[d])));
  }
  return conjunction(conditions);
}

Expr is_given(const TransferSpace& space, const Transfer& transfer) {
  std::vector<Expr> conditions = {holds(transfer.to(), space.receiver, space.element)};
  for (size_t a = 0; a < transfer.roles().size(); ++a) {
    if (transfer.roles()[a].begun) conditions.push_back(apply(Op::Eq, {Expr(space.receiver[a]), int_imm(0)}));
  }
  return conjunction(conditions);
}

Expr is_received(const TransferSpace& space, const Transfer& transfer) {
  std::vector<Expr> conditions = {is_given(space, transfer), holds(transfer.from(), space.sender, space.element)};
  for (size_t a = 0; a < transfer.roles().size(); ++a) {
    if (transfer.roles()[a].kept) conditions.push_back(space.agree(a));
  }
  return conjunction(conditions);
}

Expr is_needed(const TransferSpace& space, const Transfer& transfer) {
  return logical_and(is_received(space, transfer), space.apart());
}

}  // namespace helve
