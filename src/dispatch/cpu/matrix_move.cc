// Moves of matrices on the CPU, element by element.
// The layout determines the registers of an element, by the same digits as everywhere.
#include "helve/ir/tensor/matrix_move.h"

#include "element_nest.h"
#include "helve/layout/address_terms.h"
#include "schedules.h"

namespace helve::cpu {

namespace {

/// The coordinate of the element on `axis`.
Expr coordinate(const std::vector<AddressTerm>& terms, Axis axis, const std::vector<Expr>& at) {
  Expr sum = int_imm(0);
  for (const AddressTerm& term : terms) {
    if (term.axis != axis) continue;
    const Expr above = floor_div(at[term.dim], int_imm(term.divisor));
    sum = sum + (term.outermost ? above : floor_mod(above, int_imm(term.extent))) * int_imm(term.stride);
  }
  return sum;
}

}  // namespace

Stmt lower_matrix_move(const TileOp& op, const LoweringContext& context, std::string* declined) {
  const MatrixOperands operands = matrix_operands(op);
  if (!operands.divided()) return lower_copy(op, context, declined);
  const std::vector<AddressTerm> terms = address_terms(operands.layout, *constant_shape(operands.memory->shape()));
  std::vector<VarRef> vars = {make_var("i"), make_var("j")};
  std::vector<Expr> extents = operands.memory->shape();
  const std::vector<Expr> at(vars.begin(), vars.end());
  Expr thread = coordinate(terms, axes::tx(), at);
  // Threads with copies of the elements are further dimensions of the loop.
  for (const Iter& iter : operands.layout.replica()) {
    vars.push_back(make_var("copy"));
    extents.push_back(int_imm(iter.extent));
    thread = thread + Expr(vars.back()) * int_imm(iter.stride);
  }
  const std::vector<Expr> own = {thread, operands.fragment->ranges[1].begin + coordinate(terms, axes::reg(), at)};
  const std::vector<Expr> element = region_indices(*operands.memory, at);
  const BufferRef &registers = operands.fragment->buffer, &memory = operands.memory->buffer;
  const Stmt body = op.op == TileOpcode::LoadMatrix ? store(registers, own, load(memory, element))
                                                    : store(memory, element, load(registers, own));
  return for_loop(LoopKind::Parallel, vars, std::vector<Expr>(vars.size(), int_imm(0)), extents, body, 1, op.span);
}

}  // namespace helve::cpu
