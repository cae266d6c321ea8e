// Loops, vectors, masks, memory and arguments of kernels, against plain loops.
#include <atomic>
#include <bit>
#include <cmath>
#include <numeric>
#include <thread>

#include "run_kernel.h"

namespace helve::testing {
namespace {

std::vector<float> ramp(size_t n, float scale = 1.0f) {
  std::vector<float> out(n);
  for (size_t i = 0; i < n; ++i) out[i] = scale * static_cast<float>(static_cast<int64_t>(i * 37 % 101) - 50);
  return out;
}
constexpr DType kInt16{TypeCode::Int, 16};
VarRef var(const char* name) { return make_var(name); }
Stmt serial(const VarRef& v, const Expr& extent, Stmt body) {
  return for_loop(LoopKind::Serial, v, extent, std::move(body));
}
Stmt vectorized(const VarRef& v, int64_t extent, Stmt body) {
  return for_loop(LoopKind::Vectorized, v, idx(extent), std::move(body));
}

TEST(Loops, EveryKindVisitsItsIterations) {
  for (LoopKind kind : {LoopKind::Serial, LoopKind::Unroll, LoopKind::Vectorized, LoopKind::Parallel}) {
    const bool lanes = kind == LoopKind::Vectorized;
    for (int64_t extent : lanes ? std::vector<int64_t>{2, 16, 64} : std::vector<int64_t>{0, 1, 2, 3, 7, 33, 131}) {
      for (int64_t begin : {0, 3}) {
        BufferRef out = param("out", kInt32, {idx(200)});
        VarRef i = var("i");
        Stmt body = store(out, {Expr(i)}, cast(load(out, {Expr(i)}), kInt32) + cast(Expr(i) * idx(3) + idx(1), kInt32));
        Stmt k = single(for_loop(kind, {i}, {idx(begin)}, {idx(extent)}, body));
        std::vector<int32_t> memory(200, 5);
        Arguments a;
        a.buffers[out.get()] = memory.data();
        run(k, a);
        for (int64_t e = 0; e < 200; ++e) {
          const bool inside = e >= begin && e < begin + extent;
          ASSERT_EQ(memory[static_cast<size_t>(e)], inside ? 5 + e * 3 + 1 : 5)
              << to_string(kind) << " " << begin << "+" << extent;
        }
      }
    }
  }
}

TEST(Loops, NegativeExtentsOfTailsRunNothing) {
  BufferRef out = param("out", kInt32, {idx(8)});
  VarRef i = var("i"), n = var("n");
  for (LoopKind kind : {LoopKind::Serial, LoopKind::Parallel}) {
    Stmt k = single(for_loop(kind, i, Expr(n) - idx(5), store(out, {Expr(i)}, int_imm(1, kInt32))));
    std::vector<int32_t> memory(8, 0);
    Arguments a;
    a.buffers[out.get()] = memory.data();
    a.scalars[n.get()] = 2;
    run(k, a);
    EXPECT_EQ(std::accumulate(memory.begin(), memory.end(), 0), 0);
    a.scalars[n.get()] = 7;
    run(k, a);
    EXPECT_EQ(memory, (std::vector<int32_t>{1, 1, 0, 0, 0, 0, 0, 0}));
  }
}

TEST(Loops, ParallelOverSeveralDimensionsWithBlocks) {
  // out[i, j] = a[j, i] * 2 over a dynamic shape, a grid of rows, an inner parallel nest.
  VarRef m = var("M"), n = var("N"), b = var("b"), i = var("i"), j = var("j");
  BufferRef a = param("a", kFloat32, {Expr(n), Expr(m)}), out = param("out", kFloat32, {Expr(m), Expr(n)});
  Expr row = Expr(b) * idx(4) + Expr(i);
  Stmt body = if_then(less(row, Expr(m)), store(out, {row, Expr(j)}, load(a, {Expr(j), row}) * float_imm(2, kFloat32)));
  Stmt k = kernel({b}, {ceil_div(Expr(m), idx(4))}, 128,
                  for_loop(LoopKind::Parallel, {i, j}, {idx(0), idx(0)}, {idx(4), Expr(n)}, body));
  auto module = compile_cpu({{"transpose", as_kernel(k)}});
  for (auto [rows, columns] : {std::pair<int64_t, int64_t>{7, 5}, {1, 1}, {0, 3}, {64, 33}, {5, 0}}) {
    std::vector<float> in = ramp(static_cast<size_t>(rows * columns)), result(in.size() + 1, -1);
    Arguments args;
    args.buffers = {{a.get(), in.data()}, {out.get(), result.data()}};
    args.scalars = {{m.get(), rows}, {n.get(), columns}};
    args.end = (rows + 3) / 4;
    call(module->kernels()[0], *as<Kernel>(k), args);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; ++c) {
        ASSERT_EQ(result[static_cast<size_t>(r * columns + c)], 2 * in[static_cast<size_t>(c * rows + r)]);
      }
    }
    EXPECT_EQ(result.back(), -1);
  }
}

