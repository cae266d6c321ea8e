// Which threads of a block meet in an element, and where barriers go.
#include "helve/analysis/barriers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "helve/analysis/stored_results.h"
#include "helve/ir/tensor/visit.h"
#include "helve/print/printer.h"
#include "ir/tensor/programs/build_ir.h"

namespace helve::testing {
namespace {

constexpr int64_t kThreads = 64;

Stmt on_threads(const std::function<Stmt(const Expr&)>& body) {
  const VarRef tx = make_var("tx");
  return for_loop(LoopKind::Thread, tx, idx(kThreads), body(Expr(tx)));
}

/// A kernel of one block of 64 threads.
class Barriers : public ::testing::Test {
 protected:
  const BufferRef s = shared("S", kInt32, {2 * kThreads});
  const BufferRef out = param("O", kInt32, {2 * kThreads});
  const BufferRef in = param("I", kInt32, {2 * kThreads});
  const BufferRef begins = param("B", kInt32, {4});

  Stmt write(const std::function<Expr(const Expr&)>& place, StoreMode mode = StoreMode::Write) const {
    return on_threads([&](const Expr& tx) { return store(s, {place(tx)}, int_imm(1, kInt32), {}, mode); });
  }
  Stmt read(const std::function<Expr(const Expr&)>& place) const {
    return on_threads([&](const Expr& tx) { return store(out, {tx}, load(s, {place(tx)})); });
  }
  static Expr own(const Expr& tx) { return tx; }
  static Expr other(const Expr& tx) { return idx(kThreads - 1) - tx; }

  FunctionRef in_kernel(std::vector<Stmt> body) const {
    body.insert(body.begin(), alloc(s));
    return function("main", {out, in, begins}, kernel({make_var("b")}, {idx(1)}, kThreads, seq(std::move(body))));
  }
  static const Kernel& kernel_of(const FunctionRef& f) { return *as<Kernel>(f->body); }

  /// Begins a copy of the block into or out of the first half of S.
  Stmt load_bulk() const { return tile_op(TileOpcode::CopyAsync, {half_of(in), half_of(s)}); }
  Stmt store_bulk() const { return tile_op(TileOpcode::CopyAsync, {half_of(s), half_of(out)}); }
  static Stmt wait() { return tile_op(TileOpcode::WaitAsync, {}); }
  static Stmt barrier() { return tile_op(TileOpcode::SyncThreads, {}); }
  static Region half_of(const BufferRef& b) { return {b, {{idx(0), idx(kThreads), false}}}; }

