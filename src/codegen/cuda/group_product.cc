// Products of matrices in shared memory: wgmma.mma_async.
// All warps of a warpgroup take part; descriptors and registers are those of the operation, so that only addresses are
// left to print. A warpgroup's number is the same for its lanes, which the shuffle tells the compiler.
#include "helve/ir/tensor/group_product.h"

#include <fmt/format.h>

#include <algorithm>

#include "helve/arith/simplify.h"
#include "helve/ir/tensor/product_types.h"
#include "helve/ir/tensor/visit.h"
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
// Registers whose uses the compiler moves neither behind the fence that follows nor in front of the wait before it.
__device__ __forceinline__ void helve_hold(float& x) { asm volatile("" : "+f"(x) : : "memory"); }
__device__ __forceinline__ void helve_hold(int& x) { asm volatile("" : "+r"(x) : : "memory"); }
__device__ __forceinline__ void helve_hold(unsigned int& x) { asm volatile("" : "+r"(x) : : "memory"); }
template <int COUNT, class T>
__device__ __forceinline__ void helve_hold_registers(T* registers) {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) helve_hold(registers[i]);
}
__device__ __forceinline__ void helve_fence_products() { asm volatile("wgmma.fence.sync.aligned;" : : : "memory"); }
__device__ __forceinline__ void helve_commit_products() {
    asm volatile("wgmma.commit_group.sync.aligned;" : : : "memory");
}
// Wait until all groups but the N youngest are complete.
template <int N>
__device__ __forceinline__ void helve_wait_for_products() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" : : "n"(N) : "memory");
}
// C (64, N) += A (64, K) @ B (K, N) by a warpgroup, N / 2 sums of each thread; `adds` 0: C = A @ B. A is a descriptor,
// or four words of each thread. A_LINES, B_LINES: rows in memory are along M and N, not along K.
template <int N, class T, bool A_LINES, bool B_LINES, class SUM, class A>
__device__ void helve_group_product(SUM* c, A a, unsigned long long b, int adds);
)"};

/// The instruction as a function: inline assembly names each register.
struct Instruction {
  int64_t n;
  const ProductTypes& types;
  std::string factor;  ///< type of an element in memory
  bool a_lines, b_lines, in_registers;

  std::string name() const { return fmt::format("helve_group_product<{}, {}, {}, {}>", n, factor, a_lines, b_lines); }

  std::string text() const {
    const int64_t count = n / 2, words = in_registers ? 4 : 1;
    const bool whole = !types.sum.is_float();
    std::vector<std::string> places, sums, factors;
    for (int64_t i = 0; i < count; ++i) {
      places.push_back(fmt::format("%{}", i));
      sums.push_back(fmt::format("\"+{}\"(c[{}])", whole ? "r" : "f", i));
    }
    for (int64_t i = 0; i < words; ++i) factors.push_back(fmt::format("%{}", count + i));
    const auto self = [](const std::string& s) { return s; };
    std::string left = join(factors, ", ", self), modes = whole ? "" : ", 1, 1";
    if (in_registers) left = "{" + left + "}";
    if (types.factor.bits == 16) {
      modes += in_registers ? fmt::format(", {}", int{b_lines}) : fmt::format(", {}, {}", int{a_lines}, int{b_lines});
    }
    const char* const given = in_registers ? "\"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3])" : "\"l\"(a)";
    return fmt::format(R"(
template <>
__device__ __forceinline__ void {}({}* c, {} a, unsigned long long b, int adds) {{
    asm volatile("{{ .reg .pred p; setp.ne.b32 p, %{}, 0; "
        "wgmma.mma_async.sync.aligned.m64n{}k{}.{}.{}.{} "
        "{{{}}}, "
        "{}, %{}, p{}; }}"
        : {}
        : {}, "l"(b), "r"(adds));
}}
)",
                       name(), whole ? "int" : "float", in_registers ? "unsigned int*" : "unsigned long long",
                       count + words + 1, n, 256 / types.factor.bits, types.sum_name, types.name, types.name,
                       join(places, ", ", self), left, count + words, modes, join(sums, ", ", self), given);
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
  const bool registers = operands.in_registers();
  std::optional<Layout> a;
  if (!registers) a = tile_layout(operands.a, &reason);
  const std::optional<Layout> b = tile_layout(operands.b, &reason);
  HELVE_CHECK((a || registers) && b, reason);
  const Instruction instruction{product.n,
                                *product_types(operands.a.buffer->dtype),
                                element_type(*operands.a.buffer),
                                !left.depth_last,
                                !right.depth_last,
                                registers};
  need(kGroupProduct);
  prelude_.need("group_product_" + instruction.name() + (registers ? "_registers" : ""), instruction.text());
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
    const std::string of_a = registers ? words_.at(operands.a.buffer.get()) : names_.fresh("left");
    const std::string of_b = names_.fresh("right");
    const std::string type = "const unsigned long long ";
    if (!registers) {
      line(type + of_a + " = " + descriptor(operands.a, operands.descriptor_a, first(left, row)) + ";", s.span);
    }
    line(type + of_b + " = " + descriptor(operands.b, operands.descriptor_b, first(right, column)) + ";", s.span);
    const auto part = [](const std::string& name, const Layout& layout, const FactorTile& tile, int64_t line_of,
                         int64_t k) {
      const int64_t elements = descriptor_start(layout, tile, line_of, k) - descriptor_start(layout, tile, 0, 0);
      return elements == 0 ? name : fmt::format("{} + {}", name, elements * tile.bits / 128);
    };
    const auto part_of_a = [&](int64_t i, int64_t l) {
      if (!registers) return part(of_a, *a, left, product.first_row(i, 0), l * shape.depth());
      const int64_t words = (i * product.depths + l) * 4;
      return words == 0 ? of_a : fmt::format("{} + {}", of_a, words);
    };
    line("helve_fence_products();", s.span);
    for (int64_t l = 0; l < product.depths; ++l) {
      for (int64_t i = 0; i < product.rows; ++i) {
        for (int64_t j = 0; j < product.columns; ++j) {
          const int64_t at = product.first_register(i, j);
          line(fmt::format("{}({}, {}, {}, {});", instruction.name(), at == 0 ? sums : fmt::format("{} + {}", sums, at),
                           part_of_a(i, l), part(of_b, *b, right, j * product.n, l * shape.depth()),
                           int{l > 0 || !*s.clears()}),
               s.span);
        }
      }
    }
  });
}

