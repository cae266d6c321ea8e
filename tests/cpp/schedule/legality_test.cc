// The checker next to runs of the old and the new region.
#include "helve/schedule/legality.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "analysis/random_nests.h"
#include "helve/print/printer.h"
#include "rewrites.h"
#include "runs.h"

namespace helve::testing {
namespace {

struct Counts {
  int legal = 0, illegal = 0, unknown = 0;
};

void compare(uint32_t seed, bool plain, const VarRef& size, Counts& counts) {
  const FunctionRef f = RandomNest(seed, plain, size).make();
  RandomRewrite rewrite(seed, TreeOf::make(f->body));
  std::string steps;
  std::mt19937 random(seed);
  const int wanted = std::uniform_int_distribution<int>(1, 3)(random);
  for (int tries = 0, done = 0; tries < 60 && done < wanted; ++tries) {
    const std::string step = rewrite.step();
    done += !step.empty();
    steps += step.empty() ? "" : step + "; ";
  }
  const Rewritten after = rewritten(rewrite.tree());
  const ExactEngine engine(10'000'000);
  const Dependences before = dependences(*f, f->body, engine);
  const Legality found = check_rewrite(before, after.region, after.origins);
  const std::string program = "seed " + std::to_string(seed) + ": " + steps + "\n" + print(f->body) + "becomes\n" +
                              print(after.region) + "found " + std::string(to_string(found.verdict)) + " " +
                              text_of(found);
  if (found.verdict == Verdict::Unknown) {
    ++counts.unknown;
    ADD_FAILURE() << program;
    return;
  }
  const auto at = [&](int64_t n) { return Runs(f->body, after, size ? Assignment{{size.get(), n}} : Assignment{}); };
  if (found.verdict == Verdict::Refuted) {
    ++counts.illegal;
    const std::optional<int64_t> n = size ? value_in(found.given, size.get()) : std::nullopt;
    EXPECT_TRUE(at(n.value_or(2)).confirms(before, found)) << program;
    return;
  }
  ++counts.legal;
  for (int64_t n = 0; n < (size ? 6 : 1); ++n) EXPECT_TRUE(at(n).legal()) << program;
}

/// What dependences remember of one rewrite must not decide another one: one list is asked of many, each of which is a
/// step away from the one before.
class ManyRewrites : public ::testing::TestWithParam<uint32_t> {};
TEST_P(ManyRewrites, OfOneRegionHaveTheVerdictsThatTheyHaveAlone) {
  const uint32_t count = long_tests() ? 200 : 12;
  int legal = 0, illegal = 0;
  for (uint32_t n = 0; n < count; ++n) {
    const uint32_t seed = GetParam() * 1000 + n;
    const FunctionRef f = RandomNest(seed, n % 2 == 0, n % 3 == 0 ? make_var("n") : VarRef()).make();
    const Dependences shared = dependences(*f, f->body, ExactEngine(10'000'000));
    RandomRewrite rewrite(seed, TreeOf::make(f->body));
    for (int tries = 0; tries < 12; ++tries) {
      const std::string step = rewrite.step();
      if (step.empty()) continue;
      const Rewritten after = rewritten(rewrite.tree());
      const Legality found = check_rewrite(shared, after.region, after.origins);
      const Dependences own = dependences(*f, f->body, ExactEngine(10'000'000));
      const Legality alone = check_rewrite(own, after.region, after.origins);
      EXPECT_EQ(to_string(found.verdict), to_string(alone.verdict)) << "seed " << seed << ": " << step;
      EXPECT_EQ(text_of(found), text_of(alone)) << "seed " << seed << ": " << step;
      (alone.verdict == Verdict::Proved ? legal : illegal) += 1;
    }
  }
  EXPECT_GT(legal, 5);
  EXPECT_GT(illegal, 5);
}
INSTANTIATE_TEST_SUITE_P(Legality, ManyRewrites, ::testing::Range(0u, 5u));

class RandomRewrites : public ::testing::TestWithParam<uint32_t> {};
TEST_P(RandomRewrites, AreLegalAsTheirRunsAre) {
  const uint32_t count = long_tests() ? 600 : 40;
  Counts counts;
  for (uint32_t n = 0; n < count && !HasFailure(); ++n) {
    const uint32_t seed = GetParam() * 1000 + n;
    compare(seed, n % 2 == 0, n % 3 == 0 ? make_var("n") : VarRef(), counts);
  }
  EXPECT_GT(counts.legal, static_cast<int>(count / 5));
  EXPECT_GT(counts.illegal, static_cast<int>(count / 5));
}
INSTANTIATE_TEST_SUITE_P(Legality, RandomRewrites, ::testing::Range(0u, 10u));

}  // namespace
}  // namespace helve::testing