  static int unordered(const FunctionRef& f) {
    return static_cast<int>(BarrierAnalysis(f).unordered(kernel_of(f)).size());
  }
  /// The number of barriers that are inserted; nothing is then unordered, and the check of that puts no new question,
  /// whose budget could be spent. Gives the work of both.
  static int inserted(const FunctionRef& f, BarrierWork* work = nullptr) {
    BarrierAnalysis analysis(f);
    const Ref<const Kernel> ordered = analysis.with_barriers(Ref<const Kernel>(&kernel_of(f)));
    const size_t queries = analysis.work().queries;
    EXPECT_TRUE(analysis.unordered(*ordered).empty()) << print(Stmt(ordered));
    EXPECT_EQ(analysis.work().queries, queries);
    if (work) *work = analysis.work();
    int count = 0;
    walk(Stmt(ordered), [&](const Stmt& each) {
      const TileOp* op = as<TileOp>(each);
      count += op && op->op == TileOpcode::SyncThreads;
    });
    return count;
  }
};

TEST_F(Barriers, AThreadIsOrderedWithItself) {
  const FunctionRef f = in_kernel({write(own), read(own)});
  EXPECT_EQ(unordered(f), 0);
  EXPECT_EQ(inserted(f), 0);
}

/// Where a name begins is one place for all threads if nothing writes the memory that it comes from.
TEST_F(Barriers, ValuesFromMemoryThatNothingWritesAreKnown) {
  const auto with = [&](const BufferRef& from, bool behind) {
    const VarRef begin = make_var("begin"), again = make_var("again");
    const auto place = [](const VarRef& name) { return [name](const Expr& tx) { return Expr(name) + tx; }; };
    return in_kernel({bind(begin, cast(load(from, {idx(0)}), kIndex)), write(place(begin)),
                      bind(again, cast(load(from, {idx(behind ? 1 : 0)}), kIndex)), read(place(again))});
  };
  EXPECT_EQ(inserted(with(begins, false)), 0);
  EXPECT_EQ(inserted(with(begins, true)), 1);
  EXPECT_EQ(inserted(with(out, false)), 1);
}

TEST_F(Barriers, RunsOfStepsApartAreOfOneThreadEach) {
  const auto runs = [&](int64_t step, bool reads) {
    return on_threads([&](const Expr& tx) {
      const VarRef v = make_var("v");
      const Expr place = tx * idx(step) + Expr(v);
      const Stmt one = reads ? store(out, {place}, load(s, {place})) : store(s, {place}, int_imm(1, kInt32));
      return for_loop(LoopKind::Serial, {v}, {idx(0)}, {idx(2)}, one);
    });
  };
  EXPECT_EQ(inserted(in_kernel({runs(2, false), runs(2, true)})), 0);
  EXPECT_EQ(inserted(in_kernel({runs(-2, false), runs(-2, true)})), 0);
  EXPECT_EQ(inserted(in_kernel({runs(1, false), runs(1, true)})), 1);
}

TEST_F(Barriers, OneStandsBetweenAWriteAndAnotherThreadsRead) {
  const FunctionRef f = in_kernel({write(own), read(other)});
  const std::vector<UnorderedAccesses> found = BarrierAnalysis(f).unordered(kernel_of(f));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].buffer, s);
  EXPECT_TRUE(found[0].certain);
  EXPECT_EQ(inserted(f), 1);
}

TEST_F(Barriers, ReadsAreNotOrdered) {
  EXPECT_EQ(inserted(in_kernel({write(own), tile_op(TileOpcode::SyncThreads, {}), read(other), read(own)})), 1);
}

TEST_F(Barriers, ASecondHalfIsAnotherPlace) {
  const auto half = [](const Expr& tx) { return tx + idx(kThreads); };
  EXPECT_EQ(inserted(in_kernel({write(half), read(own)})), 0);
}

TEST_F(Barriers, ALoopMeetsItsOwnLaterIterations) {
  const VarRef k = make_var("k");
  EXPECT_EQ(inserted(in_kernel({serial(k, idx(3), {write(own), read(other)})})), 2);
  EXPECT_EQ(inserted(in_kernel({serial(k, idx(3), {write(own), read(own)})})), 0);
}

TEST_F(Barriers, ALoopThatMayNotRunOrdersNothing) {
  const VarRef k = make_var("k"), n = make_var("n");
  const auto around = [&](const Expr& extent) {
    return in_kernel({write(own), serial(k, extent, {barrier(), write(own)}), read(other)});
  };
  EXPECT_EQ(unordered(around(idx(3))), 1);  // the last iteration's
  EXPECT_EQ(unordered(around(Expr(n))), 1);  // or what stands before the loop
  const auto read_in = [&](const Expr& extent) {
    return in_kernel({write(own), serial(k, extent, {barrier(), read(other)}), read(other)});
  };
  EXPECT_EQ(unordered(read_in(idx(3))), 0);
  EXPECT_EQ(unordered(read_in(Expr(n))), 1);
  EXPECT_EQ(inserted(in_kernel(
                {write(own), while_loop(less(load(out, {idx(0)}), int_imm(3, kInt32)), barrier()), read(other)})),
            1);
}

