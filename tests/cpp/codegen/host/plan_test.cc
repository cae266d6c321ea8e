// Plans of lowered functions: their text, and what they do when executed with kernels written by hand.
#include <gtest/gtest.h>

#include <functional>
#include <numeric>

#include "helve/codegen/host/host_module.h"
#include "helve/runtime/executor.h"
#include "helve/support/diagnostic.h"

namespace helve {
namespace {

Expr idx(int64_t v) { return int_imm(v); }
BufferRef param(const char* name, std::vector<Expr> shape, std::vector<Expr> strides = {}) {
  return make_buffer(name, kFloat32, MemoryScope::Param, std::move(shape), {}, std::move(strides));
}
BufferRef global(const char* name, std::vector<int64_t> shape) {
  std::vector<Expr> extents;
  for (int64_t e : shape) extents.push_back(idx(e));
  return make_buffer(name, kFloat32, MemoryScope::Global, std::move(extents));
}

FunctionRef function(std::vector<VarRef> dims, std::vector<Param> params, Stmt body,
                     std::optional<MeshShape> mesh = {}) {
  Ref<Function> f = make_ref<Function>();
  f->name = "main";
  f->dims = std::move(dims);
  f->params = std::move(params);
  f->mesh = std::move(mesh);
  f->body = std::move(body);
  return FunctionRef(f);
}

TEST(HostPlan, VectorAdd) {
  VarRef m = make_var("M"), b = make_var("b"), i = make_var("i");
  BufferRef x = param("A", {Expr(m)}), y = param("B", {Expr(m)}), out = param("C", {Expr(m)});
  Expr at = Expr(b) * idx(64) + Expr(i);
  Stmt body = if_then(less(at, Expr(m)), store(out, {at}, load(x, {at}) + load(y, {at})));
  Stmt k = kernel({b}, {ceil_div(Expr(m), idx(64))}, 128, for_loop(LoopKind::Parallel, i, idx(64), body));
  FunctionRef f = function({m}, {x, y, out}, k);
  HostModule host = build_host(f, f);
  ASSERT_EQ(host.kernels.size(), 1u);
  EXPECT_EQ(host.kernels[0].name, "main_0");
  EXPECT_EQ(host.kernels[0].stmt.get(), as<Kernel>(k));
  EXPECT_FALSE(host.kernels[0].mesh);
  const runtime::Plan& plan = host.plan;
  EXPECT_EQ(plan.slots, std::vector<std::string>{"M"});
  EXPECT_EQ(plan.params[0].read, true);
  EXPECT_EQ(plan.params[0].written, false);
  EXPECT_EQ(plan.params[2].read, false);
  EXPECT_EQ(plan.params[2].written, true);
  EXPECT_EQ(std::get<runtime::BindSlot>(plan.params[1].dims[0]).slot, 0);
  const auto& launch = std::get<runtime::Launch>(plan.steps.at(0).node);
  EXPECT_EQ(launch.buffers, (std::vector<int64_t>{2, 0, 1}));  // C is used first: it is stored to
  EXPECT_EQ(runtime::to_text(launch.blocks, &plan.slots), "((M + 64) - 1) // 64");
  const std::vector<int64_t> slots{129};
  EXPECT_EQ(runtime::evaluate(launch.blocks, slots), 3);
  ASSERT_EQ(launch.scalars.size(), 1u);
  EXPECT_EQ(launch.scalars[0], runtime::ScalarProgram::slot(0));
  runtime::verify(plan, 1);
  EXPECT_NE(runtime::to_text(host.plan).find("main_0"), std::string::npos);
}

TEST(HostPlan, NamesAndShapesComeFromTheSignature) {
  // Lowering may bring parameters of its own making; the plan shows the user's.
  VarRef m = make_var("rows"), s = make_var("pitch", kIndex), scale = make_var("scale", kFloat32);
  VarRef m2 = make_var("m"), s2 = make_var("p", kIndex), scale2 = make_var("f", kFloat32), b = make_var("b");
  BufferRef x = param("X", {Expr(m), idx(8)}, {Expr(s), idx(1)}),
            x2 = param("x_flat", {Expr(m2), idx(8)}, {Expr(s2), idx(1)});
  FunctionRef user = function({m}, {x, s, scale}, seq({}));
  Stmt body = store(x2, {Expr(b), idx(0)}, load(x2, {Expr(b), idx(1)}) * Expr(scale2));
  FunctionRef lowered = function({m2}, {x2, s2, scale2}, kernel({b}, {Expr(m2)}, 128, body));
  HostModule host = build_host(user, lowered);
  EXPECT_EQ(host.plan.slots, (std::vector<std::string>{"rows", "pitch", "scale"}));
  EXPECT_EQ(host.plan.params[0].name, "X");
  EXPECT_EQ(runtime::to_text(host.plan.params[0].strides[0], &host.plan.slots), "pitch");
  EXPECT_EQ(host.plan.scalar_params[1].name, "scale");
  EXPECT_EQ(host.plan.scalar_params[1].dtype, (runtime::DLDataType{runtime::kDLFloat, 32, 1}));
  EXPECT_EQ(host.plan.scalar_params[1].slot, 2);
  const auto& check = std::get<runtime::Check>(host.plan.steps.at(0).node);  // of the address that rows and pitch make
  EXPECT_EQ(check.fault.code, Code::IndexRange);
  ASSERT_EQ(check.values.size(), 2u);
  EXPECT_EQ(check.values[0].name, "rows");
  EXPECT_EQ(check.values[1].name, "pitch");
  const auto& launch = std::get<runtime::Launch>(host.plan.steps.at(1).node);
  EXPECT_EQ(launch.buffers, std::vector<int64_t>{0});
  runtime::verify(host.plan, 1);
}

TEST(HostPlan, LoopsBranchesAndBinds) {
  // for t in 2 .. n: k = t * 3; if k > 7: launch(k) else allocate G of k elements
  VarRef n = make_var("n", kInt32), t = make_var("t"), k = make_var("k"), b = make_var("b");
  BufferRef out = param("out", {idx(100)}), g = make_buffer("G", kFloat32, MemoryScope::Global, {Expr(k), idx(2)});
  Stmt launch = kernel({b}, {Expr(k)}, 128, store(out, {Expr(k)}, float_imm(1, kFloat32)));
  Stmt body = seq({bind(k, Expr(t) * idx(3)), if_then(apply(Op::Gt, {Expr(k), idx(7)}), launch, alloc(g))});
  Stmt loop = for_loop(LoopKind::Serial, {t}, {idx(2)}, {cast(Expr(n), kIndex) - idx(2)}, body);
  FunctionRef f = function({}, {out, n}, loop);
  HostModule host = build_host(f, f);
  runtime::verify(host.plan, 1);
  const auto& node = std::get<runtime::Loop>(host.plan.steps.at(0).node);
  const auto& names = host.plan.slots;
  EXPECT_EQ(names, (std::vector<std::string>{"n", "t"}));
  EXPECT_EQ(runtime::to_text(node.begin, &names), "2");
  EXPECT_EQ(runtime::to_text(node.extent, &names), "n - 2");
  const auto& branch = std::get<runtime::Branch>(node.body.at(0).node);
  EXPECT_EQ(runtime::to_text(branch.condition, &names), "7 < (t * 3)");
  EXPECT_EQ(runtime::to_text(std::get<runtime::Check>(branch.then_steps.at(0).node).condition, &names), "0 <= (t * 3)");
  EXPECT_EQ(runtime::to_text(std::get<runtime::Launch>(branch.then_steps.at(1).node).scalars.at(0), &names), "t * 3");
  EXPECT_EQ(std::get<runtime::Allocate>(branch.else_steps.at(0).node).buffer, 1);
  EXPECT_EQ(runtime::to_text(host.plan.buffers.at(0).elements, &names), "(t * 3) * 2");
}

TEST(HostPlan, ConditionsOfTheCallStandFirst) {
  VarRef n = make_var("n", kInt32), user = make_var("n", kInt32);
  BufferRef out = param("out", {idx(100)});
  const auto of = [&](const VarRef& v) {
    return function({}, {out, v}, kernel({make_var("b")}, {idx(1)}, 128, seq({})));
  };
  // Of the signature's parameters, whose data integers stand for their values.
  const Expr condition = make_ref<Apply>(kBool, Op::Le, std::vector<Expr>{Expr(user), idx(64)});
  const CallCondition needed{condition, {Code::CallCondition, {}, {}, {}, {}}};
  const HostModule host = build_host(of(user), of(n), {needed});
  runtime::verify(host.plan, 1);
  const auto& check = std::get<runtime::Check>(host.plan.steps.at(0).node);
  EXPECT_EQ(runtime::to_text(check.condition, &host.plan.slots), "n <= 64");
  EXPECT_EQ(check.values.at(0).name, "n");
  EXPECT_EQ(signature_plan(of(user), {needed}).steps.size(), 1u);
}

TEST(HostPlan, ValuesThatTheHostCannotComputeMoveIntoKernels) {
  VarRef s = make_var("s", kFloat32), twice = make_var("twice", kFloat32), four = make_var("four", kFloat32),
         b = make_var("b");
  BufferRef in = param("in", {idx(4)}), out = param("out", {idx(4)});
  Stmt k = kernel({b}, {idx(4)}, 128, store(out, {Expr(b)}, Expr(four)));
  FunctionRef f = function({}, {in, out, s},
                           seq({bind(twice, Expr(s) * load(in, {idx(1)})), bind(four, Expr(twice) + Expr(twice)), k}));
  HostModule host = build_host(f, f);
  const Seq* body = as<Seq>(host.kernels.at(0).stmt->body);
  ASSERT_TRUE(body);
  ASSERT_EQ(body->stmts.size(), 3u);
  EXPECT_EQ(as<Bind>(body->stmts[0])->var, twice);
  EXPECT_EQ(as<Bind>(body->stmts[1])->var, four);
  const auto& launch = std::get<runtime::Launch>(host.plan.steps.at(0).node);
  EXPECT_EQ(launch.buffers, (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(launch.scalars, std::vector<runtime::ScalarProgram>{runtime::ScalarProgram::slot(0)});
}

std::string refusal(const FunctionRef& f) {
  try {
    build_host(f, f);
  } catch (const UserError& e) {
    EXPECT_EQ(e.diagnostic().code, Code::HostExpression);
    return e.diagnostic().message();
  }
  return "not refused";
}

TEST(HostPlan, DataOnTheHostIsRefused) {
  const std::string tail =
      " is needed on the host, which computes with extents, integer parameters, loop variables and "
      "single integers of tensors";
  VarRef b = make_var("b"), v = make_var("v", kFloat32);
  BufferRef a = param("a", {idx(4)});
  Expr first = load(a, {idx(0)});
  Stmt k = kernel({b}, {idx(4)}, 128, store(a, {Expr(b)}, Expr(v)));
  EXPECT_EQ(refusal(function({}, {a}, if_then(apply(Op::Gt, {first, float_imm(0, kFloat32)}), seq({})))),
            "a condition, a[0] > 0.0," + tail);
  // v reads what the kernel writes: computing it in the kernel would be too late.
  EXPECT_EQ(refusal(function({}, {a}, seq({bind(v, first), k}))), "'v', a[0]," + tail);
  EXPECT_EQ(refusal(function({}, {a}, while_loop(apply(Op::Gt, {first, float_imm(0, kFloat32)}), seq({})))),
            "the condition of a while loop, a[0] > 0.0," + tail);
  // The host reads what it evaluates; here it might read what must not be read.
  VarRef m = make_var("M");
  BufferRef n = make_buffer("n", kInt32, MemoryScope::Param, {Expr(m)});
  const Expr guarded = logical_and(less(idx(2), Expr(m)), apply(Op::Gt, {load(n, {idx(2)}), int_imm(0, kInt32)}));
  EXPECT_EQ(refusal(function({m}, {n}, if_then(guarded, seq({})))), "a condition, 2 < M and n[2] > 0," + tail);
}

TEST(HostPlan, IntegersOfMemoryDecide) {
  VarRef m = make_var("M"), b = make_var("b"), i = make_var("i");
  BufferRef n = make_buffer("n", kInt32, MemoryScope::Param, {Expr(m), idx(3)});
  BufferRef flags = make_buffer("flags", kBool, MemoryScope::Param, {idx(4)}, {}, {idx(2)});
  BufferRef a = param("a", {idx(4)});
  Stmt k = kernel({b}, {cast(load(n, {idx(0), idx(1)}), kIndex)}, 128, store(a, {idx(0)}, float_imm(1, kFloat32)));
  Stmt body = for_loop(LoopKind::Serial, i, cast(load(n, {Expr(m) - idx(1), idx(2)}), kIndex), k);
  FunctionRef f = function({m}, {n, flags, a}, while_loop(load(flags, {idx(3)}), body));
  EXPECT_EQ(runtime::to_text(build_host(f, f).plan), R"(plan main
    tensor n: int32[?M, 3] read
    tensor flags: bool[4] strides [2] read
    tensor a: float32[4] written
    repeat:
        read flags from flags: bool at 6
        leave unless flags
        check (0 <= (M - 1)) and ((M - 1) < M) else HV0210
        read n from n: int32 at (3 * (M - 1)) + 2
        diverge by extent = n:
            for i from 0 for extent:
                check (0 <= 0) and (0 < M) else HV0210
                read n from n: int32 at 1
                diverge by extent = n:
                    check 0 <= extent else HV0209
                    launch main_0 (kernel 0) blocks extent buffers [a] scalars [extent]
)");
}

/// The collectives: kernel 0 fills src of each core with core * 1000 + position, kernel 1 copies dst of each core to a
/// row of out.
int64_t src_elements = 0, dst_elements = 0;
void fill_src(void* const* buffers, const int64_t* scalars, int64_t begin, int64_t end, std::byte*) {
  for (int64_t c = begin; c < end; ++c) {
    auto* mine = reinterpret_cast<float*>(static_cast<std::byte*>(buffers[0]) + c * scalars[0]);
    for (int64_t i = 0; i < src_elements; ++i) mine[i] = static_cast<float>(c * 1000 + i);
  }
}
void clear_dst(void* const* buffers, const int64_t* scalars, int64_t begin, int64_t end, std::byte*) {
  for (int64_t c = begin; c < end; ++c) {
    auto* mine = reinterpret_cast<float*>(static_cast<std::byte*>(buffers[0]) + c * scalars[0]);
    for (int64_t i = 0; i < dst_elements; ++i) mine[i] = -1;
  }
}
void collect_dst(void* const* buffers, const int64_t* scalars, int64_t begin, int64_t end, std::byte*) {
  for (int64_t c = begin; c < end; ++c) {
    const auto* mine = reinterpret_cast<const float*>(static_cast<std::byte*>(buffers[1]) + c * scalars[0]);
    for (int64_t i = 0; i < dst_elements; ++i) static_cast<float*>(buffers[0])[c * dst_elements + i] = mine[i];
  }
}

constexpr int64_t kRows = 2, kColumns = 3, kCores = 6;

/// dst of all cores after the collective, on a 2 x 3 mesh.
std::vector<std::vector<float>> execute(const BufferRef& src, const BufferRef& dst, Stmt collective) {
  auto elements = [](const BufferRef& b) {
    int64_t n = 1;
    for (const Expr& e : b->shape) n *= *int_value(e);
    return n;
  };
  src_elements = elements(src);
  dst_elements = elements(dst);
  BufferRef out = param("out", {idx(kCores * dst_elements)});
  auto over_cores = [](Stmt body) {
    return kernel({make_var("x"), make_var("y")}, {idx(kRows), idx(kColumns)}, 128, std::move(body));
  };
  auto zeros = [](const BufferRef& b) { return std::vector<Expr>(b->rank(), idx(0)); };
  Stmt body = seq({alloc(src), alloc(dst), over_cores(store(src, zeros(src), float_imm(0, kFloat32))),
                   over_cores(store(dst, zeros(dst), float_imm(0, kFloat32))), std::move(collective),
                   over_cores(store(out, {idx(0)}, load(dst, zeros(dst))))});
  FunctionRef f = function({}, {out}, body, MeshShape{{kRows, kColumns}, {"x", "y"}});
  HostModule host = build_host(f, f);
  EXPECT_TRUE(host.kernels.at(0).mesh);
  EXPECT_TRUE(host.plan.buffers.at(0).per_core);
  std::vector<float> memory(static_cast<size_t>(kCores * dst_elements));
  int64_t shape[] = {kCores * dst_elements};
  runtime::DLTensor view{memory.data(), {runtime::kDLCPU, 0}, 1, {runtime::kDLFloat, 32, 1}, shape, nullptr, 0};
  runtime::Executor executor(host.plan, {fill_src, clear_dst, collect_dst});
  const runtime::TensorArgument arguments[] = {{&view, false}};
  executor.call(arguments);
  std::vector<std::vector<float>> result;
  for (int64_t c = 0; c < kCores; ++c) {
    result.emplace_back(memory.begin() + c * dst_elements, memory.begin() + (c + 1) * dst_elements);
  }
  return result;
}

float filled(int64_t core, int64_t i) { return static_cast<float>(core * 1000 + i); }

TEST(Collectives, AllGatherAddsADimensionOrConcatenates) {
  // src (2, 4) gathered along y (3 columns) as (2, 3, 4) with dim 1, then as (2, 12) along the last dimension.
  BufferRef src = global("src", {2, 4}), dst = global("dst", {2, 3, 4}), wide = global("dst", {2, 12});
  auto gather = [&](const BufferRef& d, int64_t dim) {
    return tile_op(TileOpcode::CommAllGather, {whole_region(src), whole_region(d), std::string("y"), dim});
  };
  auto stacked = execute(src, dst, gather(dst, 1));
  auto joined = execute(src, wide, gather(wide, -1));
  for (int64_t c = 0; c < kCores; ++c) {
    for (int64_t r = 0; r < 2; ++r) {
      for (int64_t k = 0; k < 3; ++k) {
        for (int64_t e = 0; e < 4; ++e) {
          const float want = filled(c / 3 * 3 + k, r * 4 + e);
          EXPECT_EQ(stacked[static_cast<size_t>(c)][static_cast<size_t>((r * 3 + k) * 4 + e)], want);
          EXPECT_EQ(joined[static_cast<size_t>(c)][static_cast<size_t>(r * 12 + k * 4 + e)], want);
        }
      }
    }
  }
}

TEST(Collectives, RegionsWithPointsAndOffsets) {
  // A row of src, columns 1:3, to column 2 of rows 4:6 of dst, from the core with index 1 along x.
  BufferRef src = global("src", {3, 4}), dst = global("dst", {6, 5});
  Region from{src, {{idx(2), idx(1), true}, {idx(1), idx(2), false}}};
  Region to{dst, {{idx(4), idx(2), false}, {idx(2), idx(1), true}}};
  auto got = execute(src, dst, tile_op(TileOpcode::CommBroadcast, {from, to, int64_t{1}, std::string("x")}));
  for (int64_t c = 0; c < kCores; ++c) {
    for (int64_t i = 0; i < 30; ++i) {
      const bool inside = i == 4 * 5 + 2 || i == 5 * 5 + 2;
      EXPECT_EQ(got[static_cast<size_t>(c)][static_cast<size_t>(i)],
                inside ? filled(3 + c % 3, 2 * 4 + 1 + (i / 5 - 4)) : -1);
    }
  }
}

TEST(Collectives, Reductions) {
  BufferRef src = global("src", {6}), dst = global("dst", {6}), part = global("dst", {2});
  auto all = execute(
      src, dst,
      tile_op(TileOpcode::CommAllReduce, {whole_region(src), whole_region(dst), std::string("sum"), std::string("y")}));
  auto max = execute(src, dst,
                     tile_op(TileOpcode::CommAllReduce,
                             {whole_region(src), whole_region(dst), std::string("max"), std::string("all")}));
  auto scattered = execute(src, part,
                           tile_op(TileOpcode::CommReduceScatter, {whole_region(src), whole_region(part),
                                                                   std::string("sum"), std::string("y"), int64_t{0}}));
  for (int64_t c = 0; c < kCores; ++c) {
    const int64_t row = c / 3 * 3;
    auto sum = [&](int64_t i) { return filled(row, i) + filled(row + 1, i) + filled(row + 2, i); };
    for (int64_t i = 0; i < 6; ++i) {
      EXPECT_EQ(all[static_cast<size_t>(c)][static_cast<size_t>(i)], sum(i));
      EXPECT_EQ(max[static_cast<size_t>(c)][static_cast<size_t>(i)], filled(5, i));
    }
    for (int64_t i = 0; i < 2; ++i)
      EXPECT_EQ(scattered[static_cast<size_t>(c)][static_cast<size_t>(i)], sum(c % 3 * 2 + i));
  }
}

TEST(Collectives, ReduceScatterOverAMemberDimension) {
  BufferRef src = global("src", {2, 2, 3}), dst = global("dst", {2, 3});
  auto got = execute(src, dst,
                     tile_op(TileOpcode::CommReduceScatter,
                             {whole_region(src), whole_region(dst), std::string("min"), std::string("x"), int64_t{1}}));
  for (int64_t c = 0; c < kCores; ++c) {
    for (int64_t r = 0; r < 2; ++r) {
      for (int64_t e = 0; e < 3; ++e)
        EXPECT_EQ(got[static_cast<size_t>(c)][static_cast<size_t>(r * 3 + e)], filled(c % 3, (r * 2 + c / 3) * 3 + e));
    }
  }
}

TEST(Collectives, AllToAllExchangesParts) {
  BufferRef src = global("src", {2, 6}), dst = global("dst", {2, 6});
  auto got =
      execute(src, dst,
              tile_op(TileOpcode::CommAllToAll, {whole_region(src), whole_region(dst), std::string("y"), int64_t{1}}));
  for (int64_t c = 0; c < kCores; ++c) {
    for (int64_t r = 0; r < 2; ++r) {
      for (int64_t e = 0; e < 6; ++e) {
        const int64_t sender = c / 3 * 3 + e / 2;
        EXPECT_EQ(got[static_cast<size_t>(c)][static_cast<size_t>(r * 6 + e)],
                  filled(sender, r * 6 + c % 3 * 2 + e % 2));
      }
    }
  }
}

TEST(Collectives, PermutesAndPuts) {
  BufferRef src = global("src", {5}), dst = global("dst", {5});
  for (int64_t shift : {1, -1, 4}) {
    auto ring = execute(
        src, dst, tile_op(TileOpcode::CommPermute, {whole_region(src), whole_region(dst), shift, std::string("y")}));
    auto whole = execute(
        src, dst, tile_op(TileOpcode::CommPermute, {whole_region(src), whole_region(dst), shift, std::string("all")}));
    for (int64_t c = 0; c < kCores; ++c) {
      EXPECT_EQ(ring[static_cast<size_t>(c)][3], filled(c / 3 * 3 + (c % 3 - shift + 6) % 3, 3));
      EXPECT_EQ(whole[static_cast<size_t>(c)][3], filled((c - shift + 12) % 6, 3));
    }
  }
  auto put =
      execute(src, dst,
              tile_op(TileOpcode::CommPut, {whole_region(src), whole_region(dst), std::vector<Expr>{idx(0), idx(2)},
                                            std::vector<Expr>{idx(1), idx(1)}}));
  for (int64_t c = 0; c < kCores; ++c) EXPECT_EQ(put[static_cast<size_t>(c)][4], c == 4 ? filled(2, 4) : -1);
  auto barrier = execute(src, dst, tile_op(TileOpcode::CommBarrier, {std::string("all")}));
  EXPECT_EQ(barrier[0][0], -1);
}

}  // namespace
}  // namespace helve
