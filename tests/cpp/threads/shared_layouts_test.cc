// Layouts of shared memory: chosen where a warp's accesses meet in a bank, and then they no longer do.
#include "helve/threads/shared_layouts.h"

#include <set>

#include "helve/threads/divide.h"
#include "ir/tensor/programs/build_ir.h"
#include "transform/run_pass.h"

namespace helve::testing {
namespace {

/// One warp writes the rows of S and reads them, or with `columns` its columns.
Stmt transpose_block(const BufferRef& s, bool columns) {
  const BufferRef a = param("A", kFloat32, {32, 32}), b = param("B", kFloat32, {32, 32});
  const auto all_rows = [](const std::function<Stmt(const Expr& row, const Expr& tx)>& body) {
    return thread_loop(32, [&](const Expr& tx) {
      const VarRef r = make_var("r");
      return for_loop(LoopKind::Unroll, r, idx(32), body(Expr(r), tx));
    });
  };
  const Stmt fill = all_rows([&](const Expr& r, const Expr& tx) { return store(s, {r, tx}, load(a, {r, tx})); });
  const Stmt drain = all_rows(
      [&](const Expr& r, const Expr& tx) { return store(b, {r, tx}, columns ? load(s, {tx, r}) : load(s, {r, tx})); });
  return kernel({make_var("b")}, {idx(1)}, 32, seq({alloc(s), fill, tile_op(TileOpcode::SyncThreads, {}), drain}));
}

TEST(SharedLayouts, RowsStayAsTheyAre) {
  const Stmt block = transpose_block(shared("S", kFloat32, {32, 32}), false);
  EXPECT_TRUE(choose_shared_layouts(*as<Kernel>(block), any_gpu()).empty());
}

TEST(SharedLayouts, ColumnsComeApart) {
  const BufferRef s = shared("S", kFloat32, {32, 32});
  const Stmt block = transpose_block(s, true);
  const std::vector<SharedLayout> chosen = choose_shared_layouts(*as<Kernel>(block), any_gpu());
  ASSERT_EQ(chosen.size(), 1u);
  EXPECT_EQ(chosen[0].buffer, s);
  EXPECT_FALSE(chosen[0].reason.empty());
  const std::vector<int64_t> shape = {32, 32};
  std::set<int64_t> addresses;
  for (int64_t i = 0; i < 32; ++i) {
    std::set<int64_t> row_banks, column_banks;
    for (int64_t j = 0; j < 32; ++j) {
      row_banks.insert(chosen[0].layout.apply({i, j}, shape).front().at(axes::m()) % 32);
      column_banks.insert(chosen[0].layout.apply({j, i}, shape).front().at(axes::m()) % 32);
      addresses.insert(chosen[0].layout.apply({i, j}, shape).front().at(axes::m()));
    }
    EXPECT_EQ(row_banks.size(), 32u) << i;
    EXPECT_EQ(column_banks.size(), 32u) << i;
  }
  EXPECT_EQ(addresses.size(), 1024u);
}

}  // namespace
}  // namespace helve::testing