TEST_F(Barriers, ANameIsAnotherValueInAnotherIteration) {
  const VarRef k = make_var("k");
  const auto split = [&](const VarRef& v) {
    return if_then(less(Expr(v), int_imm(5, kInt32)),
                   on_threads([&](const Expr&) { return store(s, {idx(0)}, int_imm(1, kInt32)); }),
                   read([](const Expr&) { return idx(0); }));
  };
  const auto looped = [&](const Expr& value) {
    const VarRef v = make_var("v", kInt32);
    return in_kernel({serial(k, idx(4), {bind(v, value), split(v)})});
  };
  EXPECT_NE(unordered(looped(load(in, {Expr(k)}))), 0);
  EXPECT_EQ(unordered(in_kernel({split(make_var("n", kInt32))})), 0);  // one value: one branch
  // The name of a thread.
  const VarRef v = make_var("v", kInt32);
  EXPECT_NE(unordered(in_kernel({serial(k, idx(4), {on_threads([&](const Expr& tx) {
                                          return seq({bind(v, load(in, {tx + Expr(k)})),
                                                      if_then(less(Expr(v), int_imm(5, kInt32)),
                                                              store(s, {idx(0)}, int_imm(1, kInt32)),
                                                              store(out, {tx}, load(s, {idx(0)})))});
                                        })})})),
            0);
}

TEST_F(Barriers, OneInFrontOfALoopIsEnoughForReadsInIt) {
  const VarRef k = make_var("k");
  const FunctionRef f = in_kernel({write(own), serial(k, idx(3), {read(other)})});
  EXPECT_EQ(inserted(f), 1);
}

TEST_F(Barriers, ConditionsCount) {
  const auto first = [&](const Stmt& body, int64_t begin, int64_t end) {
    const VarRef tx = make_var("tx");
    const Expr inside = logical_and(apply(Op::Le, {idx(begin), Expr(tx)}), less(Expr(tx), idx(end)));
    return for_loop(LoopKind::Thread, tx, idx(kThreads), if_then(inside, body));
  };
  const auto put = [&](int64_t place) { return store(s, {idx(place)}, int_imm(1, kInt32)); };
  EXPECT_EQ(unordered(in_kernel({first(put(0), 3, 4), first(put(0), 3, 4)})), 0);  // one thread, twice
  EXPECT_EQ(unordered(in_kernel({first(put(0), 3, 4), first(put(0), 4, 5)})), 1);
}

TEST_F(Barriers, WhatDataDecidesIsNotExcluded) {
  const auto looked_up = [&](const Expr& tx) { return cast(load(out, {tx}), kIndex); };
  const FunctionRef f = in_kernel({write(looked_up), read(own)});
  const std::vector<UnorderedAccesses> found = BarrierAnalysis(f).unordered(kernel_of(f));
  ASSERT_FALSE(found.empty());
  EXPECT_FALSE(found[0].certain);
}

TEST_F(Barriers, AtomicStoresOfOneModeMeet) {
  const auto one = [](const Expr&) { return idx(0); };
  EXPECT_EQ(inserted(in_kernel({write(one, StoreMode::AtomicAdd), write(one, StoreMode::AtomicAdd)})), 0);
  EXPECT_EQ(inserted(in_kernel({write(one, StoreMode::AtomicAdd), write(one, StoreMode::AtomicMax)})), 1);
  EXPECT_EQ(inserted(in_kernel({write(one, StoreMode::AtomicAdd), read(one)})), 1);
  EXPECT_EQ(inserted(in_kernel({write(own), write(one, StoreMode::AtomicAdd)})), 1);
}

TEST_F(Barriers, UpdatesOfOneOperatorDoNotMeet) {
  const auto one = [](const Expr&) { return idx(0); };
  EXPECT_EQ(inserted(in_kernel({write(own, StoreMode::Add), write(own, StoreMode::Add)})), 0);
  EXPECT_EQ(inserted(in_kernel({write(own, StoreMode::Add), write(other, StoreMode::Add)})), 1);
  EXPECT_EQ(inserted(in_kernel({read(other), write(own, StoreMode::Max)})), 1);
  EXPECT_EQ(inserted(in_kernel({write(one, StoreMode::AtomicAdd), write(own, StoreMode::Add)})), 1);
}

