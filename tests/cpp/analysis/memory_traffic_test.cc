// Which tensors may be written around the caches, and what can be fetched early.
#include "helve/analysis/element_address.h"
#include "helve/analysis/memory_traffic.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "helve/ir/expr/text.h"
#include "ir/tensor/programs/build_ir.h"

namespace helve::testing {
namespace {

const VarRef b = make_var("b"), t = make_var("t");

const Kernel& kernel_of(const Stmt& s) { return *as<Kernel>(s); }
Stmt blocks(std::vector<Stmt> body) { return kernel({b}, {idx(4)}, 128, seq(std::move(body))); }

/// for v: for l in vectorized(8): body(v * 8 + l)
Stmt nest(const std::function<Stmt(const Expr&)>& body, int64_t vectors = 8) {
  const VarRef v = make_var("v"), l = make_var("l");
  return serial(v, idx(vectors), {for_loop(LoopKind::Vectorized, l, idx(8), body(Expr(v) * idx(8) + l))});
}

TEST(StreamedParams, WrittenOnceAndNeverRead) {
  const BufferRef x = param("X", kFloat32, {4, 64}), y = param("Y", kFloat32, {4, 64}), z = param("Z", kFloat32, {64});
  const auto streams = [&](const Stmt& s) { return streamed_params(kernel_of(s)).contains(y.get()); };
  const auto write = [&](const Expr& row) {
    return nest([&](const Expr& at) { return store(y, {row, at}, load(x, {b, at})); });
  };
  EXPECT_TRUE(streams(blocks({write(b)})));
  EXPECT_TRUE(streams(blocks({bind(t, Expr(b)), write(t)}))) << "through a name";
  EXPECT_FALSE(streams(blocks({write(idx(1))}))) << "all blocks write one row";
  EXPECT_FALSE(streams(blocks({serial(t, idx(3), {write(b)})}))) << "written in each iteration";
  EXPECT_TRUE(streams(blocks({serial(t, idx(1), {write(b)})})));
  const Expr last = less(Expr(b), idx(3));
  EXPECT_TRUE(streams(blocks({if_then(last, write(b), write(idx(3)))}))) << "one block goes the other way";
  EXPECT_FALSE(streams(blocks({if_then(less(Expr(b), idx(2)), write(b), write(idx(3)))}))) << "two blocks do";
  EXPECT_FALSE(streams(blocks({if_then(less(load(z, {Expr(b)}), f32(1)), write(b), write(idx(3)))})));
  EXPECT_FALSE(streams(blocks({write(b), store(z, {Expr(b)}, load(y, {b, idx(0)}))}))) << "read";
  EXPECT_FALSE(streams(blocks({while_loop(less(load(z, {idx(0)}), f32(1)), write(b))})));
  EXPECT_FALSE(streamed_params(kernel_of(blocks({write(b)}))).contains(x.get()));
}

TEST(StreamedParams, ALoopWhoseNamedCountIsOne) {
  const BufferRef y = param("Y", kFloat32, {4});
  const VarRef count = make_var("count"), r = make_var("r");
  const Stmt rows =
      seq({bind(count, max(idx(1) - Expr(t) * idx(2), idx(0))), serial(r, Expr(count), {store(y, {Expr(t)}, f32(1))})});
  EXPECT_TRUE(streamed_params(kernel_of(kernel({b}, {idx(1)}, 128, serial(t, idx(4), {rows})))).contains(y.get()));
}

TEST(StreamedParams, StartsOfVectorsAreMultiples) {
  const VarRef l = make_var("l"), v = make_var("v"), n = make_var("n");
  EXPECT_TRUE(starts_aligned(Expr(v) * idx(8) + l, l.get(), 4));
  EXPECT_TRUE(starts_aligned(Expr(v) * Expr(n) * idx(4) + l + idx(12), l.get(), 4));
  EXPECT_FALSE(starts_aligned(Expr(v) * idx(8) + l + idx(2), l.get(), 4));
  EXPECT_FALSE(starts_aligned(Expr(v) * Expr(n) + l, l.get(), 4));
  EXPECT_FALSE(starts_aligned(Expr(v) * idx(6) + l, l.get(), 4));
}

/// X is read once or twice a block, Y is written.
struct Reads {
  BufferRef x, y = param("Y", kFloat32, {4, 64}), s = shared("s", kFloat32, {64});
  explicit Reads(std::vector<int64_t> shape = {4, 64}) : x(param("X", kFloat32, std::move(shape))) {}
  Stmt sum(const Expr& row, int64_t vectors = 8) const {
    return nest([&](const Expr& at) { return store(s, {at}, load(s, {at}) + load(x, {row, at})); }, vectors);
  }
  Stmt scale(const Expr& row, int64_t vectors = 8) const {
    return nest([&](const Expr& at) { return store(y, {row, at}, load(x, {row, at}) * load(s, {idx(0)})); }, vectors);
  }
};

TEST(EarlyReads, TheSecondReadingFetchesTheNextBlock) {
  const Reads r;
  const Stmt body = blocks({alloc(r.s), r.sum(b), r.scale(b)});
  const std::vector<EarlyRead> reads = early_reads(kernel_of(body));
  ASSERT_EQ(reads.size(), 1u);
  EXPECT_EQ(reads[0].buffer, r.x);
  const For* last = as<For>(as<Seq>(kernel_of(body).body)->stmts[2]);
  EXPECT_EQ(reads[0].loop, as<For>(last->body));
  EXPECT_EQ(to_text(reads[0].indices[0]), "b + 1");
}

TEST(EarlyReads, OrTheNextIterationOfTheLoopAround) {
  const Reads r({12, 64});
  const Expr row = Expr(b) * idx(3) + t;
  const std::vector<EarlyRead> reads =
      early_reads(kernel_of(blocks({alloc(r.s), serial(t, idx(3), {r.sum(row), r.scale(row)})})));
  ASSERT_EQ(reads.size(), 1u);
  EXPECT_EQ(to_text(reads[0].indices[0]), "b * 3 + t + 1");
}

TEST(EarlyReads, NotWhereItCannotPay) {
  const Reads r, wide({4, 1 << 20});
  const auto none = [](const Stmt& s) { return early_reads(kernel_of(s)).empty(); };
  EXPECT_TRUE(none(blocks({alloc(r.s), r.scale(b)}))) << "read once";
  EXPECT_TRUE(none(blocks({alloc(r.s), r.sum(b), r.scale(b, 4)}))) << "other elements";
  EXPECT_TRUE(none(blocks({alloc(r.s), r.sum(idx(1)), r.scale(idx(1))}))) << "the same for every block";
  EXPECT_TRUE(none(blocks({alloc(wide.s), wide.sum(b, 1 << 17), wide.scale(b, 1 << 17)}))) << "does not fit";
  EXPECT_TRUE(none(blocks({alloc(r.s), nest([&](const Expr& at) {
                             return store(r.y, {b, at}, load(r.x, {b, at}) * load(r.x, {b, at}));
                           })})))
      << "twice in one loop";
}

TEST(EarlyReads, NotOfARowThatATableNames) {
  // What the last block's successor would find in the table lies behind its end.
  const Reads r({4096, 64});
  const BufferRef table = param("T", kInt32, {4});
  const Expr row = cast(load(table, {Expr(b)}), kIndex);
  const auto of_x = [&](const Stmt& s) {
    const std::vector<EarlyRead> reads = early_reads(kernel_of(s));
    return std::count_if(reads.begin(), reads.end(), [&](const EarlyRead& each) { return each.buffer == r.x; });
  };
  EXPECT_EQ(of_x(blocks({alloc(r.s), r.sum(b), r.scale(b)})), 1);
  EXPECT_EQ(of_x(blocks({alloc(r.s), r.sum(row), r.scale(row)})), 0);
  EXPECT_EQ(of_x(blocks({alloc(r.s), bind(t, row), r.sum(t), r.scale(t)})), 0);
}

TEST(EarlyReads, ShortRowsAreFetchedAhead) {
  // Rows of 256 bytes: 16 ahead, and past the end of the tile the first rows of the next one.
  const BufferRef x = param("X", kFloat32, {1024, 1024}), y = param("Y", kFloat32, {1024, 1024}),
                  small = param("Z", kFloat32, {64, 256});
  const VarRef i = make_var("i"), j = make_var("j");
  const auto tile = [&](const BufferRef& from, int64_t rows, int64_t vectors, const VarRef& row) {
    const Stmt copy =
        nest([&](const Expr& at) { return store(y, {row, b * idx(64) + at}, load(from, {row, b * idx(64) + at})); },
             vectors);
    return blocks({for_loop(LoopKind::Parallel, row, idx(rows), copy)});
  };
  const Stmt body = tile(x, 64, 8, i);
  const std::vector<EarlyRead> reads = early_reads(kernel_of(body));
  ASSERT_EQ(reads.size(), 1u);
  EXPECT_EQ(to_text(reads[0].indices[0]), "(i + 16) % 64");
  EXPECT_EQ(to_text(reads[0].indices[1]), "(b + (i + 16) // 64) * 64 + (v * 8 + l)");
  EXPECT_TRUE(early_reads(kernel_of(tile(small, 64, 8, j))).empty()) << "stays in the cache";
  EXPECT_TRUE(early_reads(kernel_of(tile(x, 31, 8, make_var("k")))).empty()) << "too few rows";
}

}  // namespace
}  // namespace helve::testing
