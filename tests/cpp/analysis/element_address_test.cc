// Where elements are: addresses in shared memory, and vectors that a swizzle keeps.
#include "helve/analysis/element_address.h"

#include <gtest/gtest.h>

#include "helve/arith/simplify.h"
#include "helve/ir/expr/build.h"
#include "helve/ir/expr/visit.h"
#include "helve/layout/notation.h"
#include "ir/tensor/programs/build_ir.h"

namespace helve::testing {
namespace {

TEST(ElementAddress, IsWhatTheLayoutSays) {
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
      const Address address = address_of(*buffer, {Expr(i), Expr(j)}, facts);
      for (int64_t row = 0; row < 8; ++row) {
        for (int64_t column = 0; column < 32; ++column) {
          for (const Expr& form : {address.swizzled(), address.swizzled(facts), address.swizzled_by_digits(facts)}) {
            const Expr at = substitute(form, {{i.get(), idx(row)}, {j.get(), idx(column)}});
            EXPECT_EQ(constant_value(at),
                      layout.apply({row, column}, std::vector<int64_t>{8, 32}).front().at(axes::m()))
                << to_string(layout) << " at " << row << ", " << column;
          }
        }
      }
    }
  }
}

TEST(ElementAddress, HasWhatTheSwizzleLeavesAloneOutsideOfIt) {
  const VarRef i = make_var("i"), j = make_var("j");
  Facts facts;
  facts.bind_loop(i, idx(0), idx(8));
  facts.bind_loop(j, idx(0), idx(32));
  const Address address{Expr(i) * idx(32) + Expr(j), Swizzle{3, 2, 3}};
  EXPECT_TRUE(as_op(address.swizzled(), Op::BitXor));
  EXPECT_FALSE(as_op(address.swizzled(facts), Op::BitXor));
  EXPECT_TRUE(as_op(address.swizzled(Facts()), Op::BitXor));  // j may be beyond a row
}

/// The number of a thread is a part of several digits.
TEST(ElementAddress, IsDividedWhereATermReachesBeyondTheBitsThatChange) {
  const VarRef i = make_var("i"), k = make_var("k");
  Facts facts;
  facts.bind_loop(i, idx(0), idx(128));
  facts.bind_loop(k, idx(0), idx(4));
  for (const Swizzle& swizzle : {Swizzle{3, 2, 3}, Swizzle{2, 0, 4}, Swizzle{3, 2, 1}, Swizzle{2, 1, -2}}) {
    const Address address{Expr(k) * idx(512) + Expr(i) * idx(4) + idx(3), swizzle};
    if (swizzle == Swizzle{3, 2, 3}) {
      EXPECT_TRUE(as_op(address.swizzled(facts), Op::BitXor));
      EXPECT_FALSE(as_op(address.swizzled_by_digits(facts), Op::BitXor));
    }
    for (int64_t n = 0; n < 512; ++n) {
      const auto at = [&](const Expr& form) {
        return constant_value(substitute(form, {{i.get(), idx(n % 128)}, {k.get(), idx(n / 128)}}));
      };
      EXPECT_EQ(at(address.swizzled_by_digits(facts)), at(address.swizzled())) << n;
    }
  }
}

TEST(ElementAddress, KeepsVectorsUpToTheUnitOfItsSwizzle) {
  const Address address{idx(0), Swizzle{3, 2, 3}};
  EXPECT_TRUE(address.keeps(4));
  EXPECT_FALSE(address.keeps(8));
  EXPECT_TRUE((Address{idx(0), {}}).keeps(8));
}

}  // namespace
}  // namespace helve::testing
