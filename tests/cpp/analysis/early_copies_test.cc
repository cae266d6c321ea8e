// Which copies of a loop can begin before their iteration, and why not the others.
#include "helve/analysis/early_copies.h"

#include <gtest/gtest.h>

#include "ir/tensor/programs/build_ir.h"

namespace helve::testing {
namespace {

class EarlyCopies : public ::testing::Test {
 protected:
  const BufferRef a = param("A", kInt32, {8, 4}), b = param("B", kInt32, {4}), n = param("n", kInt32, {8});
  const BufferRef x = shared("X", kInt32, {4}), y = shared("Y", kInt32, {4}), wide = shared("W", kInt32, {8, 4});
  const VarRef k = make_var("k"), v = make_var("v"), c = make_var("c", kInt32);

  static Stmt copy(const Region& from, const Region& to) {
    return tile_op(TileOpcode::Copy, {from, to, int_imm(0, kInt32)});
  }
  Region row(const Expr& at) const { return box(a, {{at, -1}, {idx(0), 4}}); }
  Stmt first() const { return copy(row(Expr(k)), whole_region(x)); }
  Stmt use(const BufferRef& from) const { return store(b, {idx(0)}, load(from, {idx(1)})); }

  /// The verdicts on the copies of the loop, joined by "; ": the position, and the reason where there is one.
  std::string verdicts(std::vector<Stmt> body, std::vector<Stmt> before = {}, std::vector<Stmt> after = {},
                       std::vector<MayAlias> may_alias = {}) const {
    const Stmt loop = for_loop(LoopKind::Pipelined, {k}, {idx(0)}, {idx(8)}, seq(std::move(body)), 2);
    std::vector<Stmt> all = {alloc(x), alloc(y), alloc(wide)};
    all.insert(all.end(), before.begin(), before.end());
    all.push_back(loop);
    all.insert(all.end(), after.begin(), after.end());
    Ref<Function> f = make_ref<Function>(*function("main", {a, b, n}, one_block(std::move(all))));
    f->may_alias = std::move(may_alias);
    std::string out;
    for (const EarlyCopy& each : early_copies(*as<For>(loop), access_model(f->body), f->may_alias)) {
      out += (out.empty() ? "" : "; ") + std::to_string(each.position);
      if (!each.reason.empty()) out += ": " + each.reason;
    }
    return out;
  }
};

TEST_F(EarlyCopies, ACopyThatItsIterationAloneUses) {
  EXPECT_EQ(verdicts({first(), use(x)}), "0");
  EXPECT_EQ(verdicts({first(), copy(row(idx(7) - Expr(k)), whole_region(y)), use(x), use(y)}), "0; 1");
  EXPECT_EQ(verdicts({use(y)}), "");
  EXPECT_EQ(verdicts({if_then(less(Expr(k), idx(4)), first()), use(x)}),
            "0: it is under a condition or in a loop of the body");  // not at the top of the body
}

TEST_F(EarlyCopies, FromATensorToBlockMemory) {
  EXPECT_EQ(verdicts({copy(whole_region(y), whole_region(x)), use(x)}), "0: 'Y' is no global tensor");
  EXPECT_EQ(verdicts({copy(row(Expr(k)), whole_region(b))}), "0: 'B' is no shared memory");
  const BufferRef own = shared("Z", kInt32, {4});
  EXPECT_EQ(verdicts({alloc(own), copy(row(Expr(k)), whole_region(own))}), "1: 'Z' is allocated in the loop");
}

TEST_F(EarlyCopies, TheLoopLeavesTheSourceAlone) {
  const Stmt write = store(a, {idx(0), idx(0)}, int_imm(1, kInt32));
  EXPECT_EQ(verdicts({first(), write}), "0: 'A' is written in the loop");
  EXPECT_EQ(verdicts({first(), use(x)}, {}, {}, {MayAlias{{a, b}, {}, {}}}), "0: 'A' is written in the loop");
  EXPECT_EQ(verdicts({first(), use(x)}, {write}), "0");
}

TEST_F(EarlyCopies, NothingElseWritesOrUsesTheDestination) {
  const Stmt change = store(x, {idx(0)}, int_imm(1, kInt32));
  EXPECT_EQ(verdicts({first(), change}), "0: 'X' is written elsewhere in the loop");
  EXPECT_EQ(verdicts({use(x), first()}), "1: 'X' is used in front of the copy");
  EXPECT_EQ(verdicts({first(), use(x)}, {change}), "0: 'X' is used outside of the loop");
  EXPECT_EQ(verdicts({first(), use(x)}, {}, {use(x)}), "0: 'X' is used outside of the loop");
}

TEST_F(EarlyCopies, TheLoopsOwnBoundsStandOutsideOfIt) {
  const Expr count = cast(load(x, {idx(0)}), kIndex);
  const Stmt loop = for_loop(LoopKind::Pipelined, {k}, {idx(0)}, {count}, seq({first(), use(x)}), 2);
  const FunctionRef f = function("main", {a, b, n}, one_block({alloc(x), loop}));
  const std::vector<EarlyCopy> found = early_copies(*as<For>(loop), access_model(f->body), {});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].reason, "'X' is used outside of the loop");
}

