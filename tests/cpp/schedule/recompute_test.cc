// Statements that run again, or not any more, next to runs: legal where they store to buffers that are judged by
// values, and every run reads what it read. Random nests lose and repeat parts of themselves, at places that know
// nothing of what is read.
#include <gtest/gtest.h>

#include "analysis/random_nests.h"
#include "helve/print/printer.h"
#include "rewrites.h"
#include "runs.h"

namespace helve::testing {
namespace {

using Buffers = std::vector<BufferRef>;

bool holds_allocation(const Tree& t) {
  return t.kind == StmtKind::Alloc || std::any_of(t.parts.begin(), t.parts.end(), holds_allocation);
}

/// Puts a part of a block into the block once more, or takes it away.
void lose_or_repeat(Tree& tree, std::mt19937& random) {
  const auto number = [&](size_t below) { return std::uniform_int_distribution<size_t>(0, below - 1)(random); };
  std::vector<Tree*> blocks;
  const std::function<void(Tree&)> find = [&](Tree& t) {
    if (t.kind == StmtKind::Seq && !t.parts.empty()) blocks.push_back(&t);
    for (Tree& part : t.parts) find(part);
  };
  find(tree);
  if (blocks.empty()) return;
  std::vector<Tree>& block = blocks[number(blocks.size())]->parts;
  const size_t taken = number(block.size());
  const Tree part = block[taken];
  if (holds_allocation(part)) return;
  if (number(4) == 0) {
    block.erase(block.begin() + static_cast<ptrdiff_t>(taken));
  } else {
    block.insert(block.begin() + static_cast<ptrdiff_t>(number(block.size() + 1)), part);
  }
}

struct Stores {
  std::set<size_t> any_number;  ///< visits of those that may run any number of times
  bool updates = false;