TEST_F(Barriers, ACopyOfTheBlockIsMadeByNoThread) {
  EXPECT_EQ(inserted(in_kernel({load_bulk(), wait(), read(own)})), 1);
  EXPECT_EQ(unordered(in_kernel({load_bulk(), barrier(), wait(), read(own)})), 1);  // before the wait
  EXPECT_EQ(inserted(in_kernel({write(own), load_bulk(), wait()})), 1);
  EXPECT_EQ(inserted(in_kernel({write(own), store_bulk(), wait()})), 1);
  EXPECT_EQ(inserted(in_kernel({load_bulk(), wait(), read(own), load_bulk(), wait()})), 2);
}

TEST_F(Barriers, AStoreOfTheBlockReadsUntilItsWait) {
  EXPECT_EQ(inserted(in_kernel({write(own), store_bulk(), wait(), write(own)})), 2);
  EXPECT_EQ(unordered(in_kernel({store_bulk(), barrier(), wait(), write(own)})), 1);
  EXPECT_EQ(unordered(in_kernel({store_bulk(), wait(), barrier(), write(own)})), 0);
}

TEST_F(Barriers, TensorsThatMayShareMemoryMeetAnywhere) {
  const Stmt copy = on_threads([&](const Expr& tx) { return store(out, {tx}, load(in, {tx})); });
  const Stmt back = on_threads([&](const Expr& tx) { return store(in, {tx}, load(s, {tx})); });
  const FunctionRef apart = in_kernel({copy, back});
  EXPECT_EQ(inserted(apart), 0);
  Ref<Function> shared = make_ref<Function>(*apart);
  shared->may_alias = {{{out, in}, {}, {}}};
  EXPECT_EQ(inserted(FunctionRef(shared)), 1);
}

TEST_F(Barriers, AnotherHalfIsNotTheCopys) {
  const auto half = [](const Expr& tx) { return tx + idx(kThreads); };
  EXPECT_EQ(inserted(in_kernel({write(half), store_bulk(), wait()})), 0);
}

// What is asked grows with what differs, not with what is repeated.

TEST_F(Barriers, LoopsInSequenceAskOnce) {
  const auto work_of = [&](int64_t loops) {
    std::vector<Stmt> body;
    for (int64_t n = 0; n < loops; ++n) body.push_back(serial(make_var("k"), idx(4), {write(own), read(own)}));
    BarrierWork work;
    EXPECT_EQ(inserted(in_kernel(std::move(body)), &work), 0);
    return work;
  };
  const BarrierWork few = work_of(10), many = work_of(80);
  EXPECT_EQ(few.queries, many.queries);
  EXPECT_LE(many.pairs, 9 * few.pairs);
}

TEST_F(Barriers, ALoopsBodyIsReadOnceHoweverDeepItStands) {
  const auto work_of = [&](int depth) {
    Stmt body = seq({write(own), read(other)});
    for (int d = 0; d < depth; ++d) body = serial(make_var("k"), idx(4), {body});
    BarrierWork work;
    EXPECT_EQ(inserted(in_kernel({body}), &work), 2);
    return work;
  };
  const BarrierWork flat = work_of(5), deep = work_of(40);
  EXPECT_LE(deep.pairs, 64 * flat.pairs);
  EXPECT_LE(deep.queries, 8 * flat.queries);
}

TEST_F(Barriers, WhatBothThreadAndTurnDecideIsNoOffset) {
  const auto turns = [&](int64_t count) {
    const VarRef k = make_var("k");
    const Stmt body = write([&](const Expr& tx) {
      const Expr late = max(Expr(k) - idx(2), idx(0)) * idx(2);  // 0 in the first three turns
      return floor_div(Expr(k), idx(8)) * idx(256) + tx * idx(2) + min(tx, late);
    });
    return in_kernel({serial(k, idx(count), {body})});
  };
  EXPECT_EQ(inserted(turns(3)), 0);
  EXPECT_EQ(inserted(turns(4)), 1);
}