/// A product's A in registers is put into words in front of the last fence before it.
void KernelEmitter::find_products() {
  const TileOp* fence = nullptr;
  walk(source_.stmt->body, [&](const Stmt& s) {
    const TileOp* op = as<TileOp>(s);
    if (op && op->op == TileOpcode::WgmmaFence) fence = op;
    if (!op || !op->begins_product()) return;
    const GroupOperands operands = group_operands(*op);
    const std::pair found(operands.c.buffer.get(), operands.product().registers());
    if (std::find(sums_.begin(), sums_.end(), found) == sums_.end()) sums_.push_back(found);
    if (!operands.in_registers()) return;
    HELVE_CHECK(fence, "a product of registers without a fence before it");
    std::vector<const Buffer*>& packed = packed_[fence];
    const Buffer* factor = operands.a.buffer.get();
    if (std::find(packed.begin(), packed.end(), factor) == packed.end()) packed.push_back(factor);
    words_[factor] = {};
  });
}

/// The words of a fragment that is a factor.
void KernelEmitter::declare_words(const Buffer& factor, const Span& span) {
  const auto found = words_.find(&factor);
  if (found == words_.end()) return;
  found->second = names_.fresh(factor.name + "_words");
  line(fmt::format("unsigned int {}[{}];", found->second, word_count(factor)), span);
}

int64_t KernelEmitter::word_count(const Buffer& factor) { return *int_value(factor.shape[1]) * factor.dtype.bits / 32; }

/// The sums of all products whose registers are declared here.
void KernelEmitter::hold_sums(const Span& span) {
  for (const auto& [sums, count] : sums_) {
    if (!names_.known(sums)) continue;
    line(fmt::format("helve_hold_registers<{}>({});", count, names_.of(sums, sums->name)), span);
  }
}

/// Registers stand still from here on. The machine's fence is at the begin of each product: where it stood in front of
/// a loop, ptxas put further ones into that (C7519).
void KernelEmitter::fence_products(const TileOp& s) {
  need(kGroupProduct);
  hold_sums(s.span);
  if (const auto found = packed_.find(&s); found != packed_.end()) {
    need("pack_registers");
    for (const Buffer* factor : found->second) {
      const std::string &words = words_.at(factor), &elements = names_.of(factor, factor->name);
      const int64_t count = word_count(*factor);
      line(fmt::format("helve_pack_registers<{}>({}, {});", count, words, elements), s.span);
      line(fmt::format("helve_hold_registers<{}>({});", count, words), s.span);
    }
  }
}

void KernelEmitter::commit_products(const TileOp& s) {
  need(kGroupProduct);
  line("helve_commit_products();", s.span);
}

void KernelEmitter::wait_for_products(const TileOp& s) {
  need(kGroupProduct);
  line(fmt::format("helve_wait_for_products<{}>();", s.pending()), s.span);
  hold_sums(s.span);
}

}  // namespace helve::cuda