TEST(Loops, ParallelLoopsVectorize) {
  BufferRef a = param("a", kFloat32, {idx(1024)}), out = param("out", kFloat32, {idx(1024)});
  VarRef i = var("i");
  Expr e = apply(Op::Exp, {load(a, {Expr(i)})});
  Stmt k = single(for_loop(LoopKind::Parallel, i, idx(1024), store(out, {Expr(i)}, e)));
  auto module = compile_cpu({{"exp", as_kernel(k)}});
  EXPECT_NE(module->llvm_ir(true).find(" x float>"), std::string::npos);
  EXPECT_EQ(module->llvm_ir(false).find(" x float>"), std::string::npos);
}

TEST(Loops, GridCoordinatesAreRowMajorAndRangesAreObeyed) {
  VarRef x = var("x"), y = var("y"), z = var("z");
  BufferRef out = param("out", kInt64, {idx(2 * 3 * 5)});
  Expr linear = (Expr(x) * idx(3) + Expr(y)) * idx(5) + Expr(z);
  Expr code = Expr(x) * idx(100) + Expr(y) * idx(10) + Expr(z);
  Stmt k = kernel({x, y, z}, {idx(2), idx(3), idx(5)}, 128, store(out, {linear}, code));
  std::vector<int64_t> memory(30, -1);
  Arguments a;
  a.buffers[out.get()] = memory.data();
  a.begin = 4;
  a.end = 23;
  run(k, a);
  for (int64_t i = 0; i < 30; ++i) {
    EXPECT_EQ(memory[static_cast<size_t>(i)], i >= 4 && i < 23 ? i / 15 * 100 + i / 5 % 3 * 10 + i % 5 : -1);
  }
}

TEST(Loops, WhileAndNestedIf) {
  // The number of Collatz steps of each start.
  BufferRef out = param("out", kInt32, {idx(30)});
  BufferRef state = local("state", kInt64, {1}), steps = local("steps", kInt32, {1});
  VarRef i = var("i");
  Expr s = load(state, {idx(0)});
  Stmt advance = if_then(apply(Op::Eq, {apply(Op::FloorMod, {s, int_imm(2, kInt64)}), int_imm(0, kInt64)}),
                         store(state, {idx(0)}, floor_div(s, int_imm(2, kInt64))),
                         store(state, {idx(0)}, s * int_imm(3, kInt64) + int_imm(1, kInt64)));
  Stmt count = store(steps, {idx(0)}, load(steps, {idx(0)}) + int_imm(1, kInt32));
  Stmt body = seq({alloc(state), alloc(steps), store(state, {idx(0)}, cast(Expr(i) + idx(1), kInt64)),
                   store(steps, {idx(0)}, int_imm(0, kInt32)),
                   while_loop(apply(Op::Gt, {s, int_imm(1, kInt64)}), seq({advance, count})),
                   store(out, {Expr(i)}, load(steps, {idx(0)}))});
  std::vector<int32_t> memory(30);
  Arguments a;
  a.buffers[out.get()] = memory.data();
  run(single(serial(i, idx(30), body)), a);
  for (int64_t start = 1; start <= 30; ++start) {
    int32_t want = 0;
    for (int64_t v = start; v > 1; v = v % 2 ? 3 * v + 1 : v / 2) ++want;
    EXPECT_EQ(memory[static_cast<size_t>(start - 1)], want);
  }
}

TEST(Vectors, ContiguousBroadcastStridedAndGather) {
  // out[i, l] = a[i, l] + b[i] + c[l * 3 + i] + d[index[l]] - a[i, 15 - l]
  BufferRef a = param("a", kFloat32, {idx(5), idx(16)}), b = param("b", kFloat32, {idx(5)}),
            c = param("c", kFloat32, {idx(64)});
  BufferRef d = param("d", kFloat32, {idx(40)}), index = param("index", kInt32, {idx(16)}),
            out = param("out", kFloat32, {idx(5), idx(16)});
  VarRef i = var("i"), l = var("l"), g = var("g");
  Expr gathered = load(d, {Expr(g)});
  Expr value = load(a, {Expr(i), Expr(l)}) + load(b, {Expr(i)}) + load(c, {Expr(l) * idx(3) + Expr(i)}) + gathered -
               load(a, {Expr(i), idx(15) - Expr(l)});
  Stmt body = seq({bind(g, cast(load(index, {Expr(l)}), kIndex)), store(out, {Expr(i), Expr(l)}, value)});
  std::vector<float> va = ramp(80), vb = ramp(5, 3), vc = ramp(64, 0.5f), vd = ramp(40, 7), got(80);
  std::vector<int32_t> vi(16);
  for (size_t k = 0; k < 16; ++k) vi[k] = static_cast<int32_t>(k * 29 % 40);
  Arguments args;
  args.buffers = {{a.get(), va.data()}, {b.get(), vb.data()},     {c.get(), vc.data()},
                  {d.get(), vd.data()}, {index.get(), vi.data()}, {out.get(), got.data()}};
  auto module = run(single(serial(i, idx(5), vectorized(l, 16, body))), args);
  for (size_t r = 0; r < 5; ++r) {
    for (size_t k = 0; k < 16; ++k) {
      ASSERT_EQ(got[r * 16 + k],
                va[r * 16 + k] + vb[r] + vc[k * 3 + r] + vd[static_cast<size_t>(vi[k])] - va[r * 16 + 15 - k]);
    }
  }
  const std::string ir = module->llvm_ir(false);
  EXPECT_NE(ir.find("load <16 x float>"), std::string::npos);
  EXPECT_NE(ir.find("masked.gather.v16f32"), std::string::npos);
  EXPECT_NE(ir.find("store <16 x float>"), std::string::npos);
}