/// Turn k stores tile (k // 4, k % 4) of the tensor in parts, the last of them `moved` columns to the right.
FunctionRef tiles_in_parts(const BufferRef& s, const BufferRef& tiles, int64_t count, int64_t moved) {
  const VarRef k = make_var("k");
  const Expr row = floor_div(Expr(k), idx(4)) * idx(8), column = floor_mod(Expr(k), idx(4)) * idx(16);
  const int64_t width = 16 / count;
  std::vector<Stmt> body;
  for (int64_t n = 0; n < count; ++n) {
    const Expr begin = column + idx(n * width + (n + 1 == count ? moved : 0));
    const Region part{tiles, {{row, idx(8), false}, {begin, idx(width), false}}};
    body.push_back(tile_op(TileOpcode::CpAsyncBulkTensor, {Region{s, {{idx(0), idx(8 * width), false}}}, part}));
  }
  return function("main", {tiles},
                  kernel({make_var("b")}, {idx(1)}, kThreads, seq({alloc(s), serial(k, idx(16), std::move(body))})));
}

TEST_F(Barriers, PartsOfTilesThatTurnsStoreAskOnce) {
  const BufferRef tiles = param("Q", kInt32, {32, 64});
  const auto work_of = [&](int64_t count) {
    BarrierWork work;
    EXPECT_EQ(inserted(tiles_in_parts(s, tiles, count, 0), &work), 0) << count;
    return work;
  };
  EXPECT_EQ(work_of(8).queries, work_of(2).queries);
  EXPECT_LE(work_of(2).queries, work_of(1).queries + 1);
}

TEST_F(Barriers, WhatTurnsStoreIsComparedPartByPartToo) {
  const BufferRef tiles = param("Q", kInt32, {32, 128});
  const auto accessed = [&](int64_t count, int64_t moved) {
    const FunctionRef f = tiles_in_parts(s, tiles, count, moved);
    return accesses_stored_results(f, kernel_of(f));
  };
  for (const int64_t count : {1, 2, 8}) {
    EXPECT_FALSE(accessed(count, 0)) << count;
    EXPECT_EQ(accessed(count, 1), count > 1) << count;
  }
  EXPECT_FALSE(accessed(2, 64)) << "a box around both parts would meet those of other turns";
}

TEST_F(Barriers, IndependentStatementsAskNothing) {
  constexpr int64_t kCount = 400;
  const BufferRef rows = shared("R", kInt32, {kCount, kThreads});
  std::vector<Stmt> body = {alloc(rows)};
  for (int64_t n = 0; n < kCount; ++n) {
    body.push_back(on_threads([&](const Expr& tx) { return store(rows, {idx(n), other(tx)}, int_imm(1, kInt32)); }));
    if (n > 0) {
      body.push_back(on_threads([&](const Expr& tx) { return store(out, {tx}, load(rows, {idx(n), other(tx)})); }));
    }
  }
  BarrierWork work;
  EXPECT_EQ(inserted(in_kernel(std::move(body)), &work), 0);
  EXPECT_EQ(work.queries, 0u);
}

TEST_F(Barriers, StepsThatInterleaveAskNothing) {
  std::vector<Stmt> body;
  for (int64_t n = 0; n < 2; ++n) {
    body.push_back(write([&](const Expr& tx) { return (idx(63) - tx) * idx(2) + idx(n); }));
  }
  body.push_back(read([](const Expr& tx) { return floor_mod(tx * idx(7), idx(64)) * idx(2) + idx(1); }));
  BarrierWork work;
  EXPECT_EQ(inserted(in_kernel({body[0], body[1]}), &work), 0);
  EXPECT_EQ(work.queries, 0u);
  EXPECT_EQ(inserted(in_kernel(body)), 1);
}

/// Statement n writes column 7 * tx of row tx + n, modulo 64: no two of them meet, as isl finds and nothing simpler.
std::vector<Stmt> shifted(const BufferRef& square, int64_t count) {
  std::vector<Stmt> out;
  for (int64_t n = 0; n < count; ++n) {
    out.push_back(on_threads([&](const Expr& tx) {
      const Expr row = floor_mod(tx + idx(n), idx(kThreads)), column = floor_mod(tx * idx(7), idx(kThreads));
      return store(square, {row, column}, int_imm(1, kInt32));
    }));
  }
  return out;
}

