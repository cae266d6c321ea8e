// The check of values next to runs: random nests, a part of which works on a copy of a tensor, right or not.
// The copies are put there by hand and know nothing of the primitives. Every second one has a fault of one kind: a copy
// that is missing, short or shifted, an access that was left behind, memory that is shared by too many.
#include <gtest/gtest.h>

#include "analysis/random_nests.h"
#include "helve/print/printer.h"
#include "rewrites.h"
#include "runs.h"

namespace helve::testing {
namespace {

/// Puts a copy W of the tensor A around a part of a tree.
class RandomStage {
 public:
  RandomStage(uint32_t seed, Tree tree, BufferRef from)
      : random_(seed), tree_(std::move(tree)), from_(std::move(from)) {
    to_ = make_buffer("W", from_->dtype, MemoryScope::Shared, {idx(64)});
  }

  /// False if no part uses the tensor.
  bool run() {
    std::vector<Tree*> nodes;
    const std::function<void(Tree&)> find = [&](Tree& t) {
      if (t.kind != StmtKind::Alloc && uses(t)) nodes.push_back(&t);
      for (Tree& part : t.parts) find(part);
    };
    find(tree_);
    if (nodes.empty()) return false;
    // What stands in a loop is copied by each iteration from what the last one left, which is not followed.
    const bool whole = number(0, 1) == 0;
    Tree& t = whole ? *nodes[0] : *nodes[static_cast<size_t>(number(0, static_cast<int64_t>(nodes.size()) - 1))];
    const int64_t fault = number(0, 16);
    const bool reads_only = fault >= 14;  // stores stay, and nothing is copied back
    redirect(t, fault == 0 ? 2 : 0, fault == 1 ? 2 : reads_only ? 1 : 0);
    Tree all;
    if (fault != 2) all.parts.push_back(allocation());
    if (fault != 3) all.parts.push_back(copy(to_, from_, fault == 4 ? 1 : 0, fault == 5 || fault == 15 ? 12 : 0));
    all.parts.push_back(t);
    if (fault == 10) all.parts.push_back(copy(to_, from_, 0, 0));
    if (fault != 6 && !reads_only)
      all.parts.push_back(copy(from_, to_, fault == 5 ? 0 : fault == 7 ? -1 : 0, fault == 8 ? 9 : 0));
    if (fault == 9) std::swap(all.parts.back(), all.parts[all.parts.size() - 2]);
    t = all;
    if (fault == 2) {
      Tree outer;
      outer.parts = {allocation(), tree_};
      tree_ = outer;
    }
    return true;
  }

  const Tree& tree() const { return tree_; }
  std::set<const Buffer*> staged() const { return {from_.get(), to_.get()}; }

 private:
  int64_t number(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random_); }

  bool uses(const Tree& t) const {
    if (t.kind == StmtKind::Store && replace_buffers(t.stmt, {{from_.get(), to_}}) != t.stmt) return true;
    return std::any_of(t.parts.begin(), t.parts.end(), [&](const Tree& part) { return uses(part); });
  }

  /// Leaves one of so many loads, and of so many stores, as they are; none if 0.
  void redirect(Tree& t, int64_t loads, int64_t stores) {
    for (Tree& part : t.parts) redirect(part, loads, stores);
    const Store* store = t.kind == StmtKind::Store ? as<Store>(t.stmt) : nullptr;
    if (!store) return;
    const auto moves = [&](int64_t of) { return of == 0 || number(1, of) != 1; };
    const Expr value = moves(loads) ? expr(store->value) : store->value;
    const bool here = store->buffer == from_ && moves(stores);
    t.stmt = Stmt(copy_with(*store, [&](Store& out) {
      out.value = value;
      if (here) out.buffer = to_;
    }));
  }
  Expr expr(const Expr& e) const {
    const Expr below = map_children(e, [&](const Expr& child) { return expr(child); });
    const Load* from = as<Load>(below);
    return from && from->buffer.get() == from_.get() ? load(to_, from->indices) : below;
  }

  Tree allocation() const {
    Tree out;
    out.kind = StmtKind::Alloc;
    out.stmt = alloc(to_);
    return out;
  }
  /// All elements that nests touch, or from `later` on.
  Tree copy(const BufferRef& to, const BufferRef& from, int64_t shift, int64_t later) const {
    const VarRef x = make_var("x");
    Tree leaf;
    leaf.kind = StmtKind::Store;
    leaf.stmt = store(to, {Expr(x)}, load(from, {Expr(x) + idx(shift)}));
    leaf.before_visit = kNoOrigin;
    return loop_tree(LoopKind::Serial, x, idx(-16 + later), idx(48 - later), {leaf});
  }

