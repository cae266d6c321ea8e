// Loops, branches, definitions and memory.
#include <cmath>
#include <limits>

#include "arrays.h"

namespace helve::testing {
namespace {

/// A log of int32 that a program appends to: element 0 counts, the rest are the entries.
struct Log {
  BufferRef buffer = param("log", kInt32, {64});
  Stmt append(const Expr& value) const {
    const Expr at = cast(load(buffer, {idx(0)}), kIndex);
    return seq({store(buffer, {at + idx(1)}, cast(value, kInt32)),
                store(buffer, {idx(0)}, load(buffer, {idx(0)}) + int_imm(1, kInt32))});
  }
  static std::vector<int> entries(const FunctionRef& f) {
    std::vector<int32_t> log = output_of<int32_t>(f, {64});
    return {log.begin() + 1, log.begin() + 1 + log[0]};
  }
};

FunctionRef logging(const Log& log, std::vector<Stmt> body) {
  return function("main", {log.buffer}, one_block(std::move(body)));
}

TEST(Loops, AllKindsAscend) {
  for (LoopKind kind : {LoopKind::Serial, LoopKind::Unroll, LoopKind::Vectorized, LoopKind::Parallel,
                        LoopKind::Pipelined, LoopKind::Persistent}) {
    Log log;
    const VarRef i = make_var("i");
    const Stmt loop = for_loop(kind, std::vector<VarRef>{i}, {idx(3)}, {idx(4)}, log.append(i), 2);
    EXPECT_EQ(Log::entries(logging(log, {loop})), (std::vector<int>{3, 4, 5, 6})) << to_string(kind);
  }
}

TEST(Loops, SeveralVariablesRunRowMajorFromTheirBegins) {
  Log log;
  const VarRef i = make_var("i"), j = make_var("j"), k = make_var("k");
  const Stmt loop = for_loop(LoopKind::Parallel, std::vector<VarRef>{i, j, k}, {idx(1), idx(-2), idx(0)},
                             {idx(2), idx(3), idx(1)}, log.append(Expr(i) * idx(10) + j + k));
  EXPECT_EQ(Log::entries(logging(log, {loop})), (std::vector<int>{8, 9, 10, 18, 19, 20}));
}

TEST(Loops, ExtentsOfZeroAndLessRunNothing) {
  for (int64_t extent : {0, -3}) {
    Log log;
    const VarRef i = make_var("i"), j = make_var("j");
    EXPECT_TRUE(Log::entries(logging(log, {serial(i, idx(0) + idx(extent), {log.append(i)})})).empty());
    const Stmt both = for_loop(LoopKind::Parallel, std::vector<VarRef>{i, j}, {idx(0), idx(0)},
                               {idx(0) + idx(extent), idx(0) + idx(extent)}, log.append(i));
    EXPECT_TRUE(Log::entries(logging(log, {both})).empty());
  }
}

TEST(Loops, BoundsAreTakenOnceAtEntry) {
  Log log;
  const VarRef i = make_var("i"), j = make_var("j");
  const BufferRef n = make_buffer("n", kInt32, MemoryScope::Local, {idx(1)});
  const Expr extent = cast(load(n, {idx(0)}), kIndex);
  const Stmt grow = store(n, {idx(0)}, load(n, {idx(0)}) + int_imm(1, kInt32));
  const FunctionRef f =
      logging(log, {alloc(n), store(n, {idx(0)}, int_imm(2, kInt32)),
                    serial(i, extent, {grow, serial(j, Expr(i) + idx(1), {log.append(Expr(i) * idx(10) + j)})}),
                    log.append(extent)});
  EXPECT_EQ(Log::entries(f), (std::vector<int>{0, 10, 11, 4}));
}

TEST(Loops, WhileAndIf) {
  Log log;
  const BufferRef n = make_buffer("n", kInt32, MemoryScope::Local, {idx(1)});
  const Expr v = load(n, {idx(0)});
  const Expr odd = apply(Op::Eq, {floor_mod(v, int_imm(2, kInt32)), int_imm(1, kInt32)});
  // the Collatz sequence of 6
  const Stmt body = seq({log.append(v), if_then(odd, store(n, {idx(0)}, v * int_imm(3, kInt32) + int_imm(1, kInt32)),
                                                store(n, {idx(0)}, floor_div(v, int_imm(2, kInt32))))});
  const FunctionRef f =
      logging(log, {alloc(n), store(n, {idx(0)}, int_imm(6, kInt32)),
                    while_loop(apply(Op::Ne, {v, int_imm(1, kInt32)}), body), if_then(odd, log.append(idx(99)))});
  EXPECT_EQ(Log::entries(f), (std::vector<int>{6, 3, 10, 5, 16, 8, 4, 2, 99}));
}

TEST(Loops, PersistentIterationsAreDealtRoundRobinOverTheGrid) {
  for (int64_t blocks : {1, 3, 5, 12}) {
    const BufferRef owner = param("owner", kInt32, {3, 4});
    const VarRef bx = make_var("bx"), by = make_var("by"), i = make_var("i"), j = make_var("j");
    const Stmt loop =
        for_loop(LoopKind::Persistent, std::vector<VarRef>{i, j}, {idx(0), idx(0)}, {idx(3), idx(4)},
                 store(owner, {i, j}, load(owner, {i, j}) + cast(Expr(bx) * idx(100) + by + idx(1), kInt32)));
    const FunctionRef f = function("main", {owner}, kernel({bx, by}, {idx(1), idx(blocks)}, 128, loop));
    const std::vector<int32_t> got = output_of<int32_t>(f, {3, 4});
    for (int64_t k = 0; k < 12; ++k) EXPECT_EQ(got[static_cast<size_t>(k)], k % blocks + 1);
  }
}

TEST(Loops, BlocksAreRowMajor) {
  Log log;
  const VarRef x = make_var("x"), y = make_var("y");
  const FunctionRef f =
      function("main", {log.buffer}, kernel({x, y}, {idx(2), idx(3)}, 128, log.append(Expr(x) * idx(10) + y)));
  EXPECT_EQ(Log::entries(f), (std::vector<int>{0, 1, 2, 10, 11, 12}));
}

TEST(Memory, IsUndefinedAtEveryAllocation) {
  struct Row {
    DType dtype;
    double shown;
  };
  const Row rows[] = {{kFloat32, NAN},
                      {{TypeCode::BFloat, 16}, NAN},
                      {{TypeCode::Float8E4M3, 8}, NAN},
                      {{TypeCode::Int, 8}, -128},
                      {{TypeCode::Int, 4}, -8},
                      {{TypeCode::UInt, 16}, 65535},
                      {kInt32, -2147483648.0},
                      {kBool, 1}};
  for (const Row& row : rows) {
    const BufferRef out = param("out", kFloat64, {2, 5});
    const BufferRef local = shared("local", row.dtype, {5});
    const VarRef i = make_var("i"), j = make_var("j");
    const Expr zero = row.dtype.is_float() ? float_imm(0, row.dtype) : int_imm(0, row.dtype);
    const FunctionRef f = function(
        "main", {out},
        one_block({serial(
            i, idx(2),
            {alloc(local),
             serial(j, idx(5), {store(out, {i, j}, cast(load(local, {j}), kFloat64)), store(local, {j}, zero)})})}));
    for (double v : output_of<double>(f, {2, 5})) {
      if (std::isnan(row.shown)) {
        EXPECT_TRUE(std::isnan(v)) << to_string(row.dtype);
      } else {
        EXPECT_EQ(v, row.shown) << to_string(row.dtype);
      }
    }
  }
}

TEST(Memory, ContentsDoNotCrossPersistentIterations) {
  const BufferRef out = param("out", kFloat32, {3});
  const BufferRef kept = shared("kept", kFloat32, {1});
  const VarRef i = make_var("i");
  const Stmt body = seq({store(out, {i}, load(kept, {idx(0)})), store(kept, {idx(0)}, f32(1))});
  const FunctionRef f =
      function("main", {out}, one_block({alloc(kept), for_loop(LoopKind::Persistent, i, idx(3), body)}));
  for (float v : output_of<float>(f, {3})) EXPECT_TRUE(std::isnan(v));
}

TEST(Memory, FourBitElementsArePacked) {
  constexpr DType kInt4{TypeCode::Int, 4};
  const BufferRef p = param("p", kInt4, {5});
  const VarRef i = make_var("i");
  const FunctionRef f =
      function("main", {p}, one_block({serial(i, idx(5), {store(p, {i}, cast(Expr(i) * idx(3), kInt4))})}));
  std::vector<uint8_t> bytes = {0, 0, 0xa0};
  interp::run(f, {tensor(bytes, {5})});
  EXPECT_EQ(bytes, (std::vector<uint8_t>{0x30, 0x96, 0xac}));
}

TEST(Arguments, StridesDimsAndScalars) {
  const VarRef m = make_var("M"), s = make_var("s", kFloat32), n = make_var("n");
  const BufferRef a = make_buffer("A", kFloat32, MemoryScope::Param, {m, idx(3)}, {}, {idx(5), idx(1)});
  const BufferRef b = make_buffer("B", kFloat32, MemoryScope::Param, {Expr(m) * idx(2), n});
  const VarRef i = make_var("i"), j = make_var("j");
  const Stmt body =
      one_block({serial(i, m, {serial(j, n, {store(b, {Expr(i) * idx(2) + idx(1), j}, load(a, {i, j}) * s)})})});
  const FunctionRef f = dynamic_function("main", {m}, {a, b, s, n}, body);
  std::vector<float> in(10), out(12, -1);
  for (size_t k = 0; k < in.size(); ++k) in[k] = static_cast<float>(k);
  interp::run(f, {TensorArg{in.data(), {2, 3}, {5, 1}}, tensor(out, {4, 3}), scalar(0.5), scalar(int64_t{3})});
  EXPECT_EQ(out, (std::vector<float>{-1, -1, -1, 0, 0.5, 1, -1, -1, -1, 2.5, 3, 3.5}));
  interp::run(
      f, {TensorArg{nullptr, {0, 3}, {5, 1}}, TensorArg{nullptr, {0, 3}, {}}, scalar(int64_t{2}), scalar(int64_t{3})});
}

TEST(Arguments, BindNamesTheValueOfItsTime) {
  Log log;
  const BufferRef n = make_buffer("n", kInt32, MemoryScope::Local, {idx(1)});
  const VarRef v = make_var("v", kInt32);
  const FunctionRef f = logging(log, {alloc(n), store(n, {idx(0)}, int_imm(1, kInt32)), bind(v, load(n, {idx(0)})),
                                      store(n, {idx(0)}, int_imm(2, kInt32)), log.append(v)});
  EXPECT_EQ(Log::entries(f), (std::vector<int>{1}));
}

}  // namespace
}  // namespace helve::testing
