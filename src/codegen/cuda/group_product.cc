// Products of matrices in shared memory: wgmma.mma_async.
// All warps of a warpgroup take part; descriptors and registers are those of the operation, so that only addresses are
// left to print. A warpgroup's number is the same for its lanes, which the shuffle tells the compiler.
#include "helve/ir/tensor/group_product.h"

#include <fmt/format.h>

#include "helve/arith/simplify.h"
#include "helve/layout/warp.h"
#include "helve/support/diagnostic.h"
#include "helve/support/text.h"
#include "kernel_emitter.h"

namespace helve::cuda {

namespace {

constexpr PreludePart kGroupProduct{"group_product", "", R"(
// The descriptor of a matrix in shared memory that begins at `tile`: the distance of its slabs, of its groups of eight
// rows, and the bytes of a row in which units of 16 are permuted.
template <int LEADING, int STRIDE, int SWIZZLE>
__device__ __forceinline__ unsigned long long helve_descriptor(const void* tile) {
    const unsigned int at = (unsigned int)__cvta_generic_to_shared(tile);
    constexpr unsigned long long mode = SWIZZLE == 128 ? 1 : SWIZZLE == 64 ? 2 : SWIZZLE == 32 ? 3 : 0;
    return (unsigned long long)((at & 0x3ffff) >> 4) | (unsigned long long)(LEADING >> 4) << 16 |
           (unsigned long long)(STRIDE >> 4) << 32 | mode << 62;
}
// The number of the thread's warpgroup.
__device__ __forceinline__ int helve_warpgroup() { return __shfl_sync(0xffffffffu, (int)(threadIdx.x / 128), 0); }
// Sums that the compiler must not touch between the two.
template <int COUNT>
__device__ __forceinline__ void helve_hold_sums(float* c) {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) asm volatile("" : "+f"(c[i]) : : "memory");
}
template <int COUNT>
__device__ __forceinline__ void helve_begin_products(float* c) {
    helve_hold_sums<COUNT>(c);
    asm volatile("wgmma.fence.sync.aligned;" : : : "memory");
}
template <int COUNT>
__device__ __forceinline__ void helve_end_products(float* c) {
    asm volatile("wgmma.commit_group.sync.aligned;" : : : "memory");
    asm volatile("wgmma.wait_group.sync.aligned %0;" : : "n"(0) : "memory");
    helve_hold_sums<COUNT>(c);
}
// C (64, N) += A (64, 16) @ B (16, N) by a warpgroup, N / 2 sums of each thread; `adds` 0: C = A @ B. BRAIN: bfloat16.
// A_LINES, B_LINES: rows in memory are along M and N, not along K.
template <int N, bool BRAIN, bool A_LINES, bool B_LINES>
__device__ void helve_group_product(float* c, unsigned long long a, unsigned long long b, int adds);
)"};

/// The instruction as a function: inline assembly names each register.
struct Instruction {
  int64_t n;
  bool brain, a_lines, b_lines;

  std::string name() const { return fmt::format("helve_group_product<{}, {}, {}, {}>", n, brain, a_lines, b_lines); }

  std::string text() const {
    const int64_t count = n / 2;
    const char* type = brain ? "bf16" : "f16";
    std::vector<std::string> places, sums;
    for (int64_t i = 0; i < count; ++i) {
      places.push_back(fmt::format("%{}", i));
      sums.push_back(fmt::format("\"+f\"(c[{}])", i));
    }
    const auto self = [](const std::string& s) { return s; };
    return fmt::format(R"(
template <>
__device__ __forceinline__ void {}(float* c, unsigned long long a, unsigned long long b, int adds) {{
    asm volatile("{{ .reg .pred p; setp.ne.b32 p, %{}, 0; "
        "wgmma.mma_async.sync.aligned.m64n{}k16.f32.{}.{} "
        "{{{}}}, "
        "%{}, %{}, p, 1, 1, {}, {}; }}"
        : {}
        : "l"(a), "l"(b), "r"(adds));
}}
)",
                       name(), count + 2, n, type, type, join(places, ", ", self), count, count + 1, int{a_lines},
                       int{b_lines}, join(sums, ", ", self));
  }
};

}  // namespace

