// Races found by a checked run, against all pairs of accesses.
#include "checked.h"

namespace helve::testing {
namespace {

using interp::Checks;

constexpr Checks kRaces{.uninitialised = false, .races = true};

/// One access as the definition sees it: where in the tree of loops, what, and how.
struct Access {
  std::vector<int> path;  ///< i, or i, s, j
  int64_t element;
  bool writes;
};

/// Do the accesses stand in different iterations of i, or of one instance of j?
bool concurrent(const Access& a, const Access& b) {
  if (a.path[0] != b.path[0]) return true;
  if (a.path.size() == 1 || b.path.size() == 1) return false;
  return a.path[1] == b.path[1] && a.path[2] != b.path[2];
}

bool any_race(const std::vector<Access>& accesses) {
  for (const Access& a : accesses) {
    for (const Access& b : accesses) {
      if (a.element == b.element && (a.writes || b.writes) && concurrent(a, b)) return true;
    }
  }
  return false;
}

constexpr int kOuter = 3, kSerial = 2, kInner = 3;

/// for i in Parallel: v[before[i]] read; for s in serial: for j in Parallel: v[r[i, s, j]] read, v[w[i, s, j]] written;
/// v[after[i]] written.
FunctionRef nest(int64_t elements) {
  const BufferRef v = param("v", kInt64, {elements}), sink = shared("sink", kInt64, {1000});
  const BufferRef before = param("before", kInt64, {kOuter}), after = param("after", kInt64, {kOuter});
  const BufferRef r = param("r", kInt64, {kOuter, kSerial, kInner}), w = param("w", kInt64, {kOuter, kSerial, kInner});
  const VarRef i = make_var("i"), s = make_var("s"), j = make_var("j");
  const Expr inner = (i * idx(kSerial) + s) * idx(kInner) + j;
  const Stmt body = seq({
      store(sink, {idx(100) + i}, load(v, {subscript(before, {i})})),
      serial(s, idx(kSerial),
             {for_loop(LoopKind::Parallel, j, idx(kInner),
                       seq({store(sink, {inner}, load(v, {subscript(r, {i, s, j})})),
                            store(v, {subscript(w, {i, s, j})}, int_imm(1, kInt64))}))}),
      store(v, {subscript(after, {i})}, int_imm(2, kInt64)),
  });
  return function("main", {v, before, after, r, w},
                  one_block({alloc(sink), for_loop(LoopKind::Parallel, i, idx(kOuter), body)}));
}

TEST(RaceCheck, AgreesWithAllPairsOfANestOfLoops) {
  std::mt19937 random(5);
  int races = 0;
  constexpr int kTrials = 1500;
  for (int trial = 0; trial < kTrials; ++trial) {
    const int64_t elements = 50 + trial;
    std::uniform_int_distribution<int64_t> pick(0, elements - 1);
    const auto table = [&](int n) {
      std::vector<int64_t> out(static_cast<size_t>(n));
      for (int64_t& e : out) e = pick(random);
      return out;
    };
    std::vector<int64_t> v(static_cast<size_t>(elements)), before = table(kOuter), after = table(kOuter);
    std::vector<int64_t> r = table(kOuter * kSerial * kInner), w = table(kOuter * kSerial * kInner);
    std::vector<Access> accesses;
    for (int i = 0; i < kOuter; ++i) {
      accesses.push_back({{i}, before[static_cast<size_t>(i)], false});
      for (int s = 0; s < kSerial; ++s) {
        for (int j = 0; j < kInner; ++j) {
          const size_t at = static_cast<size_t>((i * kSerial + s) * kInner + j);
          accesses.push_back({{i, s, j}, r[at], false});
          accesses.push_back({{i, s, j}, w[at], true});
        }
      }
      accesses.push_back({{i}, after[static_cast<size_t>(i)], true});
    }
    const bool expected = any_race(accesses);
    const std::optional<Code> found =
        verdict(nest(elements),
                {tensor(v, {elements}), tensor(before, {kOuter}), tensor(after, {kOuter}),
                 tensor(r, {kOuter, kSerial, kInner}), tensor(w, {kOuter, kSerial, kInner})},
                kRaces);
    ASSERT_EQ(found.has_value(), expected) << "trial " << trial;
    ASSERT_EQ(found.value_or(Code::RacingIterations), Code::RacingIterations);
    races += expected;
  }
  EXPECT_GT(races, kTrials / 5);
  EXPECT_LT(races, kTrials * 4 / 5);
}

/// What the cores do in one step: nothing, read or write an element, or meet over an axis.
struct Step {
  enum Kind { Read, Write, Meet } kind;
  std::vector<int64_t> elements;  ///< one a core; outside the tensor's first half the core does nothing
  std::string axis;
};

constexpr int64_t kRows = 2, kCols = 3, kCores = kRows * kCols;

bool same_group(int64_t a, int64_t b, const std::string& axis) {
  if (axis == "all") return true;
  return axis == "x" ? a % kCols == b % kCols : a / kCols == b / kCols;
}

/// The definition: what core b has heard of core a by a chain of meetings since a's step.
bool ordered(const std::vector<Step>& steps, size_t from, int64_t a, size_t to, int64_t b) {
  std::vector<bool> knows(kCores);
  knows[static_cast<size_t>(a)] = true;
  for (size_t k = from + 1; k < to; ++k) {
    if (steps[k].kind != Step::Meet) continue;
    std::vector<bool> next = knows;
    for (int64_t p = 0; p < kCores; ++p) {
      for (int64_t q = 0; q < kCores; ++q) {
        if (knows[static_cast<size_t>(p)] && same_group(p, q, steps[k].axis)) next[static_cast<size_t>(q)] = true;
      }
    }
    knows = next;
  }
  return knows[static_cast<size_t>(b)];
}

bool any_race(const std::vector<Step>& steps, int64_t elements) {
  for (size_t from = 0; from < steps.size(); ++from) {
    for (size_t to = from; to < steps.size(); ++to) {
      if (steps[from].kind == Step::Meet || steps[to].kind == Step::Meet) continue;
      if (steps[from].kind == Step::Read && steps[to].kind == Step::Read) continue;
      for (int64_t a = 0; a < kCores; ++a) {
        for (int64_t b = 0; b < kCores; ++b) {
          const int64_t at = steps[from].elements[static_cast<size_t>(a)];
          if (a == b || at >= elements || at != steps[to].elements[static_cast<size_t>(b)]) continue;
          if (!ordered(steps, from, a, to, b)) return true;
        }
      }
    }
  }
  return false;
}

FunctionRef mesh_program(const std::vector<Step>& steps, int64_t elements) {
  const BufferRef v = param("v", kInt64, {elements}), sink = shared("sink", kInt64, {1});
  const BufferRef table = param("table", kInt64, {static_cast<int64_t>(steps.size()), kCores});
  const VarRef r = make_var("r"), c = make_var("c");
  std::vector<Stmt> body = {alloc(sink)};
  for (size_t k = 0; k < steps.size(); ++k) {
    const Expr at = subscript(table, {idx(static_cast<int64_t>(k)), r * idx(kCols) + c});
    const Expr guard = apply(Op::Lt, {at, idx(elements)});
    if (steps[k].kind == Step::Meet) body.push_back(tile_op(TileOpcode::CommBarrier, {steps[k].axis}));
    if (steps[k].kind == Step::Read) body.push_back(if_then(guard, store(sink, {idx(0)}, load(v, {at}))));
    if (steps[k].kind == Step::Write) body.push_back(if_then(guard, store(v, {at}, int_imm(1, kInt64))));
  }
  return mesh_function("main", mesh_xy(kRows, kCols), {}, {v, table},
                       kernel({r, c}, {idx(kRows), idx(kCols)}, 128, seq(body)));
}

/// Stores of random modes and loads in a nest of independent loops: those of one atomic mode may meet.
TEST(RaceCheck, AgreesWithAllPairsOfAtomicStores) {
  std::mt19937 random(7);
  int races = 0;
  constexpr int kTrials = 600;
  for (int trial = 0; trial < kTrials; ++trial) {
    struct Made {
      int mode;  ///< -1: a load
      int64_t element, iteration;
    };
    const BufferRef v = param("v", kInt64, {2}), sink = shared("sink", kInt64, {100});
    const VarRef i = make_var("i");
    std::vector<Made> made;
    std::vector<Stmt> body;
    for (int64_t n = 0; n < 3; ++n) {
      for (int64_t iteration = 0; iteration < 3; ++iteration) {
        if (random() % 5 < 3) continue;
        const Made one{static_cast<int>(random() % (kStoreModes + 1)) - 1, static_cast<int64_t>(random() % 2),
                       iteration};
        const Stmt access =
            one.mode < 0 ? store(sink, {idx(n * 3 + iteration)}, load(v, {idx(one.element)}))
                         : store(v, {idx(one.element)}, int_imm(1, kInt64), {}, static_cast<StoreMode>(one.mode));
        body.push_back(if_then(apply(Op::Eq, {Expr(i), idx(iteration)}), access));
        made.push_back(one);
      }
    }
    bool expected = false;
    for (const Made& a : made) {
      for (const Made& b : made) {
        const bool harmless = a.mode == b.mode && (a.mode < 0 || is_atomic(static_cast<StoreMode>(a.mode)));
        expected |= a.element == b.element && a.iteration != b.iteration && !harmless;
      }
    }
    const FunctionRef f =
        function("main", {v}, one_block({alloc(sink), for_loop(LoopKind::Parallel, i, idx(3), seq(std::move(body)))}));
    std::vector<int64_t> memory(2);
    ASSERT_EQ(verdict(f, {tensor(memory, {2})}, kRaces).has_value(), expected) << "trial " << trial;
    races += expected;
  }
  EXPECT_GT(races, kTrials / 10);
  EXPECT_LT(races, kTrials * 9 / 10);
}

TEST(RaceCheck, AgreesWithAllPairsOfTheCoresOfAMesh) {
  std::mt19937 random(11);
  int races = 0;
  constexpr int kTrials = 1500;
  constexpr int64_t kElements = 5;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<Step> steps;
    std::vector<int64_t> table;
    for (int k = 0; k < 7; ++k) {
      Step step{static_cast<Step::Kind>(random() % 3), {}, std::vector<std::string>{"x", "y", "all"}[random() % 3]};
      for (int64_t core = 0; core < kCores; ++core) step.elements.push_back(static_cast<int64_t>(random() % 26));
      table.insert(table.end(), step.elements.begin(), step.elements.end());
      steps.push_back(step);
    }
    std::vector<int64_t> v(kElements);
    const bool expected = any_race(steps, kElements);
    const std::optional<Code> found =
        verdict(mesh_program(steps, kElements), {tensor(v, {kElements}), tensor(table, {7, kCores})}, kRaces);
    ASSERT_EQ(found.has_value(), expected) << "trial " << trial;
    ASSERT_EQ(found.value_or(Code::RacingCores), Code::RacingCores);
    races += expected;
  }
  EXPECT_GT(races, kTrials / 5);
  EXPECT_LT(races, kTrials * 4 / 5);
}

/// v[from(i)] = v[to(i)] + 1 for i in a parallel loop of 6.
std::optional<Diagnostic> shifted(const std::function<Expr(Expr)>& to, const std::function<Expr(Expr)>& from) {
  const BufferRef v = param("v", kInt32, {7});
  const VarRef i = make_var("i");
  const Stmt s = store(v, {to(i)}, load(v, {from(i)}) + int_imm(1, kInt32));
  std::vector<int32_t> data(7);
  return checked(function("main", {v}, one_block({for_loop(LoopKind::Parallel, i, idx(6), s)})), {tensor(data, {7})});
}

TEST(RaceCheck, IsIndependentOfTheOrderOfIterations) {
  const auto up = [](Expr i) { return i; };
  const auto next = [](Expr i) { return i + idx(1); };
  const auto down = [](Expr i) { return idx(5) - i; };
  const auto down_next = [](Expr i) { return idx(6) - i; };
  EXPECT_TRUE(shifted(up, next));
  EXPECT_TRUE(shifted(next, up));
  EXPECT_TRUE(shifted(down, down_next));
  EXPECT_TRUE(shifted(down_next, down));
  EXPECT_FALSE(shifted(up, up));
  EXPECT_FALSE(shifted(down, down));
}

TEST(RaceCheck, TheBlocksOfALaunchAreIndependentAndLaunchesAreOrdered) {
  const BufferRef g = make_buffer("g", kInt32, MemoryScope::Global, {idx(1)});
  const auto launch = [&](int64_t blocks) {
    return kernel({make_var("b")}, {idx(blocks)}, 128, store(g, {idx(0)}, int_imm(1, kInt32)));
  };
  EXPECT_EQ(verdict(function("main", {}, seq({alloc(g), launch(2)})), {}), Code::RacingBlocks);
  EXPECT_EQ(verdict(function("main", {}, seq({alloc(g), launch(1), launch(1)})), {}), std::nullopt);
}

TEST(RaceCheck, PersistentIterationsHaveTheKernelsBuffersForThemselves) {
  const BufferRef s = shared("s", kInt32, {1}), g = make_buffer("g", kInt32, MemoryScope::Global, {idx(1)});
  const auto loop = [&](const BufferRef& target) {
    const Stmt body = store(target, {idx(0)}, int_imm(1, kInt32));
    return function(
        "main", {},
        seq({alloc(g), one_block({alloc(s), for_loop(LoopKind::Persistent, make_var("k"), idx(3), body)})}));
  };
  EXPECT_EQ(verdict(loop(s), {}), std::nullopt);
  EXPECT_EQ(verdict(loop(g), {}), Code::RacingIterations);
}

TEST(RaceCheck, TilesOfAParallelTileLoop) {
  const auto loop = [](bool parallel) {
    const BufferRef x = shared("x", kInt32, {5}, {2}), sum = shared("sum", kInt32, {1});
    const VarRef i = make_var("i");
    const Stmt body = store(sum, {idx(0)}, load(sum, {idx(0)}) + int_imm(1, kInt32));
    return function(
        "main", {},
        one_block({alloc(x), alloc(sum), store(sum, {idx(0)}, int_imm(0, kInt32)), for_tiles(x, {i}, parallel, body)}));
  };
  EXPECT_EQ(verdict(loop(true), {}), Code::RacingIterations);
  EXPECT_EQ(verdict(loop(false), {}), std::nullopt);
}

/// Iterations of a parallel loop use private memory around it; `carried` reads what the iteration before wrote, where
/// one memory serves them all in turn.
TEST(RaceCheck, PrivateMemoryCarriesNothingToOtherIterations) {
  constexpr Checks kInTurn{.uninitialised = true, .races = true, .in_turn = true};
  const auto loop = [](bool carried) {
    const BufferRef t = make_buffer("t", kInt32, MemoryScope::Local, {idx(1)}), v = param("v", kInt32, {4});
    const VarRef i = make_var("i");
    const Stmt set = store(t, {idx(0)}, cast(i, kInt32)), get = store(v, {i}, load(t, {idx(0)}));
    const Stmt first = store(t, {idx(0)}, int_imm(0, kInt32));
    return function("main", {v},
                    one_block({alloc(t), first,
                               for_loop(LoopKind::Parallel, i, idx(4), carried ? seq({get, set}) : seq({set, get}))}));
  };
  std::vector<int32_t> data(4);
  for (const Checks& checks : {Checks::all(), kInTurn}) {
    EXPECT_EQ(verdict(loop(false), {tensor(data, {4})}, checks), std::nullopt);
    EXPECT_EQ(data, (std::vector<int32_t>{0, 1, 2, 3}));
  }
  EXPECT_EQ(verdict(loop(true), {tensor(data, {4})}, kInTurn), Code::RacingIterations);
  EXPECT_EQ(verdict(loop(true), {tensor(data, {4})}), std::nullopt);
  EXPECT_EQ(data, std::vector<int32_t>(4));
}

TEST(RaceCheck, CoresWithTheSameShardStoreTheSameValue) {
  const auto run = [](std::vector<std::pair<std::string, int64_t>> sharding, bool equal) {
    const BufferRef v = param("v", kInt32, {2});
    const VarRef r = make_var("r"), c = make_var("c");
    const Stmt s = store(v, {r}, equal ? cast(r, kInt32) : cast(r * idx(2) + c, kInt32));
    const MeshTensor placed{v, std::move(sharding), {1}, {}};
    std::vector<int32_t> data(2);
    return verdict(mesh_function("main", mesh_xy(2, 2), {placed}, {v}, kernel({r, c}, {idx(2), idx(2)}, 128, s)),
                   {tensor(data, {2})});
  };
  EXPECT_EQ(run({{"x", 0}}, true), std::nullopt);
  EXPECT_EQ(run({{"x", 0}}, false), Code::RacingCores);
  EXPECT_EQ(run({{"y", 0}}, true), Code::RacingCores);
}

TEST(RaceCheck, IsSwitchedOnByItself) {
  const BufferRef v = param("v", kInt32, {1});
  const FunctionRef f = function(
      "main", {v},
      one_block({for_loop(LoopKind::Parallel, make_var("i"), idx(2), store(v, {idx(0)}, int_imm(1, kInt32)))}));
  std::vector<int32_t> data(1);
  EXPECT_EQ(verdict(f, {tensor(data, {1})}, {}), std::nullopt);
  EXPECT_EQ(verdict(f, {tensor(data, {1})}, {.uninitialised = true, .races = false}), std::nullopt);
  EXPECT_EQ(verdict(f, {tensor(data, {1})}, kRaces), Code::RacingIterations);
  EXPECT_EQ(interp::parse_checks("all")->races, true);
  EXPECT_EQ(interp::parse_checks("races")->uninitialised, false);
  EXPECT_EQ(interp::parse_checks("uninitialised")->races, false);
  EXPECT_FALSE(interp::parse_checks("some"));
}

}  // namespace
}  // namespace helve::testing
