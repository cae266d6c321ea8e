// Neighbouring loops become one where iterations that differ touch different elements, and only there.
#include "run_pass.h"

namespace helve::testing {
namespace {

constexpr int64_t kExtent = 6;

/// A subscript: step * v + offset.
struct Place {
  int64_t step, offset;
  Expr at(const Expr& v) const { return v * idx(step) + idx(offset); }
};

/// Loops over v: the first writes X[write], the second reads X[read] and X[also] into B[v].
FunctionRef two_loops(const Place& write, const Place& read, const Place& also) {
  const BufferRef a = param("A", kInt32, {kExtent}), b = param("B", kInt32, {kExtent}), x = param("X", kInt32, {64});
  const auto loop = [&](const std::function<Stmt(const Expr&)>& body) {
    const VarRef v = make_var("v");
    return for_loop(LoopKind::Serial, v, idx(kExtent), body(Expr(v)));
  };
  return function(
      "main", {a, x, b},
      kernel({make_var("k")}, {idx(1)}, 32,
             seq({loop([&](const Expr& v) { return store(x, {write.at(v)}, load(a, {v})); }),
                  loop([&](const Expr& v) { return store(b, {v}, load(x, {read.at(v)}) + load(x, {also.at(v)})); })})));
}

bool fuses(const Place& write, const Place& read, const Place& also) {
  const FunctionRef f = two_loops(write, read, also);
  return fuse_loops(f, {}) != f;
}

TEST(FuseLoops, IterationsHaveElementsOfTheirOwn) {
  EXPECT_TRUE(fuses({1, 0}, {1, 0}, {1, 0}));
  EXPECT_TRUE(fuses({-1, 5}, {-1, 5}, {-1, 5}));
  EXPECT_TRUE(fuses({2, 0}, {2, 1}, {2, 0}));
  EXPECT_TRUE(fuses({-3, 20}, {-3, 22}, {-3, 21}));
}

TEST(FuseLoops, LoopsThatPassValuesOnStayApart) {
  EXPECT_FALSE(fuses({1, 0}, {1, 1}, {1, 1}));
  EXPECT_FALSE(fuses({2, 0}, {2, 2}, {2, 0}));
  EXPECT_FALSE(fuses({1, 0}, {-1, 5}, {-1, 5}));
  EXPECT_FALSE(fuses({0, 3}, {0, 3}, {0, 3}));
}

TEST(FuseLoops, RandomLoopsComputeTheSame) {
  std::mt19937 random(11);
  const auto number = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  int fused = 0;
  for (int round = 0; round < 400; ++round) {
    const int64_t step = number(-4, 4);
    const auto place = [&] { return Place{number(0, 5) ? step : number(-4, 4), number(24, 28)}; };
    const FunctionRef f = two_loops(place(), place(), place());
    fused += fuse_loops(f, {}) != f;
    expect_same_results(fuse_loops, f);
  }
  EXPECT_GT(fused, 30);
  EXPECT_LT(fused, 300);
}

}  // namespace
}  // namespace helve::testing