  Stores(const Stmt& region, const Buffers& by_value) {
    size_t visit = 0;
    walk(region, [&](const Stmt& s) {
      const Store* store = as<Store>(s);
      updates |= store && store->is_update();
      if (store && !store->is_atomic() && std::find(by_value.begin(), by_value.end(), store->buffer) != by_value.end())
        any_number.insert(visit);
      ++visit;
    });
  }
};

struct Counts {
  int legal = 0, illegal = 0, repeated = 0;
};

void compare(uint32_t seed, bool plain, bool all, Counts& counts) {
  const FunctionRef f = RandomNest(seed, plain).make();
  Tree tree = TreeOf::make(f->body);
  std::mt19937 random(seed);
  for (uint32_t n = 0; n < 1 + seed % 2; ++n) lose_or_repeat(tree, random);
  const Rewritten after = rewritten(tree);
  Buffers by_value{std::get<BufferRef>(f->params[0])};
  if (all) by_value.push_back(std::get<BufferRef>(f->params[1]));
  const Dependences before = dependences(*f, f->body, ExactEngine(10'000'000));
  const Legality found = check_rewrite(before, after.region, after.origins, by_value);
  const std::string program = "seed " + std::to_string(seed) + "\n" + print(f->body) + "becomes\n" +
                              print(after.region) + "found " + std::string(to_string(found.verdict)) + " " +
                              text_of(found);
  const Runs runs(f->body, after, {});
  if (runs.breaks_promise()) return;
  const Stores stores(f->body, by_value);
  std::set<const Buffer*> staged;
  for (const BufferRef& buffer : by_value) staged.insert(buffer.get());
  const bool once = runs.all_run_once(stores.any_number);
  const bool legal = once && runs.same_values() && !runs.meets_without_order(staged);
  if (found.verdict == Verdict::Proved) {
    ++counts.legal;
    counts.repeated += !runs.all_run_once();
    EXPECT_TRUE(legal) << program;
  } else if (found.verdict == Verdict::Refuted) {
    ++counts.illegal;
    // Others are judged by their order, which values need not depend on.
    const bool exact = all && plain && !stores.updates;
    EXPECT_FALSE(exact && legal) << program;
    EXPECT_FALSE(text_of(found).empty()) << program;
  } else {
    EXPECT_FALSE(plain) << program;
  }
}

class RandomRepetitions : public ::testing::TestWithParam<uint32_t> {};
TEST_P(RandomRepetitions, AreLegalAsTheirRunsAre) {
  const uint32_t count = long_tests() ? 600 : 40;
  Counts counts;
  for (uint32_t n = 0; n < count && !HasFailure(); ++n) compare(GetParam() * 1000 + n, n % 3 != 0, n % 2 == 0, counts);
  EXPECT_GT(counts.legal, static_cast<int>(count / 10));
  EXPECT_GT(counts.repeated, static_cast<int>(count / 40));
  EXPECT_GT(counts.illegal, static_cast<int>(count / 10));
}
INSTANTIATE_TEST_SUITE_P(Legality, RandomRepetitions, ::testing::Range(0u, 10u));

const BufferRef kA = param("A", kInt32, {8}), kB = param("B", kInt32, {8});
const VarRef kI = make_var("i");
Stmt loop_over_i(const Stmt& body) { return for_loop(LoopKind::Serial, {kI}, {idx(0)}, {idx(8)}, body); }

/// Of a loop with the store, which runs `times` times in each iteration.
Legality found(const Stmt& stored, int times, const Buffers& by_value) {
  const FunctionRef f = function("f", {kA, kB}, loop_over_i(stored));
  const Stmt again = Stmt(copy_with(*as<Store>(stored), [](Store&) {}));
  const Stmt after = times == 0 ? loop_over_i(seq({})) : times == 1 ? f->body : loop_over_i(seq({stored, again}));
  std::vector<Origin> origins;
  if (times == 1) origins.push_back({stored.get(), 1, 1, {}});
  if (times == 2) origins = {{stored.get(), 2, 1, {}}, {again.get(), 3, 1, {}}};
  return check_rewrite(*f, f->body, after, origins, ExactEngine(), by_value);
}

TEST(Recompute, AStoreOfValuesMayRunAgain) {
  const Stmt stored = store(kA, {Expr(kI)}, load(kB, {Expr(kI)}));
  const Legality again = found(stored, 2, {kA});
  EXPECT_EQ(again.verdict, Verdict::Proved) << text_of(again);
  EXPECT_EQ(found(stored, 2, {}).fault, RewriteFault::Twice);
  EXPECT_EQ(found(stored, 2, {kB}).fault, RewriteFault::Twice);
  EXPECT_EQ(found(stored, 0, {kA}).fault, RewriteFault::Left);
  EXPECT_EQ(found(stored, 0, {}).fault, RewriteFault::Lost);
}

TEST(Recompute, WhatReadsItselfRunsOnce) {
  const Stmt sum = store(kA, {Expr(kI)}, load(kA, {Expr(kI)}) + load(kB, {Expr(kI)}));
  EXPECT_EQ(found(sum, 1, {kA}).verdict, Verdict::Proved);
  const Legality again = found(sum, 2, {kA});
  EXPECT_EQ(again.fault, RewriteFault::Value);
  EXPECT_EQ(text_of(again),
            "'A[i]' at i = 0 reads what stood there before, and would read what 'A[i]' at i = 0 writes");
  const Stmt update = store(kA, {Expr(kI)}, load(kB, {Expr(kI)}), {}, StoreMode::Add);
  EXPECT_EQ(found(update, 1, {kA}).verdict, Verdict::Proved);
  EXPECT_EQ(found(update, 2, {kA}).fault, RewriteFault::Value);
}

TEST(Recompute, AnUpdateByAnotherOperatorIsAnotherStatement) {
  const auto update = [](StoreMode mode) { return store(kA, {Expr(kI)}, load(kB, {Expr(kI)}), {}, mode); };
  const Stmt sum = update(StoreMode::Add);
  const FunctionRef f = function("f", {kA, kB}, loop_over_i(sum));
  for (const StoreMode mode : {StoreMode::Add, StoreMode::Max, StoreMode::Write}) {
    const Stmt now = update(mode);
    const Legality other = check_rewrite(*f, f->body, loop_over_i(now), {{now.get(), 1, 1, {}}}, ExactEngine(), {kA});
    EXPECT_EQ(other.verdict, mode == StoreMode::Add ? Verdict::Proved : Verdict::Unknown);
  }
}

TEST(Recompute, AnAtomicStoreRunsOnce) {
  const Stmt atomic = store(kA, {Expr(kI)}, load(kB, {Expr(kI)}), {}, StoreMode::AtomicAdd);
  EXPECT_EQ(found(atomic, 2, {kA}).fault, RewriteFault::Twice);
  EXPECT_EQ(found(atomic, 0, {kA}).fault, RewriteFault::Lost);
}

/// A store to a buffer that is not judged by values is none to one that is.
/// What stands there before an atomic update is a part of what stands there behind it.
TEST(Recompute, AStoreInFrontOfAnAtomicOneRuns) {
  const Stmt first = store(kA, {idx(0)}, int_imm(1, kInt32));
  const Stmt added = store(kA, {idx(0)}, load(kB, {idx(0)}), {}, StoreMode::AtomicAdd);
  const Stmt before = seq({first, added});
  const FunctionRef f = function("f", {kA, kB}, before);
  EXPECT_NE(check_rewrite(*f, before, added, {{added.get(), 0, 2, {}}}, ExactEngine(), {kA}).verdict, Verdict::Proved);
}

TEST(Recompute, AStoreElsewhereIsAnotherStatement) {
  const BufferRef c = shared("C", kInt32, {8});
  const Stmt stored = store(c, {Expr(kI)}, load(kB, {Expr(kI)})), other = store(kA, {Expr(kI)}, load(kB, {Expr(kI)}));
  const FunctionRef f = function("f", {kA, kB}, seq({alloc(c), loop_over_i(stored)}));
  const Legality moved =
      check_rewrite(*f, f->body, seq({alloc(c), loop_over_i(other)}), {{other.get(), 3, 3, {}}}, ExactEngine(), {c});
  EXPECT_EQ(moved.verdict, Verdict::Unknown);
}

}  // namespace
}  // namespace helve::testing
