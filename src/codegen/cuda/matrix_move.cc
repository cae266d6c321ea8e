// Matrices between shared memory and registers: ldmatrix, stmatrix.
// All lanes of a warp take part, each with the address of one row, which the layout determines.
#include "helve/ir/tensor/matrix_move.h"

#include <fmt/format.h>

#include "helve/arith/simplify.h"
#include "helve/support/diagnostic.h"
#include "kernel_emitter.h"

namespace helve::cuda {

void KernelEmitter::matrix_move(const TileOp& s) {
  HELVE_CHECK(!thread_, "a thread by itself moves no matrices");
  const MatrixOperands operands = matrix_operands(s);
  const Region& region = *operands.memory;
  const Buffer& memory = *region.buffer;
  std::string reason;
  const std::optional<MatrixMove> move = helve::matrix_move(operands.layout, *constant_shape(region.shape()), &reason);
  HELVE_CHECK(move, reason);
  const bool loads = s.op == TileOpcode::LoadMatrix;
  const std::string part = loads ? "load_matrices" : "store_matrices";
  const std::string fragment = names_.of(operands.fragment->buffer.get(), operands.fragment->buffer->name);
  Place place(*this);
  const VarRef tx = make_var("tx");
  names_.alias(tx.get(), "tx");
  wide_[tx.get()] = false;
  facts_.bind_loop(tx, int_imm(0), int_imm(kernel_.threads));
  for (int64_t first = 0; first < move->matrices; first += move->at_once) {
    const std::vector<Expr> row = matrix_row(*move, Expr(tx), first);
    std::vector<Expr> indices;
    size_t next = 0;
    for (const Range& range : region.ranges) indices.push_back(range.point ? range.begin : range.begin + row[next++]);
    for (Expr& index : indices) index = simplify(index, facts_);
    const Address address = address_of(memory, indices, facts_);
    require_rows(s, memory, address);
    const std::string at =
        fmt::format("{} + {}", names_.of(&memory, memory.name), text(address.swizzled(), c::precedence_of("+") + 1));
    const std::string registers = first == 0 ? fragment : fmt::format("{} + {}", fragment, 2 * first);
    need(part);
    line(fmt::format("helve_{}<{}, {}>({}, {});", part, move->at_once, move->transposed, registers, at), s.span);
  }
}

/// A row is 16 contiguous bytes at a multiple of 16.
void KernelEmitter::require_rows(const TileOp& s, const Buffer& memory, const Address& address) const {
  const bool together = address.keeps(kMatrixRows);
  if (together && residue_of(sum_of(address.sum), facts_).remainder_by(kMatrixRows) == 0) return;
  throw UserError(Code::NoSchedule, s.span, {{"operation", operation_text(s)}},
                  {{memory.span, fmt::format("the rows of 8 elements of '{}' are not known to begin at multiples of 16 "
                                             "bytes and to be contiguous",
                                             memory.name)}},
                  {"give rows a multiple of 8 elements, and the region a multiple of 8 to begin at"});
}

}  // namespace helve::cuda