TEST(Vectors, StridedStoresScatter) {
  BufferRef out = param("out", kInt16, {idx(64)});
  VarRef l = var("l");
  std::vector<int16_t> memory(64, -1);
  Arguments args;
  args.buffers[out.get()] = memory.data();
  run(single(vectorized(l, 8, store(out, {Expr(l) * idx(5) + idx(2)}, cast(Expr(l), kInt16)))), args);
  for (int64_t k = 0; k < 64; ++k) EXPECT_EQ(memory[static_cast<size_t>(k)], k % 5 == 2 && k / 5 < 8 ? k / 5 : -1);
}

TEST(Vectors, ConditionsBecomeMasks) {
  // Lanes past n neither read nor write: the buffers end there, inside of a guarded page of sentinels.
  VarRef n = var("n"), l = var("l"), i = var("i");
  BufferRef a = param("a", kFloat32, {Expr(n)}), out = param("out", kFloat32, {Expr(n)});
  Expr at = Expr(i) * idx(16) + Expr(l);
  Expr positive = apply(Op::Gt, {load(a, {at}), float_imm(0, kFloat32)});
  Stmt inner =
      if_then(positive, store(out, {at}, load(a, {at})), store(out, {at}, float_imm(1, kFloat32) - load(a, {at})));
  Stmt k = single(serial(i, ceil_div(Expr(n), idx(16)), vectorized(l, 16, if_then(less(at, Expr(n)), inner))));
  auto module = compile_cpu({{"masked", as_kernel(k)}});
  EXPECT_NE(module->llvm_ir(false).find("masked.load.v16f32"), std::string::npos);
  EXPECT_NE(module->llvm_ir(false).find("masked.store.v16f32"), std::string::npos);
  for (size_t count : {0, 1, 15, 16, 17, 31, 40}) {
    std::vector<float> in = ramp(count), got(count + 32, -77);
    Arguments args;
    args.buffers = {{a.get(), in.data()}, {out.get(), got.data()}};
    args.scalars = {{n.get(), static_cast<int64_t>(count)}};
    call(module->kernels()[0], *as<Kernel>(k), args);
    for (size_t e = 0; e < got.size(); ++e) {
      const float want = e >= count ? -77 : in[e] > 0 ? in[e] : 1 - in[e];
      ASSERT_EQ(got[e], want) << count << " " << e;
    }
  }
}

/// A select, an and, an or guard the loads that they contain: the pointer outside of the bounds must not be touched.
TEST(Vectors, GuardedLoadsAreLazy) {
  for (int64_t lanes : {0, 8}) {
    VarRef l = var("l"), n = var("n");
    BufferRef a = param("a", kFloat32, {Expr(n)}), out = param("out", kFloat32, {idx(8)}),
              flags = param("flags", kBool, {idx(8)});
    Expr inside = less(Expr(l), Expr(n));
    Expr far = Expr(l) * idx(int64_t{1} << 40);  // anywhere but in the process's memory, except for lane 0
    Expr value = select(inside, load(a, {far}), float_imm(-1, kFloat32));
    Expr both = logical_and(inside, apply(Op::Gt, {load(a, {far}), float_imm(0, kFloat32)}));
    Expr either =
        apply(Op::Or, {apply(Op::Ge, {Expr(l), Expr(n)}), apply(Op::Gt, {load(a, {far}), float_imm(0, kFloat32)})});
    Stmt body = seq({store(out, {Expr(l)}, value), store(flags, {Expr(l)}, apply(Op::Ne, {both, either}))});
    Stmt k = single(lanes ? vectorized(l, 8, body) : serial(l, idx(8), body));
    auto module = compile_cpu({{"guard", as_kernel(k)}});
    for (int64_t count : {0, 1}) {
      std::vector<float> in{42};
      std::vector<float> got(8);
      std::vector<uint8_t> flag(8, 9);
      Arguments args;
      args.buffers = {{a.get(), count ? in.data() : nullptr}, {out.get(), got.data()}, {flags.get(), flag.data()}};
      args.scalars = {{n.get(), count}};
      call(module->kernels()[0], *as<Kernel>(k), args);
      for (int64_t e = 0; e < 8; ++e) {
        EXPECT_EQ(got[static_cast<size_t>(e)], e < count ? 42 : -1);
        EXPECT_EQ(flag[static_cast<size_t>(e)], e < count ? 0 : 1);  // inside: true and true; outside: false and true
      }
    }
  }
}

