// How loops are divided among threads, which buffers become registers, and what divided programs compute.
#include "helve/threads/layout_inference.h"

#include "ir/tensor/programs/build_ir.h"
#include "transform/run_pass.h"

namespace helve::testing {
namespace {

BufferRef fragment(const std::string& name, DType dtype, const std::vector<int64_t>& shape) {
  return make_buffer(name, dtype, MemoryScope::Fragment, extents(shape));
}

Stmt threads_block(int64_t threads, std::vector<Stmt> body) {
  return kernel({make_var("b")}, {idx(1)}, threads, seq(std::move(body)));
}

Stmt parallel(const std::vector<int64_t>& shape, const std::function<Stmt(const std::vector<Expr>&)>& body) {
  std::vector<VarRef> vars;
  std::vector<Expr> at, begins;
  for (size_t d = 0; d < shape.size(); ++d) {
    vars.push_back(make_var("i"));
    at.push_back(Expr(vars.back()));
    begins.push_back(idx(0));
  }
  const Stmt inner = body(at);
  return for_loop(LoopKind::Parallel, vars, begins, extents(shape), inner);
}

Stmt copy(Region src, Region dst) {
  const DType t = dst.buffer->dtype;
  return tile_op(TileOpcode::Copy, {std::move(src), std::move(dst), t.is_float() ? float_imm(0, t) : int_imm(0, t)});
}
Stmt copy(const BufferRef& src, const BufferRef& dst) { return copy(whole_region(src), whole_region(dst)); }

PassOptions cuda_options() {
  PassOptions options;
  options.schedules = &cuda_schedules();
  options.machine = any_gpu();
  return options;
}

/// Every stage of the CUDA pipeline verifies and computes what `f` computes.
void expect_same_on_threads(const FunctionRef& f) {
  verify(f);
  const Memory expected = interpret(f);
  StageInstrument stages;
  VerifyInstrument verifier;
  run_pipeline(cuda_pipeline(), f, cuda_options(), {&stages, &verifier});
  for (const StageInstrument::Stage& stage : stages.stages()) {
    ASSERT_EQ(interpret(stage.function), expected) << "after " << stage.pass << "\n"
                                                   << print(f) << "\nbecame\n"
                                                   << print(stage.function);
  }
}

/// The places of the buffers of a kernel of loops over elements.
BlockLayouts layouts_of(const FunctionRef& f) {
  StageInstrument stages;
  run_pipeline(cuda_pipeline(), f, cuda_options(), {&stages});
  FunctionRef before = f;
  for (const StageInstrument::Stage& stage : stages.stages()) {
    if (stage.pass == "distribute_threads") break;
    before = stage.function;
  }
  return infer_layouts(*as<Kernel>(before->body), {}, {}, any_gpu());
}

const BufferPlace& place_of(const BlockLayouts& layouts, const std::string& name) {
  for (const BufferPlace& place : layouts.places) {
    if (place.buffer->name == name) return place;
  }
  ADD_FAILURE() << "no buffer " << name;
  return layouts.places.front();
}

TEST(ThreadLayout, SpreadGivesNeighbouringThreadsNeighbouringRuns) {
  const ThreadLayout layout = spread({4, 256}, 128, 4);
  EXPECT_EQ(layout.domain(), (std::vector<int64_t>{4, 256}));
  EXPECT_EQ(layout.registers(), 8);
  const auto at = [&](int64_t i, int64_t j) { return layout.layout().apply({i, j}, std::vector<int64_t>{4, 256})[0]; };
  EXPECT_EQ(at(0, 0)[axes::tx()], 0);
  EXPECT_EQ(at(0, 3)[axes::tx()], 0);
  EXPECT_EQ(at(0, 4)[axes::tx()], 1);
  EXPECT_EQ(at(1, 0)[axes::tx()], 64);
  EXPECT_EQ(at(0, 3)[axes::reg()], 3);
}

TEST(ThreadLayout, ThreadsThatAreNotNeededHoldReplicas) {
  const ThreadLayout layout = spread({8}, 128, 1);
  EXPECT_EQ(layout.registers(), 1);
  EXPECT_EQ(layout.layout().apply({3}, std::vector<int64_t>{8}).size(), 16u);
}

TEST(ThreadLayout, AProjectionKeepsThreadsAsReplicasAndDropsRegisters) {
  const ThreadLayout whole = spread({16, 64}, 32, 2);
  const ThreadLayout rows = whole.project({0});
  EXPECT_EQ(rows.domain(), std::vector<int64_t>{16});
  EXPECT_TRUE(rows.divides_alike(0, whole, 0));
  EXPECT_EQ(rows.registers(), 16);
  EXPECT_EQ(rows.layout().apply({5}, std::vector<int64_t>{16}).size(), 32u);
}

TEST(ThreadLayout, SaysWhichDimensionsTheThreadsDivide) {
  const ThreadLayout whole = spread({16, 64}, 32, 2);  // all threads along the columns
  EXPECT_TRUE(whole.divides_only({0, 1}));
  EXPECT_TRUE(whole.divides_only({1}));
  EXPECT_FALSE(whole.divides_only({0}));
  EXPECT_FALSE(whole.divides_only({-1}));
  EXPECT_TRUE(spread({1, 8}, 32, 8).divides_only({-1}));  // one thread has the row, the others copies of it
}

TEST(LayoutInference, AValueBetweenTwoLoopsIsARegister) {
  const BufferRef a = param("A", kFloat32, {512}), b = param("B", kFloat32, {512});
  const BufferRef x = shared("X", kFloat32, {512});
  const BlockLayouts layouts =
      layouts_of(function("main", {a, b}, threads_block(128, {alloc(x), copy(a, x), copy(x, b)})));
  EXPECT_TRUE(place_of(layouts, "X").registers);
  EXPECT_EQ(layouts.registers.begin()->second.registers(), 4);
}

TEST(LayoutInference, AnElementOfAnotherIterationIsInMemory) {
  const BufferRef a = param("A", kInt32, {64}), x = fragment("X", kInt32, {64});
  const Stmt back = parallel({64}, [&](const std::vector<Expr>& i) { return store(a, i, load(x, {idx(63) - i[0]})); });
  const BlockLayouts layouts = layouts_of(function("main", {a}, threads_block(64, {alloc(x), copy(a, x), back})));
  EXPECT_FALSE(place_of(layouts, "X").registers);
  EXPECT_EQ(place_of(layouts, "X").reason, "an access is not the element of its loop's iteration");
}

TEST(LayoutInference, AnElementThatOneOfSeveralThreadsStoresToIsInMemory) {
  const BufferRef a = param("A", kInt32, {8, 32}), b = param("B", kInt32, {8});
  const BufferRef x = fragment("X", kInt32, {8, 32}), k = fragment("K", kInt32, {8});
  const Stmt diagonal = parallel({8, 32}, [&](const std::vector<Expr>& i) {
    return if_then(apply(Op::Eq, {i[0], i[1]}), store(k, {i[0]}, load(x, {i[0], i[1]})));
  });
  const Stmt clear = parallel({8}, [&](const std::vector<Expr>& i) { return store(k, i, int_imm(0, kInt32)); });
  const FunctionRef f =
      function("main", {a, b}, threads_block(64, {alloc(x), alloc(k), copy(a, x), clear, diagonal, copy(k, b)}));
  const BlockLayouts layouts = layouts_of(f);
  EXPECT_TRUE(place_of(layouts, "X").registers);
  EXPECT_FALSE(place_of(layouts, "K").registers);
  EXPECT_EQ(place_of(layouts, "K").reason, "iterations on several threads store to one element");
  expect_same_on_threads(f);
}

TEST(LayoutInference, WhatIsUpdatedAtomicallyIsInMemory) {
  const BufferRef a = param("A", kInt32, {64}), x = shared("X", kInt32, {64});
  const Stmt add = parallel(
      {64}, [&](const std::vector<Expr>& i) { return store(x, i, int_imm(1, kInt32), {}, StoreMode::AtomicAdd); });
  const BlockLayouts layouts =
      layouts_of(function("main", {a}, threads_block(64, {alloc(x), copy(a, x), add, copy(x, a)})));
  EXPECT_EQ(place_of(layouts, "X").reason, "it is updated atomically");
}

TEST(LayoutInference, SmallElementsShareRegisters) {
  const DType half{TypeCode::Float, 16};
  const auto in_registers = [&](DType dtype) {
    const int64_t registers = any_gpu().value_registers(32) / 8 * 8;
    const int64_t n = 32 * 2 * registers;  // more than float32 has room for, less than float16
    const BufferRef a = param("A", dtype, {n}), b = param("B", dtype, {n}), x = fragment("X", dtype, {n});
    const Stmt add = parallel({n}, [&](const std::vector<Expr>& i) { return store(x, i, load(x, i) + load(b, i)); });
    const Stmt again = parallel({n}, [&](const std::vector<Expr>& i) { return store(x, i, load(x, i) * load(b, i)); });
    const FunctionRef f = function("main", {a, b}, threads_block(32, {alloc(x), copy(a, x), add, again, copy(x, a)}));
    return place_of(layouts_of(f), "X").registers;
  };
  EXPECT_FALSE(in_registers(kFloat32));
  EXPECT_TRUE(in_registers(half));
}

TEST(CudaSchedules, EachOperationHasOneOrIsLeftToTheDivision) {
  for (const TileOpRow& row : tile_op_rows()) {
    const bool found = std::any_of(cuda_schedules().begin(), cuda_schedules().end(),
                                   [&](const TileSchedule& s) { return s.op == row.op; });
    const bool orders = row.rule == TileRule::Sync || row.rule == TileRule::Wait;  // it accesses nothing
    const bool expanded = row.rule == TileRule::StAsync;  // made of collectives, after the schedules
    EXPECT_EQ(found, !row.is_collective() && !orders && !expanded) << row.python;
  }
}

TEST(CudaSchedules, ReductionsOverThreads) {
  for (int64_t threads : {32, 96, 256}) {
    for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{{7, 33}, {64, 9}, {3, 200}}) {
      for (int64_t dim : {0, 1}) {
        const int64_t kept = shape[static_cast<size_t>(1 - dim)];
        const BufferRef a = param("A", kInt32, shape), b = param("B", kInt32, {kept});
        const BufferRef x = fragment("X", kInt32, shape), r = fragment("R", kInt32, {kept});
        for (TileOpcode op : {TileOpcode::ReduceSum, TileOpcode::ReduceMax}) {
          expect_same_on_threads(function(
              "main", {a, b},
              threads_block(threads, {alloc(x), alloc(r), copy(a, x),
                                      tile_op(op, {whole_region(x), whole_region(r), dim, true}), copy(r, b)})));
        }
      }
    }
  }
}

TEST(CudaSchedules, ScansOverThreads) {
  for (int64_t threads : {32, 96, 256}) {
    for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{{7, 33}, {64, 9}, {3, 200}, {1, 600}}) {
      for (int64_t dim : {0, 1}) {
        for (bool reverse : {false, true}) {
          const BufferRef a = param("A", kInt32, shape), b = param("B", kInt32, shape);
          const BufferRef x = fragment("X", kInt32, shape), y = fragment("Y", kInt32, shape);
          for (const BufferRef& to : {x, y}) {
            const Stmt scan = tile_op(TileOpcode::Cumsum, {whole_region(x), whole_region(to), dim, reverse});
            expect_same_on_threads(
                function("main", {a, b}, threads_block(threads, {alloc(x), alloc(y), copy(a, x), scan, copy(to, b)})));
          }
        }
      }
    }
  }
}

TEST(CudaSchedules, AScanOfMoreThanTheThreadsHoldRunsAlongLines) {
  const BufferRef a = param("A", kInt32, {40, 100}), b = param("B", kInt32, {40, 100});
  expect_same_on_threads(function(
      "main", {a, b},
      threads_block(32, {tile_op(TileOpcode::Cumsum, {whole_region(a), whole_region(b), int64_t{1}, false})})));
}

TEST(CudaSchedules, AtomicUpdatesHappenOnceWhereThreadsHoldCopies) {
  const BufferRef a = param("A", kInt32, {8}), x = fragment("X", kInt32, {8});
  const Stmt one = store(a, {idx(0)}, int_imm(5, kInt32), {}, StoreMode::AtomicAdd);
  expect_same_on_threads(function(
      "main", {a},
      threads_block(128, {alloc(x), copy(a, x), tile_op(TileOpcode::AtomicAdd, {whole_region(a), whole_region(x)}), one,
                          tile_op(TileOpcode::AtomicMax, {whole_region(a), int_imm(3, kInt32)})})));
}

}  // namespace
}  // namespace helve::testing