TEST_F(Barriers, WhatABudgetLeavesOpenIsSaid) {
  const BufferRef square = shared("Q", kInt32, {kThreads, kThreads});
  const auto undecided = [&](int64_t count, BarrierWork* work) {
    std::vector<Stmt> body = shifted(square, count);
    body.insert(body.begin(), alloc(square));
    const FunctionRef f = in_kernel(body);
    BarrierAnalysis analysis(f);
    std::vector<UnorderedAccesses> out;
    const Ref<const Kernel> ordered = analysis.with_barriers(Ref<const Kernel>(&kernel_of(f)), &out);
    EXPECT_TRUE(analysis.unordered(*ordered).empty());
    *work = analysis.work();
    for (const UnorderedAccesses& each : out) {
      EXPECT_EQ(each.buffer, square);
      EXPECT_FALSE(each.certain);
      EXPECT_NE(each.earlier, each.later);
    }
    return out.size();
  };
  BarrierWork few, many;
  EXPECT_EQ(undecided(30, &few), 0u);
  EXPECT_EQ(undecided(36, &many), 1u);
  EXPECT_LE(many.queries, 36u * 32u);
}

TEST_F(Barriers, ConflictsOfTheFirstWarpsAskNothing) {
  const VarRef n = make_var("n");
  const BufferRef square = shared("Q", kInt32, {kThreads, kThreads});
  const auto guarded = [&](const Stmt& body, const Expr& tx) { return if_then(less(tx, Expr(n)), body); };
  const Stmt rows = on_threads([&](const Expr& tx) {
    return guarded(store(square, {floor_div(tx, idx(8)), floor_mod(tx, idx(8))}, int_imm(1, kInt32)), tx);
  });
  const Stmt columns = on_threads([&](const Expr& tx) {
    return guarded(store(out, {tx}, load(square, {floor_mod(tx, idx(8)), floor_div(tx, idx(8))})), tx);
  });
  const FunctionRef f = dynamic_function(
      "main", {n}, {out}, kernel({make_var("b")}, {Expr(n)}, kThreads, seq({alloc(square), rows, columns})));
  BarrierWork work;
  EXPECT_EQ(inserted(f, &work), 1);
  EXPECT_EQ(work.found, 1u);
  EXPECT_EQ(work.queries, 0u);
}

/// A subscript of a random program: (a tx + b k + c v + d) % m // e.
struct RandomPlace {
  int64_t a, b, c, d, m, e;

  Expr at(const Expr& tx, const Expr& k, const Expr& v) const {
    const Expr sum = tx * idx(a) + k * idx(b) + v * idx(c) + idx(d);
    return floor_div(floor_mod(sum, idx(m)), idx(e));
  }
  int64_t at(int64_t tx, int64_t k, int64_t v) const {
    const int64_t rest = (tx * a + k * b + v * c + d) % m;
    return (rest < 0 ? rest + m : rest) / e;
  }
};