/// A uniform load under a mask whose lanes are all off must not fault either.
TEST(Vectors, UniformLoadUnderAnEmptyMask) {
  VarRef l = var("l"), n = var("n");
  BufferRef a = param("a", kFloat32, {Expr(n)}), out = param("out", kFloat32, {idx(8)});
  Stmt k = single(vectorized(l, 8, if_then(less(Expr(l), Expr(n)), store(out, {Expr(l)}, load(a, {idx(0)})))));
  std::vector<float> got(8, 3);
  Arguments args;
  args.buffers = {{a.get(), nullptr}, {out.get(), got.data()}};
  args.scalars = {{n.get(), 0}};
  run(k, args);
  EXPECT_EQ(got, std::vector<float>(8, 3));
}

/// Lanes 2i and 2i + 1 share an element: one load of half the lanes, also from an odd row and under a mask, of which
/// elements past the end stay untouched.
TEST(Vectors, PairsOfLanesLoadOneElement) {
  for (int64_t lanes : {2, 4, 16, 64}) {
    for (int64_t begin : {0, 6, 3}) {
      for (bool masked : {false, true}) {
        VarRef l = var("l"), n = var("n");
        const Expr in_row = Expr(l) - idx(begin);
        BufferRef a = param("a", kInt16, {idx(3), Expr(n)}), out = param("out", kInt32, {idx(lanes)});
        Stmt body = store(out, {in_row}, cast(load(a, {idx(1), floor_div(Expr(l), idx(2)) + idx(1)}), kInt32));
        if (masked) body = if_then(less(floor_div(Expr(l), idx(2)) + idx(1), Expr(n)), body);
        Stmt k = single(for_loop(LoopKind::Vectorized, {l}, {idx(begin)}, {idx(lanes)}, body));
        const int64_t columns = masked ? (begin + lanes) / 2 : (begin + lanes) / 2 + 2;
        std::vector<int16_t> in(static_cast<size_t>(3 * columns));
        std::iota(in.begin(), in.end(), int16_t{1});
        if (masked) in.resize(static_cast<size_t>(2 * columns));
        std::vector<int32_t> got(static_cast<size_t>(lanes), -1);
        Arguments args;
        args.buffers = {{a.get(), in.data()}, {out.get(), got.data()}};
        args.scalars = {{n.get(), columns}};
        auto module = run(k, args);
        if (begin % 2 == 0 && lanes > 2) {
          EXPECT_EQ(module->llvm_ir(false).find("masked.gather"), std::string::npos) << lanes << " " << begin;
        }
        for (int64_t lane = 0; lane < lanes; ++lane) {
          const int64_t at = (begin + lane) / 2 + 1;
          ASSERT_EQ(got[static_cast<size_t>(lane)], at < columns ? columns + at + 1 : -1) << lanes << " " << begin;
        }
      }
    }
  }
}

TEST(Vectors, InnerLoopsRunInStep) {
  // out[l] = sum over k of a[k, l] in lanes, and a two-dimensional store out2[l, k].
  BufferRef a = param("a", kFloat32, {idx(9), idx(8)}), out = param("out", kFloat32, {idx(8)}),
            out2 = param("out2", kFloat32, {idx(8), idx(9)});
  VarRef l = var("l"), k = var("k");
  Expr e = load(a, {Expr(k), Expr(l)});
  Stmt body = seq(
      {store(out, {Expr(l)}, float_imm(0, kFloat32)),
       serial(k, idx(9), seq({store(out, {Expr(l)}, load(out, {Expr(l)}) + e), store(out2, {Expr(l), Expr(k)}, e)}))});
  std::vector<float> in = ramp(72), got(8), got2(72);
  Arguments args;
  args.buffers = {{a.get(), in.data()}, {out.get(), got.data()}, {out2.get(), got2.data()}};
  auto module = run(single(vectorized(l, 8, body)), args);
  EXPECT_NE(module->llvm_ir(false).find("load <8 x float>"), std::string::npos);
  for (size_t c = 0; c < 8; ++c) {
    float sum = 0;
    for (size_t r = 0; r < 9; ++r) {
      sum += in[r * 8 + c];
      EXPECT_EQ(got2[c * 9 + r], in[r * 8 + c]);
    }
    EXPECT_EQ(got[c], sum);
  }
}

