// Uses of elements that were never written.
#include "checked.h"

namespace helve::testing {
namespace {

Span line(int number) { return Span{intern_file("k.py"), number, 5, number, 9}; }

/// The report of a block on an int32 parameter v of shape (4,), with shared s and t of that shape of which s[1] is
/// written.
std::optional<Diagnostic> report(const std::function<std::vector<Stmt>(BufferRef v, BufferRef s, BufferRef t)>& make) {
  const BufferRef v = param("v", kInt32, {4}), s = shared("s", kInt32, {4}), t = shared("t", kInt32, {4});
  std::vector<Stmt> body = {alloc(s, line(1)), alloc(t, line(2)), store(s, {idx(1)}, int_imm(7, kInt32))};
  for (const Stmt& stmt : make(v, s, t)) body.push_back(stmt);
  std::vector<int32_t> data(4, 1);
  return checked(function("main", {v}, one_block(body)), {tensor(data, {4})});
}

bool faulty(const std::function<std::vector<Stmt>(BufferRef v, BufferRef s, BufferRef t)>& make) {
  const std::optional<Diagnostic> found = report(make);
  if (!found) return false;
  EXPECT_EQ(found->code, Code::UninitialisedRead) << to_text(*found);
  return true;
}

Expr at(const BufferRef& b, int64_t i) { return load(b, {idx(i)}, line(3)); }
Stmt put(const BufferRef& b, int64_t i, const Expr& value) { return store(b, {idx(i)}, value, line(4)); }
Expr one() { return int_imm(1, kInt32); }

TEST(UninitialisedCheck, UsesAreReported) {
  for (int64_t i : {0, 1}) {
    const bool unset = i == 0;
    EXPECT_EQ(faulty([&](auto, auto s, auto t) { return std::vector{put(t, 0, at(s, i) + one())}; }), unset);
    EXPECT_EQ(faulty([&](auto v, auto s, auto) { return std::vector{put(v, 0, at(s, i))}; }), unset);
    EXPECT_EQ(faulty([&](auto, auto s, auto t) {
                return std::vector{if_then(apply(Op::Gt, {at(s, i), one()}), put(t, 0, one()))};
              }),
              unset);
    EXPECT_EQ(faulty([&](auto, auto s, auto t) {
                return std::vector{store(t, {apply(Op::Min, {cast(at(s, i), kIndex), idx(3)})}, one())};
              }),
              unset);
    EXPECT_EQ(faulty([&](auto, auto s, auto t) {
                return std::vector{
                    tile_op(TileOpcode::ReduceSum, {box(s, {{idx(i), 1}}), box(t, {{idx(0), 1}}), int64_t{0}, true})};
              }),
              unset);
    EXPECT_EQ(faulty([&](auto, auto s, auto t) {  // an accumulator
                return std::vector{
                    put(t, 0, one()),
                    tile_op(TileOpcode::ReduceSum, {box(t, {{idx(0), 1}}), box(s, {{idx(i), 1}}), int64_t{0}, false})};
              }),
              unset);
    EXPECT_EQ(faulty([&](auto v, auto s, auto) {
                return std::vector{
                    tile_op(TileOpcode::Copy, {box(s, {{idx(i), 1}}), box(v, {{idx(0), 1}}), int_imm(0, kInt32)})};
              }),
              unset);
  }
}

TEST(UninitialisedCheck, CopiesHandItOn) {
  const auto copy = [](const BufferRef& from, const BufferRef& to) {
    return tile_op(TileOpcode::Copy, {whole_region(from), whole_region(to), int_imm(0, kInt32)}, line(5));
  };
  const VarRef x = make_var("x", kInt32);
  for (int64_t i : {0, 1}) {
    const bool unset = i == 0;
    const auto then_used = [&](const std::vector<Stmt>& copied, const BufferRef& t, const BufferRef& v, int64_t place) {
      std::vector<Stmt> out = copied;
      out.push_back(put(v, 0, at(t, place)));
      return out;
    };
    EXPECT_FALSE(faulty([&](auto, auto s, auto t) { return std::vector{copy(s, t)}; }));
    EXPECT_FALSE(faulty([&](auto, auto s, auto t) { return std::vector{put(t, 2, at(s, i))}; }));
    EXPECT_EQ(faulty([&](auto v, auto s, auto t) { return then_used({copy(s, t)}, t, v, i); }), unset);
    EXPECT_EQ(faulty([&](auto v, auto s, auto t) { return then_used({put(t, 2, at(s, i))}, t, v, 2); }), unset);
    EXPECT_EQ(faulty([&](auto v, auto s, auto t) { return then_used({bind(x, at(s, i)), put(t, 2, x)}, t, v, 2); }),
              unset);
    EXPECT_EQ(faulty([&](auto v, auto s, auto t) {
                const Expr chosen = apply(Op::Select, {apply(Op::Lt, {at(v, 0), one()}), one(), at(s, i)});
                return then_used({put(t, 2, chosen)}, t, v, 2);
              }),
              unset);
    EXPECT_EQ(faulty([&](auto v, auto s, auto) { return std::vector{bind(x, at(s, i)), put(v, 0, x)}; }), unset);
    // a later store gives it a value
    EXPECT_FALSE(faulty([&](auto v, auto s, auto t) { return then_used({copy(s, t), put(t, i, one())}, t, v, i); }));
  }
}

TEST(UninitialisedCheck, ExtentsOfArgumentsAreKnownBeforeTheRun) {
  const VarRef n = make_var("n"), i = make_var("i");
  const BufferRef v = make_buffer("v", kInt32, MemoryScope::Param, {n});
  const FunctionRef f = dynamic_function("main", {n}, {v}, one_block({serial(i, n, {store(v, {i}, one())})}));
  std::vector<int32_t> data(5);
  EXPECT_EQ(verdict(f, {tensor(data, {5})}), std::nullopt);
  EXPECT_EQ(verdict(f, {tensor(data, {0})}), std::nullopt);
  EXPECT_EQ(data, std::vector<int32_t>(5, 1));
}

TEST(UninitialisedCheck, ParametersHoldValues) {
  EXPECT_FALSE(faulty([](auto v, auto, auto) { return std::vector{put(v, 0, at(v, 1) + one())}; }));
}

TEST(UninitialisedCheck, MemoryIsFreshEachTimeItIsAllocated) {
  const auto loop = [](LoopKind kind, bool inside) {
    return report([&](auto v, auto, auto) {
      const BufferRef u = shared("u", kInt32, {1});
      const VarRef k = make_var("k");
      const Stmt first = if_then(apply(Op::Eq, {k, idx(0)}), put(u, 0, one()));
      const Stmt use = store(v, {k}, load(u, {idx(0)}, line(3)));
      const Stmt made = alloc(u, line(6));
      if (inside) return std::vector{for_loop(kind, k, idx(2), seq({made, first, use}), line(7))};
      return std::vector{made, for_loop(kind, k, idx(2), seq({first, use}), line(7))};
    });
  };
  EXPECT_FALSE(loop(LoopKind::Serial, false));
  const auto text = [](const std::string& note) {
    return "error[HV0704]: element (0,) of 'u' is used before it is written\n  --> k.py:3:5\nnote: " + note +
           "\nnote: with bx=0, k=1\nhelp: write every element that is used first, for example with T.clear(u)";
  };
  EXPECT_EQ(to_text(loop(LoopKind::Serial, true).value()), text("'u' is allocated here (k.py:6:5)"));
  EXPECT_EQ(to_text(loop(LoopKind::Persistent, false).value()),
            text("at the start of each iteration the contents of 'u' are undefined (k.py:7:5)"));
}

TEST(UninitialisedCheck, TilesAreComputedElementByElement) {
  const auto run = [](bool all, bool used) {
    return verdict(function("main", {},
                            [&] {
                              const BufferRef x = shared("x", kInt32, {5}, {2}), y = shared("y", kInt32, {5}, {2}),
                                              sum = shared("sum", kInt32, {1});
                              const VarRef i = make_var("i"), j = make_var("j");
                              std::vector<Stmt> body = {
                                  alloc(x), alloc(y), alloc(sum),
                                  tile_op(TileOpcode::Fill, {box(x, {{idx(0), all ? 5 : 4}}), one()}),
                                  for_tiles(x, {i}, true, tile_store(y, {i}, tile_load(x, {i})))};
                              if (used)
                                body.push_back(for_tiles(x, {j}, true, tile_store(x, {j}, tile_load(y, {j}) + one())));
                              return one_block(body);
                            }()),
                   {});
  };
  EXPECT_EQ(run(true, true), std::nullopt);
  EXPECT_EQ(run(false, false), std::nullopt);
  EXPECT_EQ(run(false, true), Code::UninitialisedRead);
}

/// On a 1 x 3 mesh core 1 leaves s[1] unset; after the collective each core stores d[place] to its row of the result.
std::optional<Code> after_collective(TileOpcode op, std::vector<TileOperand> rest, int64_t extent, int64_t core,
                                     int64_t place) {
  const BufferRef v = param("v", kInt32, {3}), s = shared("s", kInt32, {3}), d = shared("d", kInt32, {extent});
  const VarRef r = make_var("r"), c = make_var("c");
  std::vector<TileOperand> operands = {whole_region(s), whole_region(d)};
  operands.insert(operands.end(), rest.begin(), rest.end());
  const Stmt set = store(s, {idx(1)}, one());
  const Stmt body = seq({alloc(s), alloc(d), store(s, {idx(0)}, one()), store(s, {idx(2)}, one()),
                         if_then(apply(Op::Ne, {c, idx(1)}), set), tile_op(op, operands),
                         if_then(apply(Op::Eq, {c, idx(core)}), store(v, {c}, load(d, {idx(place)})))});
  std::vector<int32_t> data(3);
  return verdict(mesh_function("main", mesh_xy(1, 3), {}, {v}, kernel({r, c}, {idx(1), idx(3)}, 128, body)),
                 {tensor(data, {3})});
}

TEST(UninitialisedCheck, CollectivesThatCopyHandItOn) {
  const std::string y = "y";
  for (int64_t core = 0; core < 3; ++core) {
    for (int64_t place = 0; place < 9; ++place) {
      EXPECT_EQ(after_collective(TileOpcode::CommAllGather, {y, int64_t{0}}, 9, core, place).has_value(), place == 4);
      if (place >= 3) continue;
      EXPECT_EQ(after_collective(TileOpcode::CommBroadcast, {int64_t{1}, y}, 3, core, place).has_value(), place == 1);
      EXPECT_FALSE(after_collective(TileOpcode::CommBroadcast, {int64_t{0}, y}, 3, core, place));
      EXPECT_EQ(after_collective(TileOpcode::CommPermute, {int64_t{1}, y}, 3, core, place).has_value(),
                core == 2 && place == 1);
      EXPECT_EQ(after_collective(TileOpcode::CommAllToAll, {y, int64_t{0}}, 3, core, place).has_value(),
                core == 1 && place == 1);
    }
  }
  EXPECT_EQ(after_collective(TileOpcode::CommAllReduce, {std::string("sum"), y}, 3, 0, 0), Code::UninitialisedRead);
}

TEST(UninitialisedCheck, ReportsNameTheCopyAndTheCoordinates) {
  EXPECT_EQ(to_text(report([](auto v, auto s, auto t) {
                      return std::vector{put(t, 2, at(s, 3)), put(v, 0, at(t, 2))};
                    }).value()),
            "error[HV0704]: element (2,) of 't' is used before it is written\n  --> k.py:3:5\n"
            "note: what is copied to it here was never written (k.py:4:5)\nnote: with bx=0\n"
            "help: write every element that is used first, for example with T.clear(t)");
}

TEST(UninitialisedCheck, OtherFaultsNameTheCoordinates) {
  const BufferRef v = param("v", kInt32, {2, 3});
  const VarRef r = make_var("r"), c = make_var("c"), i = make_var("i");
  const Stmt s = store(v, {r, c * idx(2) + i}, one(), line(3));
  std::vector<int32_t> data(6);
  EXPECT_EQ(
      checked_text(
          mesh_function("main", mesh_xy(2, 2), {}, {v}, kernel({r, c}, {idx(2), idx(2)}, 128, serial(i, idx(2), {s}))),
          {tensor(data, {2, 3})}),
      "error[HV0210]: index 3 of dimension 1 of 'v' is outside [0, 3)\n  --> k.py:3:5\nnote: 'v' has shape (2, 3)\n"
      "note: with i=1, core (0, 1)\nhelp: guard the access or change the loop's extent");
}

TEST(UninitialisedCheck, ElementsOfStridedArgumentsAreNamedBySubscripts) {
  const BufferRef v = make_buffer("v", kInt32, MemoryScope::Param, {idx(3), idx(2)}, {}, {idx(1), idx(4)});
  const FunctionRef f = function(
      "main", {v},
      one_block({for_loop(LoopKind::Parallel, make_var("i"), idx(2), store(v, {idx(2), idx(1)}, one(), line(3)))}));
  std::vector<int32_t> data(8);
  EXPECT_NE(checked_text(f, {TensorArg{data.data(), {3, 2}, {1, 4}}}).find("element (2, 1) of 'v'"), std::string::npos);
}

}  // namespace
}  // namespace helve::testing