TEST_F(EarlyCopies, EveryIterationFillsTheSamePlace) {
  const Region place = box(wide, {{Expr(k), -1}, {idx(0), 4}}), same = box(wide, {{idx(3), -1}, {idx(0), 4}});
  EXPECT_EQ(verdicts({copy(row(Expr(k)), place), use(x)}), "0: iterations fill different places of 'W'");
  EXPECT_EQ(verdicts({copy(row(Expr(k)), same), use(x)}), "0");
}

TEST_F(EarlyCopies, ItsOperandsAreKnownWhenTheLoopBegins) {
  const Expr element = load(n, {Expr(k)});
  // A name is as good as its value, unless the loop changes what it reads.
  EXPECT_EQ(verdicts({bind(v, Expr(k) + idx(1)), copy(row(Expr(v)), whole_region(x)), use(x)}), "1");
  const Stmt named = copy(row(cast(Expr(c), kIndex)), whole_region(x)), change = store(n, {idx(0)}, int_imm(1, kInt32));
  EXPECT_EQ(verdicts({bind(c, element), named, use(x)}), "1");
  EXPECT_EQ(verdicts({bind(c, element), named, use(x), change}), "1: its operands use 'c', which is read in the loop");
  EXPECT_EQ(verdicts({copy(row(cast(element, kIndex)), whole_region(x)), use(x)}), "0");
  EXPECT_EQ(verdicts({copy(row(cast(element, kIndex)), whole_region(x)), store(n, {idx(0)}, int_imm(1, kInt32))}),
            "0: its operands use 'n', which is written in the loop");
}

TEST_F(EarlyCopies, NoValuesAreExchangedMeanwhile) {
  const auto exchange = [&](const BufferRef& src, const BufferRef& dst) {
    return tile_op(TileOpcode::CommAllReduce,
                   {whole_region(src), whole_region(dst), std::string("sum"), std::string("all")});
  };
  EXPECT_EQ(verdicts({first(), exchange(x, y)}), "0: cores exchange values of 'X' in the loop");
  EXPECT_EQ(verdicts({first(), use(x), exchange(y, y)}), "0");
}

TEST_F(EarlyCopies, ACopyIsGivenInTermsOfWhatStandsAroundTheLoop) {
  const Stmt loop = for_loop(LoopKind::Pipelined, {k}, {idx(0)}, {idx(8)},
                             seq({bind(v, Expr(k) + idx(1)), copy(row(Expr(v)), whole_region(x)), use(x)}), 2);
  const FunctionRef f = function("main", {a, b, n}, one_block({alloc(x), loop}));
  const std::vector<EarlyCopy> found = early_copies(*as<For>(loop), access_model(f->body), {});
  ASSERT_EQ(found.size(), 1u);
  const Apply* begin = as_op(found[0].op->region(0).ranges[0].begin, Op::Add);
  ASSERT_TRUE(begin);
  EXPECT_EQ(begin->args[0], Expr(k));
}

}  // namespace
}  // namespace helve::testing
