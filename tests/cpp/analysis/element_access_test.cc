// Which accesses of one buffer touch the same element.
#include "helve/analysis/element_access.h"

#include <gtest/gtest.h>

#include "helve/ir/expr/text.h"
#include "ir/tensor/programs/build_ir.h"

namespace helve::testing {
namespace {

class Elements : public ::testing::Test {
 protected:
  const BufferRef x = shared("x", kFloat32, {64}), y = shared("y", kFloat32, {64}), n = param("n", kInt32, {8});
  const VarRef i = make_var("i"), k = make_var("k"), l = make_var("l");

  /// for i: for l in vectorized(8): part(i * 8 + l)
  Stmt nest(const std::function<Stmt(const Expr&)>& part, int64_t vectors = 8) const {
    return serial(i, idx(vectors), {for_loop(LoopKind::Vectorized, l, idx(8), part(Expr(i) * idx(8) + l))});
  }
  Stmt fill() const {
    return nest([&](const Expr& at) { return store(x, {at}, f32(1)); });
  }
  Stmt use() const {
    return nest([&](const Expr& at) { return store(y, {at}, load(x, {at})); });
  }

  /// "write i*8 + l; read ..." of x; "nothing" where some are no element accesses.
  std::string accesses(const Stmt& s) const {
    const AccessModel model = access_model(s);
    const auto found = element_accesses(model, *x);
    if (!found) return "nothing";
    std::string out;
    for (const ElementAccess& each : *found) {
      out += (out.empty() ? "" : "; ") + std::string(each.access->write ? "write" : "read");
      for (const Expr& index : each.indices) out += " " + to_text(index);
      for (const NestLoop& loop : each.loops) out += " for " + loop.var->name;
      if (each.opaque) out += " (opaque)";
    }
    return out;
  }

  /// The sizes of the classes; -1 where they are not known.
  std::vector<int> classes(const Stmt& s) const {
    const AccessModel model = access_model(s);
    const auto found = element_accesses(model, *x);
    const auto known = element_classes(model, *found, common_loops(*found), Facts{});
    if (!known) return {-1};
    std::vector<int> out;
    for (const ElementClass& each : *known) out.push_back(static_cast<int>(each.members.size()));
    return out;
  }
};

TEST_F(Elements, InOrderOfExecutionWithTheirLoops) {
  const auto add = [&](const Expr& at) { return store(x, {at}, load(x, {at}) + load(x, {idx(0)})); };
  EXPECT_EQ(accesses(nest(add)), "read i * 8 + l for i for l; read 0 for i for l; write i * 8 + l for i for l");
  EXPECT_EQ(accesses(use()), "read i * 8 + l for i for l");
}

TEST_F(Elements, NamesStandForTheirValuesUnlessTheseChange) {
  const Expr known = Expr(i) * idx(2), read = cast(load(n, {idx(0)}), kIndex);
  const Stmt change = store(n, {idx(0)}, int_imm(3, kInt32));
  EXPECT_EQ(accesses(seq({bind(k, known), store(x, {Expr(k)}, f32(1))})), "write i * 2");
  EXPECT_EQ(accesses(seq({bind(k, read), store(x, {Expr(k)}, f32(1)), change})), "write k (opaque)");
  EXPECT_EQ(accesses(seq({bind(k, read), store(x, {idx(1)}, cast(Expr(k), kFloat32)), change})), "write 1 (opaque)");
  const VarRef t = make_var("t", kFloat32);  // a name of a float stays, and what is made of it is not known
  EXPECT_EQ(accesses(seq({bind(t, load(y, {idx(0)})), bind(k, cast(Expr(t), kIndex)), store(x, {Expr(k)}, f32(1))})),
            "write " + to_text(cast(Expr(t), kIndex)) + " (opaque)");
}

TEST_F(Elements, NothingThatIsNotOnAStraightPath) {
  const Expr first = load(x, {idx(0)}), small = less(Expr(k), idx(3));
  EXPECT_EQ(accesses(if_then(small, fill())), "nothing");
  EXPECT_EQ(accesses(if_then(less(first, f32(3)), store(y, {idx(0)}, f32(1)))), "nothing");
  EXPECT_EQ(accesses(serial(i, cast(first, kIndex), {store(y, {idx(0)}, f32(1))})), "nothing");
  EXPECT_EQ(accesses(while_loop(small, fill())), "nothing");
  EXPECT_EQ(accesses(store(x, {idx(0)}, f32(1), {}, StoreMode::AtomicAdd)), "nothing");
  EXPECT_EQ(accesses(seq({fill(), tile_op(TileOpcode::SyncThreads, {})})), "nothing");
  EXPECT_EQ(accesses(seq({fill(), if_then(small, store(y, {idx(0)}, f32(1)))})), "write i * 8 + l for i for l");
  EXPECT_EQ(accesses(store(y, {idx(0)}, select(small, first, f32(0)))), "read 0") << "reading it anyway does no harm";
}

TEST_F(Elements, LoopsOfOneShapeTouchTheSameElements) {
  EXPECT_EQ(classes(seq({fill(), use()})), std::vector<int>{2});
  EXPECT_EQ(classes(seq({fill(), fill(), use()})), std::vector<int>{3}) << "two visits of one loop are two";
  const Stmt half = nest([&](const Expr& at) { return store(x, {at}, f32(1)); }, 4);
  EXPECT_EQ(classes(seq({half, use()})), std::vector<int>{-1}) << "some are elements of both";
  const Stmt reversed = nest([&](const Expr& at) { return store(y, {at}, load(x, {idx(63) - at})); });
  EXPECT_EQ(classes(seq({fill(), reversed})), std::vector<int>{-1});
}

TEST_F(Elements, SubscriptsThatMemoryDecidesAreComparedWhereNothingWritesIt) {
  const Expr read = cast(load(n, {Expr(i)}), kIndex);
  const Stmt body = seq({store(x, {read}, f32(1)), store(y, {Expr(i)}, load(x, {read}))});
  EXPECT_EQ(classes(serial(i, idx(8), {body})), std::vector<int>{2});
  EXPECT_EQ(classes(serial(i, idx(8), {body, store(n, {idx(0)}, int_imm(1, kInt32))})), std::vector<int>{-1});
}

}  // namespace
}  // namespace helve::testing