TEST_F(Barriers, RandomPairsConflictWhereTwoThreadsMeet) {
  std::mt19937 random(7);
  const auto number = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  size_t met_count = 0, found = 0, asked = 0;
  for (int round = 0; round < 300; ++round) {
    struct Access {
      RandomPlace place;
      bool write;
      int64_t first, last, lanes;  ///< threads; values of v
    };
    std::vector<Access> all;
    const int64_t iterations = number(0, 3), modulus = number(40, 128);
    for (int n = 0; n < 2; ++n) {
      const int64_t first = number(0, kThreads - 1);
      all.push_back({{number(-1, 2), number(0, 2), number(0, 2), number(0, 70), number(0, 3) ? modulus : number(1, 9),
                      number(1, 3)},
                     n == 0 || number(0, 1) == 0,
                     number(0, 3) ? 0 : first,
                     number(0, 3) ? kThreads - 1 : first,
                     number(0, 3)});
    }
    // By element: the threads of each run of a statement that touch it, and whether they write.
    std::map<int64_t, std::map<std::pair<int64_t, size_t>, std::set<int64_t>>> runs;
    for (int64_t i = 0; i < iterations; ++i) {
      for (size_t n = 0; n < all.size(); ++n) {
        const Access& each = all[n];
        for (int64_t tx = each.first; tx <= each.last; ++tx) {
          for (int64_t v = 0; v < each.lanes; ++v) runs[each.place.at(tx, i, v)][{i, n}].insert(tx);
        }
      }
    }
    bool met = false;
    for (const auto& [element, of] : runs) {
      for (const auto& [one, threads] : of) {
        for (const auto& [other, others] : of) {
          if (one == other || (!all[one.second].write && !all[other.second].write)) continue;
          met |= threads.size() > 1 || others.size() > 1 || threads != others;
        }
      }
    }
    const VarRef k = make_var("k");
    std::vector<Stmt> body;
    for (const Access& each : all) {
      body.push_back(on_threads([&](const Expr& tx) {
        const VarRef v = make_var("v");
        const Expr place = each.place.at(tx, Expr(k), Expr(v));
        const Stmt one = each.write ? store(s, {place}, int_imm(1, kInt32)) : store(out, {tx}, load(s, {place}));
        const Expr inside = logical_and(apply(Op::Le, {idx(each.first), tx}), apply(Op::Le, {tx, idx(each.last)}));
        return if_then(inside, for_loop(LoopKind::Serial, {v}, {idx(0)}, {idx(each.lanes)}, one));
      }));
    }
    const FunctionRef f = in_kernel({serial(k, idx(iterations), body)});
    BarrierAnalysis analysis(f);
    const std::vector<UnorderedAccesses> unordered = analysis.unordered(kernel_of(f));
    const bool within = std::any_of(unordered.begin(), unordered.end(),
                                    [&](const UnorderedAccesses& each) { return each.buffer == s; });
    ASSERT_LE(within, met) << print(Stmt(&kernel_of(f)));
    met_count += met;
    found += analysis.work().found;
    asked += analysis.work().queries;
  }
  EXPECT_GT(met_count, 100u);
  EXPECT_GT(found, 100u);
  EXPECT_GT(asked, 10u);
}

TEST_F(Barriers, ABarrierIsTriedWhereItStands) {
  const auto work_of = [&](int64_t count) {
    std::vector<Stmt> body;
    for (int64_t n = 0; n < count; ++n) {
      body.push_back(write(own));
      body.push_back(read(other));
    }
    BarrierWork work;
    EXPECT_EQ(inserted(in_kernel(std::move(body)), &work), 2 * count - 1);
    return work;
  };
  const BarrierWork few = work_of(10), many = work_of(80);
  EXPECT_EQ(few.queries, many.queries);
  EXPECT_LE(many.pairs, 9 * few.pairs);
}

TEST_F(Barriers, ChainsOfNamesCostWhatTheyAreLong) {
  const auto chain = [&](const DType& type, const Expr& first, const Expr& index) {
    std::vector<Stmt> body;
    VarRef last = make_var("v", type);
    body.push_back(bind(last, first));
    for (int n = 0; n < 60; ++n) {
      const VarRef next = make_var("v", type);
      body.push_back(bind(next, Expr(last) + Expr(last)));
      last = next;
    }
    const Expr value = type.is_index() ? int_imm(1, kInt32) : cast(Expr(last), kInt32);
    body.push_back(store(s, {index ? index : Expr(last)}, value));
    return on_threads([&](const Expr&) { return seq(body); });
  };
  EXPECT_EQ(inserted(in_kernel({chain(kFloat32, float_imm(1.0, kFloat32), idx(0))})), 0);
  EXPECT_EQ(inserted(in_kernel({chain(kIndex, idx(0), {})})), 0);
}

}  // namespace
}  // namespace helve::testing
