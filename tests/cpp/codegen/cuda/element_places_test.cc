// Where the emitter puts elements: addresses in shared memory, and arrays that stay out of registers.
#include <gtest/gtest.h>

#include "helve/arith/simplify.h"
#include "helve/ir/expr/build.h"
#include "helve/ir/expr/visit.h"
#include "helve/layout/notation.h"
#include "indexed_arrays.h"
#include "ir/tensor/programs/build_ir.h"
#include "shared_address.h"

namespace helve::testing {
namespace {

TEST(SharedAddress, IsWhatTheLayoutSays) {
  for (const Swizzle& swizzle : {Swizzle{}, Swizzle{3, 2, 3}, Swizzle{2, 0, 4}}) {
    for (const Iters& shard : {Iters{{8, 36, axes::m()}, {32, 1, axes::m()}},  // padded rows
                               Iters{{2, 128, axes::m()}, {4, 8, axes::m()}, {4, 32, axes::m()}, {8, 1, axes::m()}}}) {
      const Layout layout(shard, {}, {}, swizzle);
      Ref<Buffer> buffer = make_ref<Buffer>(*shared("S", kFloat32, {8, 32}));
      buffer->layout = layout;
      const VarRef i = make_var("i"), j = make_var("j");
      Facts facts;
      facts.bind_loop(i, idx(0), idx(8));
      facts.bind_loop(j, idx(0), idx(32));
      const cuda::Address address = cuda::address_of(*buffer, {Expr(i), Expr(j)}, facts);
      for (int64_t row = 0; row < 8; ++row) {
        for (int64_t column = 0; column < 32; ++column) {
          const Expr at = substitute(address.swizzled(), {{i.get(), idx(row)}, {j.get(), idx(column)}});
          EXPECT_EQ(constant_value(at), layout.apply({row, column}, std::vector<int64_t>{8, 32}).front().at(axes::m()))
              << to_string(layout) << " at " << row << ", " << column;
        }
      }
    }
  }
}

TEST(SharedAddress, KeepsVectorsUpToTheUnitOfItsSwizzle) {
  const cuda::Address address{idx(0), Swizzle{3, 2, 3}};
  EXPECT_TRUE(address.keeps(4));
  EXPECT_FALSE(address.keeps(8));
  EXPECT_TRUE((cuda::Address{idx(0), {}}).keeps(8));
}

/// A thread fills an array in a loop of `extent` and reads its elements at `at` of the loop's variable.
bool stays_in_memory(DType dtype, LoopKind kind, int64_t extent, const std::function<Expr(const Expr&)>& at) {
  const BufferRef x = make_buffer("x", dtype, MemoryScope::Local, {idx(extent)});
  const BufferRef a = param("A", dtype, {extent});
  const VarRef i = make_var("i"), k = make_var("k");
  const Stmt fill = for_loop(LoopKind::Unroll, i, idx(extent), store(x, {Expr(i)}, load(a, {Expr(i)})));
  const Stmt read = for_loop(kind, k, idx(extent), store(a, {Expr(k)}, load(x, {at(Expr(k))})));
  return cuda::indexed_arrays(seq({alloc(x), fill, read}), 255).contains(x.get());
}

TEST(IndexedArrays, AreThoseWithSubscriptsThatOnlyTheRunKnows) {
  const DType half{TypeCode::Float, 16};
  const auto itself = [](const Expr& k) { return k; };
  EXPECT_FALSE(stays_in_memory(half, LoopKind::Serial, 8, itself));  // unrolled by the compiler
  EXPECT_TRUE(stays_in_memory(half, LoopKind::Serial, 24, itself));  // too long for that
  EXPECT_FALSE(stays_in_memory(half, LoopKind::Unroll, 24, itself));  // unrolled as the program says
  EXPECT_FALSE(stays_in_memory(kFloat32, LoopKind::Serial, 24, itself));  // a word is slow at worst
  const VarRef n = make_var("n");
  const auto shifted = [&](const Expr& k) { return floor_mod(k + Expr(n), idx(8)); };
  EXPECT_TRUE(stays_in_memory(half, LoopKind::Unroll, 8, shifted));
}

}  // namespace
}  // namespace helve::testing