/// acc[l] += x[j * 16 + l] on the stack: the accumulator must live in a register, so the inner loop loads and stores
/// nothing else.
TEST(Vectors, LocalAccumulatorsBecomeRegisters) {
  VarRef n = var("n"), j = var("j"), l = var("l"), l2 = var("l2"), l3 = var("l3");
  BufferRef x = param("x", kFloat32, {Expr(n)}), out = param("out", kFloat32, {idx(16)}),
            acc = at_place(local("acc", kFloat32, {16}), ArrayPlace::Stack);
  Stmt body =
      seq({alloc(acc), vectorized(l, 16, store(acc, {Expr(l)}, float_imm(0, kFloat32))),
           serial(j, floor_div(Expr(n), idx(16)),
                  vectorized(l2, 16,
                             store(acc, {Expr(l2)}, load(acc, {Expr(l2)}) + load(x, {Expr(j) * idx(16) + Expr(l2)})))),
           vectorized(l3, 16, store(out, {Expr(l3)}, load(acc, {Expr(l3)})))});
  std::vector<float> in = ramp(160), got(16);
  Arguments args;
  args.buffers = {{x.get(), in.data()}, {out.get(), got.data()}};
  args.scalars = {{n.get(), 160}};
  auto module = run(single(body), args);
  for (size_t c = 0; c < 16; ++c) {
    float sum = 0;
    for (size_t r = 0; r < 10; ++r) sum += in[r * 16 + c];
    EXPECT_EQ(got[c], sum);
  }
  const std::string ir = module->llvm_ir(true);
  EXPECT_NE(ir.find("phi <16 x float>"), std::string::npos);
  size_t stores = 0;
  for (size_t at = ir.find("store <16 x float>"); at != std::string::npos; at = ir.find("store <16 x float>", at + 1))
    ++stores;
  EXPECT_EQ(stores, 1u);
}

TEST(Memory, StridesOfParameters) {
  VarRef n = var("n"), s = var("s"), i = var("i"), l = var("l");
  BufferRef a = param("a", kFloat32, {Expr(n), idx(8)}, {Expr(s), idx(2)}),
            out = param("out", kFloat32, {Expr(n), idx(8)}, {idx(8), idx(1)});
  for (bool lanes : {false, true}) {
    Stmt body = store(out, {Expr(i), Expr(l)}, load(a, {Expr(i), Expr(l)}));
    Stmt k = single(serial(i, Expr(n), lanes ? vectorized(l, 8, body) : serial(l, idx(8), body)));
    std::vector<float> in = ramp(200), got(24);
    Arguments args;
    args.buffers = {{a.get(), in.data()}, {out.get(), got.data()}};
    args.scalars = {{n.get(), 3}, {s.get(), 61}};
    run(k, args);
    for (size_t r = 0; r < 3; ++r) {
      for (size_t c = 0; c < 8; ++c) EXPECT_EQ(got[r * 8 + c], in[r * 61 + c * 2]);
    }
  }
}

/// A vector along a dimension whose stride is known only at the call.
TEST(Vectors, RuntimeStridesGather) {
  VarRef s = var("s"), l = var("l");
  BufferRef a = param("a", kFloat32, {idx(8)}, {Expr(s)}), out = param("out", kFloat32, {idx(8)});
  Stmt k = single(vectorized(l, 8, store(out, {idx(7) - Expr(l)}, load(a, {Expr(l)}))));
  std::vector<float> in = ramp(100), got(8);
  Arguments args;
  args.buffers = {{a.get(), in.data()}, {out.get(), got.data()}};
  args.scalars = {{s.get(), 13}};
  run(k, args);
  for (size_t c = 0; c < 8; ++c) EXPECT_EQ(got[7 - c], in[c * 13]);
}

/// t = a + 1; u = t * 2 (t dead after), v = u - 3 shares t's memory, all of them at one place.
void expect_results_at(ArrayPlace where) {
  VarRef i = var("i"), j = var("j"), k1 = var("k");
  BufferRef a = param("a", kFloat32, {idx(600)}), out = param("out", kFloat32, {idx(600)});
  BufferRef t = local("t", kFloat32, {600}, MemoryScope::Shared), u = local("u", kFloat32, {600}, MemoryScope::Shared);
  BufferRef v = local("v", kFloat32, {600}, MemoryScope::Fragment);
  for (BufferRef* each : {&t, &u, &v}) *each = at_place(*each, where);
  VarRef i2 = var("i"), j2 = var("j");
  Stmt first = seq({alloc(t), serial(i, idx(600), store(t, {Expr(i)}, load(a, {Expr(i)}) + float_imm(1, kFloat32))),
                    serial(j, idx(600), store(u, {Expr(j)}, load(t, {idx(599) - Expr(j)}) * float_imm(2, kFloat32)))});
  Stmt second = seq({alloc(v), serial(i2, idx(600), store(v, {Expr(i2)}, load(u, {Expr(i2)}) - float_imm(3, kFloat32))),
                     serial(j2, idx(600), store(out, {Expr(j2)}, load(v, {Expr(j2)})))});
  // Each half in its own scope.
  Stmt body = seq({alloc(u), serial(k1, idx(1), first), if_then(less(idx(0), idx(1)), second)});
  std::vector<float> in = ramp(600), got(600);
  Arguments args;
  args.buffers = {{a.get(), in.data()}, {out.get(), got.data()}};
  auto module = run(single(body), args);
  const int64_t scratch = where == ArrayPlace::Stack ? 0 : 2 * 2432;  // u, then t and v in one place
  EXPECT_EQ(module->kernels()[0].scratch_bytes, scratch);
  for (size_t e = 0; e < 600; ++e) ASSERT_EQ(got[e], (in[599 - e] + 1) * 2 - 3);
}

