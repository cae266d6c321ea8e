// Accesses with what stands around them.
#include "helve/analysis/access.h"

#include <gtest/gtest.h>

#include "helve/ir/expr/text.h"
#include "ir/tensor/programs/build_ir.h"

namespace helve::testing {
namespace {

const VarRef i = make_var("i"), k = make_var("k");

/// "i in 0+8; (i < 3)": the steps of a path.
std::string text_of(const Path& path) {
  std::string out;
  for (const StepRef& step : path) {
    out += out.empty() ? "" : "; ";
    if (step->condition) out += to_text(step->condition);
    for (size_t d = 0; d < step->begins.size(); ++d) {
      out += step->vars[d]->name + " in " + to_text(step->begins[d]) + "+" + to_text(step->extents[d]);
    }
    if (step->begins.empty() && !step->vars.empty()) out += step->vars[0]->name;
  }
  return out;
}

std::string line_of(const Access& access) {
  std::string out = (access.write ? "write " : "read ") + text_of(access) + " [";
  for (const Range& range : access.ranges) out += to_text(range.begin) + ",";
  return out + "] where " + text_of(access.path);
}

std::vector<std::string> texts(const AccessModel& model) {
  std::vector<std::string> out;
  for (const Access& access : model.accesses) out.push_back(line_of(access));
  return out;
}

TEST(AccessModel, LoopsAndGuardsStandOnThePath) {
  const BufferRef a = param("A", kFloat32, {8}), b = param("B", kFloat32, {8});
  const Stmt body =
      if_then(less(Expr(i), idx(3)), store(b, {Expr(i)}, load(a, {Expr(i) + idx(1)})), store(b, {Expr(i)}, f32(0)));
  const FunctionRef f = function("f", {a, b}, serial(i, idx(8), {body}));
  EXPECT_EQ(texts(access_model(*f)), (std::vector<std::string>{
                                         "read A[i + 1] [i + 1,] where i in 0+8; i < 3",
                                         "write B[i] [i,] where i in 0+8; i < 3",
                                         "write B[i] [i,] where i in 0+8; not i < 3",
                                     }));
}

TEST(AccessModel, LazyOperandsAreGuarded) {
  const BufferRef a = param("A", kFloat32, {8}), b = param("B", kFloat32, {8});
  const Expr chosen = select(less(Expr(i), idx(3)), load(a, {Expr(i)}), f32(1));
  const FunctionRef f = function("f", {a, b}, serial(i, idx(8), {store(b, {Expr(i)}, chosen)}));
  EXPECT_EQ(texts(access_model(*f))[0], "read A[i] [i,] where i in 0+8; i < 3");
}

TEST(AccessModel, AnUpdateReadsItsElementLast) {
  const BufferRef a = param("A", kFloat32, {8}), b = param("B", kFloat32, {8});
  const Stmt update = store(b, {Expr(i)}, load(a, {Expr(i)}), {}, StoreMode::Add);
  const FunctionRef f = function("f", {a, b}, serial(i, idx(8), {update}));
  const AccessModel model = access_model(*f);
  EXPECT_EQ(texts(model), (std::vector<std::string>{
                              "read A[i] [i,] where i in 0+8",
                              "read B[i] [i,] where i in 0+8",
                              "write B[i] [i,] where i in 0+8",
                          }));
  EXPECT_EQ(model.accesses[0].mode, StoreMode::Write);
  EXPECT_EQ(model.accesses[1].mode, StoreMode::Add);
  EXPECT_EQ(model.accesses[2].mode, StoreMode::Add);
  EXPECT_EQ(to_text(model.accesses[2].value), "B[i] + A[i]");
  EXPECT_EQ(model.bounds.size(), 2u);
}

/// The bulk copy by TMA and the copy of a run count in queues of their own; the rest is made by who runs it.
TEST(AccessModel, ExecutorsAndQueuesOfCopies) {
  const BufferRef a = param("A", kFloat32, {64}), s = shared("S", kFloat32, {64});
  const Region from{a, {{idx(0), idx(64), false}}}, to{s, {{idx(0), idx(64), false}}};
  const Stmt body = seq({tile_op(TileOpcode::CpAsyncBulk, {from, to}), tile_op(TileOpcode::Copy, {from, to}),
                         store(s, {idx(0)}, f32(0))});
  const AccessModel model = access_model(body);
  ASSERT_EQ(model.accesses.size(), 5u);
  for (size_t n : {0, 1}) {
    EXPECT_EQ(model.accesses[n].executor, Executor::Async);
    ASSERT_TRUE(model.accesses[n].queue.has_value());
  }
  for (size_t n : {2, 3, 4}) {
    EXPECT_EQ(model.accesses[n].executor, Executor::Path);
    EXPECT_FALSE(model.accesses[n].queue.has_value());
  }
}

TEST(AccessModel, AskedOfSomeBuffersItHasTheAccessesOfThese) {
  const BufferRef a = param("A", kFloat32, {8}), s = shared("S", kFloat32, {8});
  const Stmt body = serial(i, idx(8), {store(s, {Expr(i)}, load(a, {Expr(i)}))});
  const AccessModel model = access_model(body, {}, [](const Buffer& each) { return !is_global(each); });
  ASSERT_EQ(model.accesses.size(), 1u);
  EXPECT_EQ(text_of(model.accesses[0]), "S[i]");
  EXPECT_EQ(model.loop_at.size(), 1u);
  EXPECT_EQ(model.loop_at.at(0)->vars[0], i);
}

TEST(AccessModel, NamesStandForTheirValues) {
  const BufferRef b = param("B", kFloat32, {8});
  const FunctionRef f = function("f", {b}, serial(i, idx(4), {bind(k, Expr(i) * idx(2)), store(b, {Expr(k)}, f32(1))}));
  EXPECT_EQ(texts(access_model(*f)), std::vector<std::string>{"write B[k] [i * 2,] where i in 0+4"});
}

TEST(AccessModel, ANameOfWhatChangesIsAVariable) {
  const BufferRef n = param("n", kInt32, {1}), b = param("B", kFloat32, {8});
  const Expr read = cast(load(n, {idx(0)}), kIndex);
  const FunctionRef f = function(
      "f", {n, b},
      serial(i, idx(4),
             {bind(k, read), store(b, {Expr(k)}, f32(1)), store(n, {idx(0)}, constant_of(int64_t{3}, kInt32))}));
  EXPECT_EQ(texts(access_model(*f))[1], "write B[k] [k,] where i in 0+4; k");
}

TEST(AccessModel, TwoVisitsOfOneStatementAreTwo) {
  const BufferRef b = param("B", kFloat32, {8});
  const Stmt once = store(b, {idx(2)}, f32(1));
  const FunctionRef f = function("f", {b}, seq({once, serial(i, idx(4), {once})}));
  const AccessModel model = access_model(*f);
  ASSERT_EQ(model.accesses.size(), 2u);
  EXPECT_EQ(model.accesses[0].stmt, model.accesses[1].stmt);
  EXPECT_LT(model.accesses[0].visit, model.accesses[1].visit) << "in program order";
}

TEST(AccessModel, APartHasItsOwnVisits) {
  const BufferRef a = param("A", kFloat32, {8}), b = param("B", kFloat32, {8}), n = param("n", kInt32, {8});
  const Expr at = cast(load(n, {idx(0)}), kIndex);
  const Stmt part = seq({bind(k, at), if_then(less(Expr(i), idx(3)), store(b, {Expr(k)}, load(a, {Expr(i)})))});
  const Stmt change = store(n, {idx(0)}, int_imm(1, kInt32));
  const FunctionRef f = function("f", {a, b, n}, seq({change, serial(i, idx(8), {part})}));
  const AccessModel whole = access_model(*f), model = access_model(part);
  EXPECT_EQ(texts(whole)[2], "read A[i] [i,] where i in 0+8; k; i < 3");
  EXPECT_EQ(texts(model)[1], "read A[i] [i,] where i < 3") << "where nothing writes n, k is what it reads";
  EXPECT_EQ(model.accesses[0].visit, 1u) << "the sequence is visit 0";
  EXPECT_EQ(model.accesses[1].path[0]->visit, 2u);
  EXPECT_EQ(model.accesses[1].path[0]->stmt->kind, StmtKind::If);
  EXPECT_EQ(model.accesses[2].visit, 3u);
}

TEST(AccessModel, WhatAliasesAWrittenBufferIsNotConstant) {
  const BufferRef a = param("A", kInt32, {8}), b = param("B", kInt32, {8});
  const Stmt part = store(b, {idx(0)}, load(a, {idx(1)}));
  EXPECT_TRUE(access_model(part).constant.contains(a.get()));
  EXPECT_FALSE(access_model(part, {MayAlias{{a, b}, {}, {}}}).constant.contains(a.get()));
}

TEST(AccessModel, ALargeValueThatIsSharedIsReadOnce) {
  const BufferRef a = param("A", kFloat32, {8}), b = param("B", kFloat32, {8});
  Expr value = load(a, {Expr(i)});
  for (int n = 0; n < 40; ++n) value = value * value;
  const AccessModel model = access_model(serial(i, idx(8), {store(b, {Expr(i)}, value)}));
  EXPECT_LT(model.accesses.size(), 100u);
  EXPECT_EQ(model.accesses.back().value, value);
  EXPECT_EQ(model.accesses[0].load, model.accesses[1].load);
}

TEST(AccessModel, AnOperationReadsAndWritesItsRegions) {
  const BufferRef a = param("A", kFloat32, {2, 3}), b = param("B", kFloat32, {3, 4}), c = param("C", kFloat32, {2, 4});
  const Stmt gemm = tile_op(TileOpcode::Gemm, {whole_region(a), whole_region(b), whole_region(c), false, false, false});
  const AccessModel model = access_model(*function("f", {a, b, c}, gemm));
  EXPECT_EQ(texts(model),
            (std::vector<std::string>{"read A[0:2, 0:3] [0,0,] where ", "read B[0:3, 0:4] [0,0,] where ",
                                      "read C[0:2, 0:4] [0,0,] where ", "write C[0:2, 0:4] [0,0,] where "}));
  ASSERT_EQ(model.operations.size(), 1u);
  EXPECT_EQ(model.bounds.size(), 3u);
}

}  // namespace
}  // namespace helve::testing
