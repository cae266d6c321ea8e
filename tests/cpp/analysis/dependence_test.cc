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

/// The pairs of statements between which there is a dependence.
std::set<std::pair<size_t, size_t>> related(const FunctionRef& f) {
  const Dependences found = dependences(*f, f->body, ExactEngine());
  std::set<std::pair<size_t, size_t>> out;
  for (const Dependence& each : found.list) {
    if (found.pairs(each)) out.emplace(each.first, each.second);
  }
  return out;
}

const std::set<std::pair<size_t, size_t>> kOrdered = {{0, 1}};

TEST(Dependence, BuffersAtPlacesOfOneMemoryMayHoldOneElement) {
  const auto placed = [](const char* name, std::optional<int64_t> at) {
    Ref<Buffer> buffer = make_ref<Buffer>(*shared(name, kInt32, {8}));
    buffer->offset = at;
    return BufferRef(buffer);
  };
  const auto stored = [&](std::optional<int64_t> first, std::optional<int64_t> second) {
    const BufferRef x = placed("X", first), y = placed("Y", second);
    return function(
        "f", {},
        seq({alloc(x), alloc(y), store(x, {idx(0)}, int_imm(1, kInt32)), store(y, {idx(0)}, int_imm(2, kInt32))}));
  };
  EXPECT_EQ(related(stored(0, 0)), kOrdered);
  EXPECT_TRUE(related(stored({}, {})).empty());
  EXPECT_TRUE(related(stored(0, {})).empty()) << "memory without a place is its own";
}

TEST(Dependence, MemoryOfAnotherCoreMayBeAnyOfItsScope) {
  const BufferRef x = shared("X", kInt32, {8}), y = shared("Y", kInt32, {8}), p = shared("P", kInt32, {8}),
                  b = param("B", kInt32, {8});
  const auto stored = [&](const BufferRef& first, const BufferRef& second) {
    return function("f", {b},
                    seq({alloc(x), alloc(y), peer(p, x, {idx(0), idx(1)}), store(first, {idx(0)}, int_imm(1, kInt32)),
                         store(second, {idx(0)}, int_imm(2, kInt32))}));
  };
  EXPECT_EQ(related(stored(p, x)), kOrdered);
  EXPECT_EQ(related(stored(y, p)), kOrdered);
  EXPECT_TRUE(related(stored(x, y)).empty());
  EXPECT_TRUE(related(stored(p, b)).empty());
}

TEST(Dependence, TensorsThatTheProgramSaysMayOverlap) {
  const BufferRef a = param("A", kInt32, {8}), b = param("B", kInt32, {8});
  const Stmt body = seq({store(a, {idx(0)}, int_imm(1, kInt32)), store(b, {idx(0)}, int_imm(2, kInt32))});
  EXPECT_TRUE(related(function("f", {a, b}, body)).empty());
  Ref<Function> f = make_ref<Function>(*function("f", {a, b}, body));
  f->may_alias.push_back({{a, b}, {}, {}});
  EXPECT_EQ(related(FunctionRef(f)), kOrdered);
}

TEST(Dependence, WhatCopiesHavePastTheEndIsNowhere) {
  const BufferRef a = param("A", kInt32, {16}), x = shared("X", kInt32, {16});
  const auto copied = [&](int64_t first, int64_t second) {
    const auto to = [&](int64_t at) {
      return tile_op(TileOpcode::Copy, {whole_region(x), box(a, {{idx(at), 16}}), int_imm(0, kInt32)});
    };
    return function("f", {a}, seq({alloc(x), to(first), to(second)}));
  };
  EXPECT_EQ(related(copied(8, 15)), kOrdered);
  EXPECT_TRUE(related(copied(8, 16)).empty());
}

TEST(Dependence, ASubscriptThatIsWrittenInBetweenMayBeAny) {
  const BufferRef a = param("A", kInt32, {8}), at = param("I", kInt32, {1});
  const Expr place = cast(load(at, {idx(0)}), kIndex), one = int_imm(1, kInt32);
  const auto stored = [&](const BufferRef& between) {
    return related(function("f", {a, at},
                            seq({alloc(shared("X", kInt32, {8})), store(a, {place}, one), store(between, {idx(0)}, one),
                                 store(a, {place + idx(1)}, one)})));
  };
  EXPECT_TRUE(stored(at).contains({0, 2}));
  const FunctionRef f =
      function("f", {a, at}, seq({store(a, {place}, one), store(at, {idx(0)}, one), store(a, {place}, one)}));
  const Dependences found = dependences(*f, f->body, ExactEngine());
  for (const Dependence& each : found.list) {
    if (each.first == 0 && each.second == 2) {
      EXPECT_EQ(found.pairs(each)->inexact(), "a subscript reads memory that is written");
    }
  }
  EXPECT_FALSE(stored(param("B", kInt32, {8})).contains({0, 2})) << "the next element";
}