TEST(Memory, StackAndScratchGiveEqualResults) {
  expect_results_at(ArrayPlace::Registers);
  expect_results_at(ArrayPlace::Stack);
}

TEST(Memory, BuffersStandWhereTheyArePlaced) {
  std::vector<Stmt> body;
  std::vector<BufferRef> buffers;
  BufferRef out = param("out", kInt32, {idx(20)});
  for (int k = 0; k < 20; ++k) {
    const BufferRef part = local("part", kInt32, {1500}, MemoryScope::Shared);
    buffers.push_back(k < 10 ? at_place(part, ArrayPlace::Stack) : part);
    body.push_back(alloc(buffers.back()));
  }
  VarRef n = var("n");
  for (int k = 0; k < 20; ++k)
    body.push_back(store(buffers[static_cast<size_t>(k)], {Expr(n)}, int_imm(k * k, kInt32)));
  for (int k = 0; k < 20; ++k) body.push_back(store(out, {idx(k)}, load(buffers[static_cast<size_t>(k)], {Expr(n)})));
  std::vector<int32_t> got(20);
  Arguments args;
  args.buffers = {{out.get(), got.data()}};
  args.scalars = {{n.get(), 1234}};
  auto module = run(single(seq(body)), args);
  EXPECT_EQ(module->kernels()[0].scratch_bytes, 10 * 6016);
  for (int k = 0; k < 20; ++k) EXPECT_EQ(got[static_cast<size_t>(k)], k * k);
}

TEST(Memory, CoresHaveTheirOwnInstances) {
  // Core (x, y) copies its instance of g, plus its rank, to its instance of h; a parameter is shared.
  VarRef x = var("x"), y = var("y"), i = var("i");
  BufferRef g = make_buffer("g", kFloat32, MemoryScope::Global, {idx(5)}),
            h = make_buffer("h", kFloat64, MemoryScope::Global, {idx(5)});
  BufferRef p = param("p", kFloat32, {idx(5)});
  Expr value = load(g, {Expr(i)}) + load(p, {Expr(i)}) + cast(Expr(x) * idx(3) + Expr(y), kFloat32);
  Stmt k = kernel({x, y}, {idx(2), idx(3)}, 128, serial(i, idx(5), store(h, {Expr(i)}, cast(value, kFloat64))));
  std::vector<float> vg(6 * 16), vp = ramp(5);
  std::vector<double> vh(6 * 8, -1);
  for (size_t e = 0; e < vg.size(); ++e) vg[e] = static_cast<float>(e);
  Arguments args;
  args.buffers = {{g.get(), vg.data()}, {h.get(), vh.data()}, {p.get(), vp.data()}};
  const KernelInterface interface = kernel_interface(*as<Kernel>(k));
  for (const BufferRef& b : interface.buffers) {
    if (b->scope == MemoryScope::Global) args.instance_strides.push_back(64);
  }
  args.end = 6;
  run(k, args, true);
  for (size_t core = 0; core < 6; ++core) {
    for (size_t e = 0; e < 8; ++e) {
      const double want = e < 5 ? static_cast<double>(core * 16 + e) + vp[e] + static_cast<double>(core) : -1;
      EXPECT_EQ(vh[core * 8 + e], want);
    }
  }
}

/// Y[b, l] = 2 X[b, l] for each lane, in pieces around the caches, where Y begins at a multiple of them.
TEST(Memory, LanesGoAroundTheCachesInPieces) {
  constexpr int64_t kRows = 3, kLanes = 64;
  for (DType type : {kFloat32, kFloat64, DType{TypeCode::Int, 8}, DType{TypeCode::Float, 16}, kBool}) {
    for (int64_t piece : {16, 32, 64}) {
      const VarRef b = make_var("b"), l = make_var("l");
      const BufferRef x = param("X", type, {idx(kRows), idx(kLanes)}), y = param("Y", type, {idx(kRows), idx(kLanes)});
      const Stmt put = store_nontemporal(y, {b, l}, load(x, {b, l}), piece);
      const Stmt k = kernel({b}, {idx(kRows)}, 128, for_loop(LoopKind::Vectorized, l, idx(kLanes), put));
      const auto bytes = static_cast<size_t>(kRows * kLanes * type.bytes());
      std::vector<char> in(bytes), memory(bytes + 256, 7);
      for (size_t e = 0; e < bytes; ++e) in[e] = static_cast<char>(type.is_bool() ? e % 3 == 0 : e % 100);
      char* out =
          memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) + 64 - (piece == 64 ? 0 : piece);
      Arguments a;
      a.buffers[x.get()] = in.data();
      a.buffers[y.get()] = out;
      a.end = kRows;
      const auto module = compile_cpu({{"test", as_kernel(k)}});
      EXPECT_NE(module->llvm_ir(true).find("!nontemporal"), std::string::npos);
      call(module->kernels()[0], *as<Kernel>(k), a);
      for (size_t e = 0; e < bytes; ++e) ASSERT_EQ(out[e], in[e]) << e << " of " << to_string(type);
      EXPECT_EQ(out[-1], 7);
      EXPECT_EQ(out[bytes], 7);
    }
  }
}

