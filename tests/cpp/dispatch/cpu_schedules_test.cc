// The CPU schedules of tile operations: each computes what the interpreter computes, whole or on boxes, ragged or
// empty.
#include "helve/dispatch/schedule_table.h"

#include "helve/arith/facts.h"
#include "ir/tensor/programs/random_programs.h"
#include "transform/run_pass.h"

namespace helve::testing {
namespace {

/// Lowers the operations of a function by the schedules alone, without facts.
FunctionRef lower(const FunctionRef& f, const PassOptions& options) {
  const Facts facts;
  LoweringContext context;
  context.function = f.get();
  context.facts = &facts;
  context.machine = &options.machine;
  return with_body(f, rewrite(f->body, [&](const Stmt& s) {
                     const TileOp* op = as<TileOp>(s);
                     return op ? lower_tile_op(*op, cpu_schedules(), context) : s;
                   }));
}

Stmt copy(Region src, Region dst, Expr pad) {
  return tile_op(TileOpcode::Copy, {std::move(src), std::move(dst), std::move(pad)});
}

TEST(CpuSchedules, EachOperationHasOne) {
  for (const TileOpRow& row : tile_op_rows()) {
    const bool found = std::any_of(cpu_schedules().begin(), cpu_schedules().end(),
                                   [&](const TileSchedule& s) { return s.op == row.op; });
    const bool expanded = row.rule == TileRule::StAsync;  // made of collectives, by a pass of the GPU's
    EXPECT_EQ(found, !row.is_collective() && !expanded) << row.python;
  }
}

TEST(CpuSchedules, FamiliesHaveMembers) {
  for (const ScheduleFamily& family : schedule_families()) {
    for (const std::string_view member : family.members) {
      const bool found = std::any_of(cuda_schedules().begin(), cuda_schedules().end(), [&](const TileSchedule& s) {
        return s.op == family.op && s.name == member && s.name != family.name;
      });
      EXPECT_TRUE(found) << family.name << ": " << member;
    }
  }
}

TEST(CpuSchedules, CopiesPadAndDropPastTheEndOfTensors) {
  for (const std::vector<int64_t>& tile : std::vector<std::vector<int64_t>>{{}, {2, 3}, {8, 8}}) {
    for (int64_t row : {0, 3, 6, 7, 9}) {
      for (int64_t column : {0, 2, 5}) {
        const BufferRef a = param("A", kFloat32, {7, 5}), b = param("B", kFloat32, {7, 5});
        const BufferRef x = shared("X", kFloat32, {4, 4}, tile);
        const FunctionRef f = function(
            "main", {a, b},
            one_block({alloc(x), copy(box(a, {{idx(row), 4}, {idx(column), 4}}), whole_region(x), f32(-7)),
                       copy(box(x, {{idx(1), 3}, {idx(0), 4}}), box(b, {{idx(row), 3}, {idx(column), 4}}), f32(0))}));
        expect_same_results(lower, f);
        expect_same_results(lower, function("main", {a, b},
                                            one_block({copy(box(a, {{idx(row), 4}, {idx(column), 4}}),
                                                            box(b, {{idx(4), 4}, {idx(3), 4}}), f32(-7))})));
      }
    }
  }
}

TEST(CpuSchedules, PointsPastTheEndPad) {
  for (int64_t row : {6, 7}) {
    const BufferRef a = param("A", kFloat32, {7, 5}), b = param("B", kFloat32, {8, 5});
    const BufferRef x = shared("X", kFloat32, {5});
    expect_same_results(
        lower, function("main", {a, b},
                        one_block({alloc(x), copy(box(a, {{idx(row), -1}, {idx(0), 5}}), whole_region(x), f32(4)),
                                   copy(whole_region(x), box(b, {{idx(row + 1), -1}, {idx(0), 5}}), f32(0))})));
  }
}

TEST(CpuSchedules, OverlappingCopiesReadBeforeTheyWrite) {
  for (const auto& [from, to] :
       std::vector<std::pair<int64_t, int64_t>>{{0, 2}, {2, 0}, {1, 1}, {0, 5}, {3, 9}, {9, 3}}) {
    const BufferRef a = param("A", kInt32, {12});
    const BufferRef x = shared("X", kInt32, {12}, {4});
    expect_same_results(lower, function("main", {a},
                                        one_block({alloc(x), copy(whole_region(a), whole_region(x), i32(0)),
                                                   copy(box(x, {{idx(from), 3}}), box(x, {{idx(to), 3}}), i32(0)),
                                                   copy(whole_region(x), whole_region(a), i32(0))})));
    expect_same_results(
        lower, function("main", {a}, one_block({copy(box(a, {{idx(from), 5}}), box(a, {{idx(to), 5}}), i32(8))})));
  }
}

TEST(CpuSchedules, ScalarsAreEvaluatedOnce) {
  const BufferRef a = param("A", kInt32, {6});
  const Expr first = load(a, {idx(0)});
  expect_same_results(lower,
                      function("main", {a}, one_block({tile_op(TileOpcode::Fill, {whole_region(a), first + i32(5)})})));
  // the begin of the region is read from what is overwritten
  const Expr begin = apply(Op::Max, {min(cast(first, kIndex), idx(2)), idx(0)});
  const BufferRef b = param("B", kInt32, {6});
  expect_same_results(lower,
                      function("main", {a, b}, one_block({copy(box(b, {{begin, 4}}), box(a, {{idx(0), 4}}), i32(0))})));
}

TEST(CpuSchedules, CopiesConvert) {
  const DType half{TypeCode::Float, 16};
  const BufferRef a = param("A", kFloat32, {9}), b = param("B", kInt32, {9});
  const BufferRef h = shared("H", half, {9}, {4}), i = shared("I", DType{TypeCode::Int, 8}, {9});
  expect_same_results(
      lower, function("main", {a, b},
                      one_block({alloc(h), alloc(i), copy(whole_region(a), whole_region(h), float_imm(0, half)),
                                 copy(whole_region(h), whole_region(i), int_imm(0, DType{TypeCode::Int, 8})),
                                 copy(whole_region(i), whole_region(b), i32(0))})));
}

TEST(CpuSchedules, FillsBoxes) {
  for (const std::vector<int64_t>& tile : std::vector<std::vector<int64_t>>{{}, {2, 3}}) {
    const BufferRef a = param("A", kInt32, {5, 7}), x = shared("X", kInt32, {5, 7}, tile);
    expect_same_results(lower,
                        function("main", {a},
                                 one_block({alloc(x), tile_op(TileOpcode::Clear, {whole_region(x)}),
                                            tile_op(TileOpcode::Fill, {box(x, {{idx(1), 3}, {idx(2), 4}}), i32(3)}),
                                            tile_op(TileOpcode::Fill, {box(x, {{idx(4), -1}, {idx(3), 4}}), i32(5)}),
                                            tile_op(TileOpcode::Fill, {box(x, {{idx(0), 0}, {idx(0), 7}}), i32(6)}),
                                            copy(whole_region(x), whole_region(a), i32(0))})));
  }
}

class Reductions : public ::testing::TestWithParam<TileOpcode> {};

TEST_P(Reductions, EveryDimensionOfAnyShape) {
  const TileOpcode op = GetParam();
  const bool truth = op == TileOpcode::ReduceAny || op == TileOpcode::ReduceAll;
  const std::vector<DType> dtypes = truth ? std::vector{kBool} : std::vector{kInt32, kFloat32};
  for (DType t : dtypes) {
    for (const std::vector<int64_t>& shape :
         std::vector<std::vector<int64_t>>{{2, 3, 5}, {1, 17, 1}, {3, 0, 2}, {2, 2, 33}}) {
      for (int64_t dim = -3; dim < 3; ++dim) {
        for (bool clear : {true, false}) {
          for (bool keep : {true, false}) {
            const size_t d = static_cast<size_t>(dim < 0 ? dim + 3 : dim);
            std::vector<int64_t> rest = shape;
            if (keep)
              rest[d] = 1;
            else
              rest.erase(rest.begin() + dim + (dim < 0 ? 3 : 0));
            const BufferRef a = param("A", t, shape), b = param("B", t, rest);
            std::vector<int64_t> tile = {1, 2, 4};
            const BufferRef x = shared("X", t, shape, tile);
            const Expr pad = truth ? bool_imm(false) : t.is_float() ? f32(0) : i32(0);
            PassOptions options;
            options.machine.vector_bytes = 16;
            expect_same_results(lower,
                                function("main", {a, b},
                                         one_block({alloc(x), copy(whole_region(a), whole_region(x), pad),
                                                    tile_op(op, {whole_region(x), whole_region(b), dim, clear})})),
                                options);
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, Reductions,
                         ::testing::Values(TileOpcode::ReduceSum, TileOpcode::ReduceProd, TileOpcode::ReduceMax,
                                           TileOpcode::ReduceMin, TileOpcode::ReduceAbsMax, TileOpcode::ReduceAny,
                                           TileOpcode::ReduceAll),
                         [](const auto& info) { return std::string(row_of(info.param).name); });

TEST(CpuSchedules, ProductsOfAnyShape) {
  for (const auto& [m, n, k] :
       std::vector<std::tuple<int64_t, int64_t, int64_t>>{{3, 4, 5}, {1, 1, 1}, {2, 9, 0}, {7, 1, 3}, {0, 2, 2}}) {
    for (int bits = 0; bits < 8; ++bits) {
      const bool ta = bits & 1, tb = bits & 2, clear = bits & 4;
      for (DType t : {kInt32, kFloat32}) {
        const BufferRef a = param("A", t, ta ? std::vector<int64_t>{k, m} : std::vector<int64_t>{m, k});
        const BufferRef b = param("B", t, tb ? std::vector<int64_t>{n, k} : std::vector<int64_t>{k, n});
        const BufferRef c = param("C", t, {m, n});
        expect_same_results(lower, function("main", {a, b, c},
                                            one_block({tile_op(TileOpcode::Gemm, {whole_region(a), whole_region(b),
                                                                                  whole_region(c), ta, tb, clear})})));
      }
    }
  }
}

TEST(CpuSchedules, ColumnsOfDynamicLengthReduce) {
  const VarRef n = make_var("n");
  const BufferRef a = make_buffer("A", kInt32, MemoryScope::Param, {Expr(n), idx(3)}), b = param("B", kInt32, {3});
  const FunctionRef f = dynamic_function(
      "main", {n}, {a, b},
      one_block({tile_op(TileOpcode::ReduceSum, {whole_region(a), whole_region(b), int64_t{0}, true})}));
  for (int64_t extent : {0, 1, 6}) expect_same_results(lower, f, {}, {{n.get(), extent}});
}

TEST(CpuSchedules, RefusalsSayWhy) {
  const auto refused = [](const FunctionRef& f) {
    return refusal([](const FunctionRef& g, const PassOptions& o) { return lower(g, o); }, f);
  };
  const VarRef n = make_var("n");
  const BufferRef b = make_buffer("B", kFloat32, MemoryScope::Param, {Expr(n)});
  EXPECT_EQ(refused(dynamic_function("main", {n}, {b}, one_block({copy(whole_region(b), whole_region(b), f32(0))}))),
            "error[HV0801]: no implementation of 'T.copy' fits here\n"
            "note: 'element loops' declined: the two regions of one buffer may overlap and have no constant shape\n"
            "help: see the notes for what each implementation needs");
}

}  // namespace
}  // namespace helve::testing
