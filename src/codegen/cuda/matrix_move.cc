// Matrices between shared memory and registers: ldmatrix, stmatrix.
// All lanes of a warp take part, each with the address of one row, which the layout determines.
#include "helve/ir/tensor/matrix_move.h"

#include <fmt/format.h>

#include "helve/arith/simplify.h"
#include "helve/support/diagnostic.h"
#include "kernel_emitter.h"

namespace helve::cuda {

namespace {

constexpr PreludePart kLoadMatrices{"load_matrices", "", R"(
// COUNT matrices of 8 x 8 elements of 16 bits to registers, two elements of each a thread: lane l names row l % 8 of
// matrix l / 8.
template <int COUNT, bool TRANSPOSED, class T>
__device__ __forceinline__ void helve_load_matrices(T* to, const T* row) {
    const unsigned int at = (unsigned int)__cvta_generic_to_shared(row);
    unsigned int r[4];
    if constexpr (COUNT == 4 && TRANSPOSED) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
    } else if constexpr (COUNT == 4) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
    } else if constexpr (COUNT == 2 && TRANSPOSED) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                     : "=r"(r[0]), "=r"(r[1]) : "r"(at) : "memory");
    } else if constexpr (COUNT == 2) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                     : "=r"(r[0]), "=r"(r[1]) : "r"(at) : "memory");
    } else if constexpr (TRANSPOSED) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];" : "=r"(r[0]) : "r"(at) : "memory");
    } else {
        asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(r[0]) : "r"(at) : "memory");
    }
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
        union { unsigned int whole; T parts[2]; } u;
        u.whole = r[i];
        to[2 * i] = u.parts[0];
        to[2 * i + 1] = u.parts[1];
    }
}
)"};

constexpr PreludePart kStoreMatrices{"store_matrices", "", R"(
// The other direction of helve_load_matrices; sm_90 and later.
template <int COUNT, bool TRANSPOSED, class T>
__device__ __forceinline__ void helve_store_matrices(const T* from, T* row) {
    const unsigned int at = (unsigned int)__cvta_generic_to_shared(row);
    unsigned int r[4];
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
        union { unsigned int whole; T parts[2]; } u;
        u.parts[0] = from[2 * i];
        u.parts[1] = from[2 * i + 1];
        r[i] = u.whole;
    }
    if constexpr (COUNT == 4 && TRANSPOSED) {
        asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};"
                     : : "r"(at), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]) : "memory");
    } else if constexpr (COUNT == 4) {
        asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                     : : "r"(at), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]) : "memory");
    } else if constexpr (COUNT == 2 && TRANSPOSED) {
        asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};"
                     : : "r"(at), "r"(r[0]), "r"(r[1]) : "memory");
    } else if constexpr (COUNT == 2) {
        asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};"
                     : : "r"(at), "r"(r[0]), "r"(r[1]) : "memory");
    } else if constexpr (TRANSPOSED) {
        asm volatile("stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%0], {%1};"
                     : : "r"(at), "r"(r[0]) : "memory");
    } else {
        asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};"
                     : : "r"(at), "r"(r[0]) : "memory");
    }
}
)"};

}  // namespace

void KernelEmitter::matrix_move(const TileOp& s) {
  HELVE_CHECK(!thread_, "a thread by itself moves no matrices");
  const MatrixOperands operands = matrix_operands(s);
  const Region& region = *operands.memory;
  const Buffer& memory = *region.buffer;
  std::string reason;
  const std::optional<MatrixMove> move = helve::matrix_move(operands.layout, *constant_shape(region.shape()), &reason);
  HELVE_CHECK(move, reason);
  const bool loads = s.op == TileOpcode::LoadMatrix;
  const PreludePart& part = loads ? kLoadMatrices : kStoreMatrices;
  const std::string fragment = names_.of(operands.fragment->buffer.get(), operands.fragment->buffer->name);
  Place place(*this);
  const VarRef tx = make_var("tx");
  names_.alias(tx.get(), "tx");
  wide_[tx.get()] = false;
  facts_.bind_loop(tx, int_imm(0), int_imm(source_.stmt->threads));
  for (int64_t first = 0; first < move->matrices; first += move->at_once) {
    const std::vector<Expr> row = matrix_row(*move, Expr(tx), first);
    std::vector<Expr> indices;
    size_t next = 0;
    for (const Range& range : region.ranges) indices.push_back(range.point ? range.begin : range.begin + row[next++]);
    for (Expr& index : indices) index = simplify(index, facts_);
    const Address address = address_of(memory, indices, facts_);
    const bool together = address.keeps(kMatrixRows);
    HELVE_CHECK(together && residue_of(sum_of(address.sum), facts_).remainder_by(kMatrixRows) == 0,
                "rows of a matrix in '" + memory.name + "' that are not 16 bytes at a multiple of 16");
    const std::string at = fmt::format("{} + {}", names_.of(&memory, memory.name),
                                       text(address.swizzled_by_digits(facts_), c::precedence_of("+") + 1));
    const int64_t from = *int_value(operands.fragment->ranges[1].begin) + 2 * first;
    const std::string registers = from == 0 ? fragment : fmt::format("{} + {}", fragment, from);
    need(part);
    line(fmt::format("helve_{}<{}, {}>({}, {});", part.name, move->at_once, move->transposed, registers, at), s.span);
  }
}

}  // namespace helve::cuda