TEST(Memory, WhereTensorsBegin) {
  const BufferRef x = param("X", kInt32, {idx(64)}), out = param("out", kInt32, {idx(2)});
  const Stmt k = single(seq({store(out, {idx(0)}, cast(misalignment(x, 64), kInt32)),
                             store(out, {idx(1)}, cast(misalignment(x, 16), kInt32))}));
  alignas(64) std::array<int32_t, 128> memory{};
  for (size_t offset = 0; offset < 40; ++offset) {
    std::array<int32_t, 2> found{};
    Arguments a;
    a.buffers[x.get()] = memory.data() + offset;
    a.buffers[out.get()] = found.data();
    run(k, a);
    EXPECT_EQ(found[0], static_cast<int32_t>(offset * 4 % 64));
    EXPECT_EQ(found[1], static_cast<int32_t>(offset * 4 % 16));
  }
}

TEST(Memory, PrefetchesMayLieOutside) {
  const BufferRef x = param("X", kFloat32, {idx(2), idx(64)}), y = param("Y", kFloat32, {idx(2), idx(64)});
  const VarRef b = make_var("b"), l = make_var("l");
  const Stmt lanes = for_loop(LoopKind::Vectorized, l, idx(64),
                              seq({store(y, {b, l}, load(x, {b, l})), prefetch(x, {Expr(b) + idx(1), l})}));
  const Stmt k = kernel({b}, {idx(2)}, 128, seq({lanes, prefetch(x, {Expr(b) * idx(1 << 20), idx(-5)})}));
  std::vector<float> in(128, 3), out(128);
  Arguments a;
  a.buffers[x.get()] = in.data();
  a.buffers[y.get()] = out.data();
  a.end = 2;
  run(k, a);
  EXPECT_EQ(in, out);
  const std::string text = compile_cpu({{"test", as_kernel(k)}})->llvm_ir(true);
  EXPECT_NE(text.find("llvm.prefetch"), std::string::npos);
}

TEST(Arguments, ScalarsOfEveryDtype) {
  for (DType t :
       {kFloat64, kFloat32, DType{TypeCode::Float, 16}, DType{TypeCode::BFloat, 16}, DType{TypeCode::Float8E4M3, 8},
        kInt32, kInt64, DType{TypeCode::UInt, 8}, DType{TypeCode::Int, 8}, kBool, kIndex}) {
    VarRef s = make_var("s", t);
    BufferRef out = param("out", t, {idx(1)});
    Stmt k = single(store(out, {idx(0)}, Expr(s)));
    Cells cells(t, 1);
    Arguments args;
    args.buffers = {{out.get(), cells.data()}};
    const double value = t.is_bool() ? 1 : t.is_signed() ? -3.5 : 3.5;
    const uint64_t bits = t.is_float() ? float_bits(value, t) : static_cast<uint64_t>(static_cast<int64_t>(value));
    args.scalars = {{s.get(), static_cast<int64_t>(bits)}};
    run(k, args);
    if (t.is_float())
      EXPECT_EQ(cells.real(0), value) << to_string(t);
    else
      EXPECT_EQ(cells.integer(0), wrap_to(static_cast<int64_t>(value), t)) << to_string(t);
  }
}

TEST(Rounding, StoresRoundOnceAndExpressionsDoNot) {
  // (a + b) + c in bfloat16 operands is float32 until the store: 256 + 1 is no bfloat16, 256 + 1 + 1 is.
  const DType bf16{TypeCode::BFloat, 16};
  BufferRef a = param("a", bf16, {idx(2)}), out = param("out", bf16, {idx(2)});
  Expr one = float_imm(1, bf16);
  Expr sum = load(a, {idx(0)}) + one + one;
  Stmt k =
      single(seq({store(out, {idx(0)}, sum),
                  store(out, {idx(1)},
                        cast(cast(cast(load(a, {idx(0)}) + one, kFloat32), bf16), kFloat32) + cast(one, kFloat32))}));
  Cells in(bf16, 2), got(bf16, 2);
  in.set(0, 256);
  Arguments args;
  args.buffers = {{a.get(), in.data()}, {out.get(), got.data()}};
  run(k, args);
  EXPECT_EQ(got.real(0), 258);
  EXPECT_EQ(got.real(1), 256);  // rounded to 256 in between, 257 rounds to even
}

