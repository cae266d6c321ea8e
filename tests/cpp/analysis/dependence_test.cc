// Dependences next to the order of a run.
#include "helve/analysis/dependence.h"

#include <gtest/gtest.h>

#include "analysis/random_nests.h"
#include "analysis/run_order.h"
#include "helve/arith/relation_algebra.h"
#include "helve/ir/expr/chain.h"
#include "helve/print/printer.h"

namespace helve::testing {
namespace {

using Tuple = std::vector<int64_t>;
using TuplePairs = std::set<std::pair<Tuple, Tuple>>;

/// The pairs of instances of two statements that conflict, in the order of the run.
std::map<std::pair<size_t, size_t>, TuplePairs> pairs_of_run(const std::vector<Ran>& ran) {
  std::map<std::pair<size_t, size_t>, TuplePairs> out;
  for (size_t i = 0; i < ran.size(); ++i) {
    for (size_t k = i + 1; k < ran.size(); ++k) {
      if (conflict(ran[i], ran[k]) && !have_no_order(ran[i], ran[k])) {
        out[{ran[i].visit, ran[k].visit}].emplace(ran[i].at, ran[k].at);
      }
    }
  }
  return out;
}

IntegerRelation relation_with(const ExactEngine& engine, const TuplePairs& pairs, size_t arity, size_t images) {
  std::vector<VarRef> tuple;
  for (size_t d = 0; d < arity + images; ++d) tuple.push_back(make_var("t"));
  std::vector<Expr> points;
  for (const auto& [a, b] : pairs) {
    std::vector<Expr> all = {bool_imm(true)};
    for (size_t d = 0; d < tuple.size(); ++d) {
      all.push_back(apply(Op::Eq, {Expr(tuple[d]), int_imm(d < arity ? a[d] : b[d - arity])}));
    }
    points.push_back(conjunction(all));
  }
  const Expr any = points.empty() ? bool_imm(false) : chain(Op::Or, points);
  return relation_of(IntegerSet(engine, tuple, any), arity);
}

/// All dependences of the region are those of its run, and the other way round. Returns how many pairs of instances
/// they have.
size_t expect_those_of_run(const Function& f, const Stmt& region, const Assignment& around = {}) {
  const ExactEngine engine(10'000'000);
  const Dependences found = dependences(f, region, engine);
  auto expected = pairs_of_run(RegionRun(region, around).ran);
  size_t count = 0;
  for (const auto& [key, pairs] : expected) count += pairs.size();
  std::map<std::pair<size_t, size_t>, IntegerRelation> unions;
  for (const Dependence& each : found.list) {
    const std::pair key(found.statements[each.first].visit, found.statements[each.second].visit);
    const std::optional<IntegerRelation>& pairs = found.pairs(each);
    if (!pairs) continue;
    EXPECT_EQ(pairs->inexact(), "");
    const auto known = unions.find(key);
    if (known == unions.end()) {
      unions.emplace(key, *pairs);
    } else {
      known->second = union_of(known->second, *pairs);
    }
  }
  for (const auto& [key, relation] : unions) {
    const TuplePairs& pairs = expected[key];
    const IntegerRelation run = relation_with(engine, pairs, relation.tuple().size(), relation.image().size());
    EXPECT_EQ(run.is_equal(relation).verdict, Verdict::Proved)
        << "statements " << key.first << " and " << key.second << " of\n"
        << print(f.body);
    expected.erase(key);
  }
  for (const auto& [key, pairs] : expected) {
    EXPECT_TRUE(pairs.empty()) << "statements " << key.first << " and " << key.second << " of\n" << print(f.body);
  }
  return count;
}

class RandomNests : public ::testing::TestWithParam<uint32_t> {};
TEST_P(RandomNests, HaveTheDependencesOfTheirRuns) {
  const uint32_t count = long_tests() ? 200 : 20;
  size_t pairs = 0;
  for (uint32_t n = 0; n < count && !HasFailure(); ++n) {
    const FunctionRef f = RandomNest(GetParam() * 1000 + n).make();
    pairs += expect_those_of_run(*f, f->body);
  }
  EXPECT_GT(pairs, count) << "programs that ask something";
}
INSTANTIATE_TEST_SUITE_P(Dependence, RandomNests, ::testing::Range(0u, 10u));

}  // namespace
}  // namespace helve::testing