  std::mt19937 random_;
  Tree tree_;
  BufferRef from_, to_;
};

struct Counts {
  int legal = 0, illegal = 0, unknown = 0;
};

void compare(uint32_t seed, bool plain, Counts& counts) {
  const FunctionRef f = RandomNest(seed, plain).make();
  const BufferRef from = std::get<BufferRef>(f->params[0]);
  RandomStage stage(seed, TreeOf::make(f->body), from);
  if (!stage.run()) return;
  const Rewritten after = rewritten(stage.tree());
  const ExactEngine engine(10'000'000);
  const Dependences before = dependences(*f, f->body, engine);
  const Legality found = check_rewrite(before, after.region, after.origins);
  const std::string program = "seed " + std::to_string(seed) + "\n" + print(f->body) + "becomes\n" +
                              print(after.region) + "found " + std::string(to_string(found.verdict)) + " " +
                              text_of(found);
  const Runs runs(f->body, after, {});
  if (runs.breaks_promise()) return;
  const bool legal = runs.all_run_once() && runs.same_values() && !runs.meets_without_order(stage.staged());
  switch (found.verdict) {
    case Verdict::Proved:
      ++counts.legal;
      EXPECT_TRUE(legal) << program;
      break;
    case Verdict::Refuted:
      ++counts.illegal;
      EXPECT_FALSE(legal && runs.same_values(true)) << program;  // an update is judged as a read, seen or not
      EXPECT_FALSE(text_of(found).empty()) << program;
      break;
    case Verdict::Unknown:
      ++counts.unknown;
      EXPECT_TRUE(!plain || found.reason == "copies read what they wrote in earlier iterations") << program;
      break;
  }
}

const BufferRef kA = param("A", kInt32, {8}), kB = param("B", kInt32, {8});
const VarRef kI = make_var("i");
Stmt loop_over_i(const Stmt& body, LoopKind kind = LoopKind::Serial) {
  return for_loop(kind, {kI}, {idx(0)}, {idx(8)}, body);
}

/// Of a loop with `was` alone, in whose place `after` stands, with `now` for `was`.
Legality found(const Stmt& was, const Stmt& after, const Stmt& now, LoopKind kind = LoopKind::Serial) {
  const FunctionRef f = function("f", {kA, kB}, loop_over_i(was, kind));
  size_t visit = 0, at = 0;
  walk(after, [&](const Stmt& s) {
    if (s == now) at = visit;
    ++visit;
  });
  return check_rewrite(*f, f->body, after, {{now.get(), at, 1, {}}}, ExactEngine());
}

TEST(Values, EachExecutionOfAnAllocationIsNewMemory) {
  const BufferRef w = shared("W", kInt32, {1});
  const Stmt was = store(kB, {Expr(kI)}, load(kA, {idx(0)})), now = store(kB, {Expr(kI)}, load(w, {idx(0)}));
  const Stmt first = if_then(less(Expr(kI), idx(1)), store(w, {idx(0)}, load(kA, {idx(0)})));
  const Legality kept = found(was, seq({alloc(w), loop_over_i(seq({first, now}))}), now);
  EXPECT_EQ(kept.verdict, Verdict::Proved) << text_of(kept);
  const Legality lost = found(was, loop_over_i(seq({alloc(w), first, now})), now);
  EXPECT_EQ(lost.fault, RewriteFault::Value);
  EXPECT_EQ(text_of(lost), "'A[0]' at i = 1 reads what stood there before, and would read nothing that was written");
}

TEST(Values, IterationsWithoutOrderShareNoCopy) {
  const BufferRef w = shared("W", kInt32, {1});
  const Stmt was = store(kB, {Expr(kI)}, load(kA, {Expr(kI)})), now = store(kB, {Expr(kI)}, load(w, {idx(0)}));
  const Stmt in = store(w, {idx(0)}, load(kA, {Expr(kI)}));
  const LoopKind parallel = LoopKind::Parallel;
  const Legality own = found(was, loop_over_i(seq({alloc(w), in, now}), parallel), now, parallel);
  EXPECT_EQ(own.verdict, Verdict::Proved) << text_of(own);
  const Legality shared = found(was, seq({alloc(w), loop_over_i(seq({in, now}), parallel)}), now, parallel);
  EXPECT_EQ(shared.fault, RewriteFault::Shared);
  EXPECT_EQ(text_of(shared),
            "'W[0]' at i = 0 and 'W[0]' at i = 1 would touch one element in iterations that have no order");
}

TEST(Values, AStoreThatConvertsIsNoCopy) {
  const BufferRef w = shared("W", kInt64, {8});
  const Stmt was = store(kB, {Expr(kI)}, load(kA, {Expr(kI)}));
  const Stmt in = store(w, {Expr(kI)}, load(kA, {Expr(kI)}));
  EXPECT_EQ(found(was, seq({alloc(w), loop_over_i(seq({in, was}))}), was).fault, RewriteFault::Added);
}

const LoopKind kDealt = LoopKind::Persistent;

/// An item finds nothing in memory of its block, whoever wrote it before.
TEST(Values, AnItemFindsOnlyWhatItWrote) {
  const BufferRef w = shared("W", kInt32, {1});
  const Stmt was = store(kB, {Expr(kI)}, load(kA, {idx(0)})), now = store(kB, {Expr(kI)}, load(w, {idx(0)}));
  const Stmt copy = store(w, {idx(0)}, load(kA, {idx(0)}));
  const Legality inside = found(was, loop_over_i(seq({alloc(w), copy, now}), kDealt), now, kDealt);
  EXPECT_EQ(inside.verdict, Verdict::Proved) << text_of(inside);
  const Legality in_front = found(was, seq({alloc(w), copy, loop_over_i(now, kDealt)}), now, kDealt);
  EXPECT_EQ(in_front.fault, RewriteFault::Value);
  const Stmt first = if_then(less(Expr(kI), idx(1)), copy);
  const Legality before = found(was, seq({alloc(w), loop_over_i(seq({first, now}), kDealt)}), now, kDealt);
  EXPECT_EQ(before.fault, RewriteFault::Value);
}

TEST(Values, AnItemFindsNothingThatIsOfAroundTheRegion) {
  const BufferRef w = shared("W", kInt32, {1});
  const Stmt read = store(kB, {Expr(kI)}, load(w, {idx(0)}));
  const Stmt before = loop_over_i(read), after = loop_over_i(read, kDealt);
  const FunctionRef f = function("f", {kA, kB}, seq({alloc(w), before}));
  EXPECT_EQ(check_rewrite(*f, before, after, {{read.get(), 1, 1, {}}}, ExactEngine(), {w}).fault, RewriteFault::Value);
}

/// Which item of its block is the last one, nobody says.
TEST(Values, WhatItemsLeaveIsNotKnown) {
  const std::string reason = "which iteration of a T.Persistent loop wrote 'W' last is not known";
  const BufferRef w = shared("W", kInt32, {1}), v = shared("V", kInt32, {2});
  const Stmt written = store(w, {idx(0)}, load(kA, {Expr(kI)}) + load(kA, {idx(0)}));
  const Stmt items = loop_over_i(written, kDealt), was = store(kB, {idx(0)}, load(w, {idx(0)})),
             now = store(kB, {idx(0)}, load(v, {idx(0)}));
  const Stmt before = seq({alloc(w), items, was});
  const Stmt after = seq({alloc(w), items, alloc(v), store(v, {idx(0)}, load(w, {idx(0)})), now});
  const FunctionRef f = function("f", {kA, kB}, before);
  const std::vector<Origin> origins = {{written.get(), 3, 3, {}}, {now.get(), 6, 4, {}}};
  EXPECT_EQ(text_of(check_rewrite(*f, before, after, origins, ExactEngine())), reason);
  const FunctionRef outside = function("f", {kA, kB}, seq({alloc(w), items}));
  EXPECT_EQ(text_of(check_rewrite(*outside, items, items, {{written.get(), 1, 1, {}}}, ExactEngine(), {w})), reason);
}

/// Threads that work together are one statement, which writes many elements.
TEST(Values, AnElementOfAStatementIsNoOtherOne) {
  const VarRef tx = make_var("tx");
  const BufferRef registers = make_buffer("F", kInt32, MemoryScope::Fragment, {idx(32)}),
                  written = param("C", kInt32, {32}), w = shared("W", kInt32, {1});
  const Stmt exchange = store(written, {Expr(tx)}, load(registers, {idx(31) - Expr(tx)}));
  const Stmt threads = for_loop(LoopKind::Thread, {tx}, {idx(0)}, {idx(32)}, exchange);
  const Stmt was = store(kB, {idx(0)}, load(written, {idx(0)})), now = store(kB, {idx(0)}, load(w, {idx(0)}));
  const Stmt before = seq({alloc(registers), threads, was});
  const FunctionRef f = function("f", {written, kB}, before);
  for (const int64_t element : {0, 1}) {
    const Stmt copy = store(w, {idx(0)}, load(written, {idx(element)}));
    const Stmt after = seq({alloc(registers), alloc(w), threads, copy, now});
    const std::vector<Origin> origins = {{threads.get(), 3, 2, {}}, {now.get(), 6, 4, {}}};
    EXPECT_NE(check_rewrite(*f, before, after, origins, ExactEngine()).verdict, Verdict::Proved) << element;
  }
}

class RandomCopies : public ::testing::TestWithParam<uint32_t> {};
TEST_P(RandomCopies, AreLegalAsTheirRunsAre) {
  const uint32_t count = long_tests() ? 600 : 40;
  Counts counts;
  for (uint32_t n = 0; n < count && !HasFailure(); ++n) compare(GetParam() * 1000 + n, n % 2 == 0, counts);
  EXPECT_GT(counts.legal, static_cast<int>(count / 8));
  EXPECT_GT(counts.illegal, static_cast<int>(count / 20));
}
INSTANTIATE_TEST_SUITE_P(Legality, RandomCopies, ::testing::Range(0u, 10u));

}  // namespace
}  // namespace helve::testing