TEST(Rounding, NothingIsContracted) {
  // a * b - c with a rounding product: contraction would give the error of the product instead of 0.
  BufferRef a = param("a", kFloat32, {idx(16)}), out = param("out", kFloat32, {idx(32)});
  VarRef l = var("l");
  Expr x = load(a, {Expr(l)});
  Stmt body = seq({store(out, {Expr(l)}, x * x - float_imm(1.0002441556930542, kFloat32)),
                   store(out, {Expr(l) + idx(16)}, apply(Op::Fma, {x, x, float_imm(-1.0002441556930542, kFloat32)}))});
  Stmt k = single(seq({serial(l, idx(16), body)}));
  std::vector<float> in(16, 1.0f + 0x1p-13f), got(32);
  const float product = in[0] * in[0];
  ASSERT_EQ(product, 1.0002441556930542f);
  Arguments args;
  args.buffers = {{a.get(), in.data()}, {out.get(), got.data()}};
  run(k, args);
  for (size_t e = 0; e < 16; ++e) {
    EXPECT_EQ(got[e], 0.0f);
    EXPECT_EQ(got[e + 16], std::fma(in[0], in[0], -product));
    EXPECT_NE(got[e + 16], 0.0f);
  }
}

Stmt add_constant(const BufferRef& a, const BufferRef& out, float c) {
  VarRef i = var("i");
  return single(
      for_loop(LoopKind::Parallel, i, idx(37), store(out, {Expr(i)}, load(a, {Expr(i)}) + float_imm(c, kFloat32))));
}

TEST(Modules, SeveralKernelsAndTheirTexts) {
  BufferRef a = param("a", kFloat32, {idx(37)}), out = param("out", kFloat32, {idx(37)});
  std::vector<Stmt> kernels;
  std::vector<KernelSource> sources;
  for (int k = 0; k < 5; ++k) {
    kernels.push_back(add_constant(a, out, static_cast<float>(k)));
    sources.push_back({"add" + std::to_string(k), as_kernel(kernels.back())});
  }
  auto module = compile_cpu(sources);
  ASSERT_EQ(module->kernels().size(), 5u);
  std::vector<float> in = ramp(37), got(37);
  for (size_t k = 0; k < 5; ++k) {
    EXPECT_EQ(module->kernels()[k].name, "add" + std::to_string(k));
    Arguments args;
    args.buffers = {{a.get(), in.data()}, {out.get(), got.data()}};
    call(module->kernels()[k], *as<Kernel>(kernels[k]), args);
    for (size_t e = 0; e < 37; ++e) ASSERT_EQ(got[e], in[e] + static_cast<float>(k));
  }
  EXPECT_NE(module->llvm_ir(false).find("define void @helve_kernel_4("), std::string::npos);
  EXPECT_NE(module->llvm_ir(true).find("fadd <"), std::string::npos);
  EXPECT_NE(module->assembly().find("helve_kernel_4:"), std::string::npos);
  EXPECT_NE(module->target().find("linux"), std::string::npos);
  EXPECT_TRUE(compile_cpu({})->kernels().empty());
}

TEST(Modules, EveryOptimizationLevelComputesTheSame) {
  BufferRef a = param("a", kFloat32, {idx(37)}), out = param("out", kFloat32, {idx(37)});
  Stmt k = add_constant(a, out, 2.5f);
  for (int level : {0, 1, 2, 3}) {
    std::vector<float> in = ramp(37), got(37);
    Arguments args;
    args.buffers = {{a.get(), in.data()}, {out.get(), got.data()}};
    run(k, args, false, CpuOptions{.optimization = level});
    for (size_t e = 0; e < 37; ++e) ASSERT_EQ(got[e], in[e] + 2.5f) << level;
  }
}

TEST(Modules, ConcurrentCompilesDoNotMeet) {
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&wrong, t] {
      for (int round = 0; round < 5; ++round) {
        BufferRef a = param("a", kFloat32, {idx(37)}), out = param("out", kFloat32, {idx(37)});
        const auto c = static_cast<float>(t * 10 + round);
        std::vector<float> in = ramp(37), got(37);
        Arguments args;
        args.buffers = {{a.get(), in.data()}, {out.get(), got.data()}};
        run(add_constant(a, out, c), args);
        for (size_t e = 0; e < 37; ++e) wrong += got[e] != in[e] + c;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Modules, WhatIsNotLoweredIsRefused) {
  BufferRef a = param("a", kFloat32, {idx(4)});
  Stmt k = single(tile_op(TileOpcode::Clear, {whole_region(a)}));
  EXPECT_THROW(compile_cpu({{"k", as_kernel(k)}}), InternalError);
}

}  // namespace
}  // namespace helve::testing