TEST(Dependence, ATileIsAllOfItsElements) {
  const BufferRef x = shared("X", kInt32, {8}, {4});
  const auto stored = [&](int64_t tile) {
    const VarRef i = make_var("i");
    const Stmt tiles = for_tiles(x, {i}, false, tile_store(x, {idx(tile)}, tile_load(x, {idx(tile)})));
    return related(function("f", {}, seq({alloc(x), tiles, store(x, {idx(5)}, int_imm(1, kInt32))})));
  };
  EXPECT_TRUE(stored(1).contains({0, 1}));
  EXPECT_FALSE(stored(0).contains({0, 1}));
}

TEST(Dependence, ABlockOfACoreBeginsBehindThoseBeforeIt) {
  const BufferRef a = param("A", kInt32, {16}), x = shared("X", kInt32, {4});
  const VarRef row = make_var("row"), core = make_var("core");
  const auto stored = [&](int64_t at) {
    const Stmt tile = tile_op(TileOpcode::MeshTensorCopy,
                              {whole_region(x), whole_region(a), std::vector<Expr>{idx(0)}, int_imm(0, kInt32)});
    const Stmt one = if_then(apply(Op::Eq, {Expr(core), idx(1)}), store(a, {idx(at)}, int_imm(1, kInt32)));
    return related(mesh_function("f", mesh_xy(1, 2), {{a, {{"y", 0}}, {4}, {}}}, {a},
                                 kernel({row, core}, {idx(1), idx(2)}, 128, seq({alloc(x), tile, one}))));
  };
  EXPECT_TRUE(stored(9).contains({0, 1}));
  EXPECT_FALSE(stored(13).contains({0, 1}));
}

/// What is not known of a name matters where the name is used.
TEST(Dependence, ANameThatNothingUsesLeavesPairsExact) {
  const BufferRef a = param("A", kInt32, {8}), at = param("I", kInt32, {1});
  const VarRef v = make_var("v");
  const Expr one = int_imm(1, kInt32);
  const auto doubts = [&](const Expr& place) {
    const FunctionRef f = function("f", {a, at},
                                   seq({bind(v, cast(load(at, {idx(0)}), kIndex)), store(at, {idx(0)}, one),
                                        store(a, {idx(3)}, one), store(a, {place}, one)}));
    const Dependences found = dependences(*f, f->body, ExactEngine());
    for (const Dependence& each : found.list) {
      if (each.first == 2 && each.second == 3 && found.pairs(each)) return found.pairs(each)->inexact();
    }
    return std::string("none");
  };
  EXPECT_EQ(doubts(idx(3)), "");
  EXPECT_EQ(doubts(Expr(v)), "the value of 'v' is not known");
}

TEST(Dependence, ABarrierKeepsItsPlaceAmongAll) {
  const BufferRef a = param("A", kInt32, {8});
  const Stmt one = store(a, {idx(0)}, int_imm(1, kInt32)), barrier = tile_op(TileOpcode::SyncThreads, {});
  EXPECT_EQ(related(function("f", {a}, seq({one, barrier}))), kOrdered);
  EXPECT_EQ(related(function("f", {a}, seq({barrier, one}))), kOrdered);
}

TEST(Dependence, CopiesThatAreBegunKeepTheirOrder) {
  const BufferRef a = param("A", kInt32, {8}), b = param("B", kInt32, {8});
  const BufferRef x = shared("X", kInt32, {8}), y = shared("Y", kInt32, {8});
  const auto copied = [&](TileOpcode first, TileOpcode second) {
    return function("f", {a, b},
                    seq({alloc(x), alloc(y), tile_op(first, {whole_region(a), whole_region(x), int_imm(0, kInt32)}),
                         tile_op(second, {whole_region(b), whole_region(y), int_imm(0, kInt32)})}));
  };
  EXPECT_EQ(related(copied(TileOpcode::CopyAsync, TileOpcode::CopyAsync)), kOrdered);
  EXPECT_TRUE(related(copied(TileOpcode::Copy, TileOpcode::CopyAsync)).empty());
  EXPECT_TRUE(related(copied(TileOpcode::Copy, TileOpcode::Copy)).empty());
}

}  // namespace
}  // namespace helve::testing