/// The descriptor of the part of a factor that the warpgroup begins with, and its text.
std::string KernelEmitter::descriptor(const Region& factor, const MatrixDescriptor& d, const std::vector<Expr>& first) {
  std::vector<Expr> indices;
  size_t next = 0;
  for (const Range& range : factor.ranges) indices.push_back(range.point ? range.begin : first[next++]);
  const Address address = address_of(*factor.buffer, indices, facts_);
  const std::string begin = fmt::format("{} + {}", names_.of(factor.buffer.get(), factor.buffer->name),
                                        text(address.sum, c::precedence_of("+") + 1));
  return fmt::format("helve_descriptor<{}, {}, {}>({})", d.leading, d.stride, d.swizzle, begin);
}

void KernelEmitter::group_product(const TileOp& s) {
  HELVE_CHECK(!thread_, "a thread by itself multiplies no matrices");
  const GroupOperands operands = group_operands(s);
  const GroupProduct product = operands.product();
  const ProductShape& shape = operands.shape;
  const FactorTile left = tile_of_a(shape), right = tile_of_b(shape);
  std::string reason;
  const std::optional<Layout> a = tile_layout(operands.a, &reason), b = tile_layout(operands.b, &reason);
  HELVE_CHECK(a && b, reason);
  const Instruction instruction{product.n, operands.a.buffer->dtype.code == TypeCode::BFloat, !left.depth_last,
                                !right.depth_last};
  need(kGroupProduct);
  prelude_.need(
      fmt::format("group_product_{}_{}_{}_{}", product.n, instruction.brain, instruction.a_lines, instruction.b_lines),
      instruction.text());
  const std::string sums = names_.of(operands.c.buffer.get(), operands.c.buffer->name);
  block("", s.span, [&] {
    const VarRef group = make_var("group");
    const int64_t groups = product.groups.rows * product.groups.columns;
    Expr row = int_imm(0), column = int_imm(0);
    if (groups > 1) {
      line(fmt::format("const int {} = helve_warpgroup();", names_.define(group.get(), "group")));
      wide_[group.get()] = false;
      facts_.bind_loop(group, int_imm(0), int_imm(groups));
      row = simplify(floor_div(Expr(group), int_imm(product.groups.columns)) * int_imm(kGroupRows), facts_);
      column =
          simplify(floor_mod(Expr(group), int_imm(product.groups.columns)) * int_imm(product.own_columns()), facts_);
    }
    const auto first = [](const FactorTile& tile, const Expr& line) {
      return tile.depth_last ? std::vector{line, int_imm(0)} : std::vector{int_imm(0), line};
    };
    const std::string of_a = names_.fresh("left"), of_b = names_.fresh("right");
    const std::string type = "const unsigned long long ";
    line(type + of_a + " = " + descriptor(operands.a, operands.descriptor_a, first(left, row)) + ";", s.span);
    line(type + of_b + " = " + descriptor(operands.b, operands.descriptor_b, first(right, column)) + ";", s.span);
    line(fmt::format("helve_begin_products<{}>({});", product.registers(), sums), s.span);
    const auto part = [](const std::string& name, const Layout& layout, const FactorTile& tile, int64_t line_of,
                         int64_t k) {
      const int64_t bytes = (descriptor_start(layout, tile, line_of, k) - descriptor_start(layout, tile, 0, 0)) * 2;
      return bytes == 0 ? name : fmt::format("{} + {}", name, bytes / 16);
    };
    for (int64_t l = 0; l < product.depths; ++l) {
      for (int64_t i = 0; i < product.rows; ++i) {
        for (int64_t j = 0; j < product.columns; ++j) {
          const int64_t at = product.first_register(i, j);
          line(fmt::format("{}({}, {}, {}, {});", instruction.name(), at == 0 ? sums : fmt::format("{} + {}", sums, at),
                           part(of_a, *a, left, product.first_row(i, 0), l * kProductDepth),
                           part(of_b, *b, right, j * product.n, l * kProductDepth), int{l > 0 || !*s.clears()}),
               s.span);
        }
      }
    }
    line(fmt::format("helve_end_products<{}>({});", product.registers(), sums), s.span);
  });
}

}  // namespace helve::cuda
