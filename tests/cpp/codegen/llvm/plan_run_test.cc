// From a lowered function to results: host plan, machine code and executor together.
#include <cmath>

#include "helve/codegen/host/host_module.h"
#include "helve/runtime/executor.h"
#include "run_kernel.h"

namespace helve::testing {
namespace {

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

/// Plan, code and executor of a lowered function.
class Program {
 public:
  explicit Program(const FunctionRef& f, CpuOptions options = {}) {
    HostModule host = build_host(f, f);
    module_ = compile_cpu(host.kernels, options);
    std::vector<runtime::KernelEntry> entries;
    for (const CpuKernel& k : module_->kernels()) entries.push_back(k.entry);
    set_scratch(host.plan.steps);
    executor_ = std::make_unique<runtime::Executor>(host.plan, entries);
  }

  void call(std::vector<std::pair<std::vector<float>*, std::vector<int64_t>>> tensors,
            std::vector<runtime::ScalarArgument> scalars = {}) {
    std::vector<runtime::DLTensor> views;
    for (auto& [data, shape] : tensors) {
      views.push_back({data->data(),
                       {runtime::kDLCPU, 0},
                       static_cast<int32_t>(shape.size()),
                       {runtime::kDLFloat, 32, 1},
                       shape.data(),
                       nullptr,
                       0});
    }
    std::vector<runtime::TensorArgument> arguments;
    for (runtime::DLTensor& view : views) arguments.push_back({&view, false});
    executor_->call(arguments, scalars);
  }

 private:
  void set_scratch(std::vector<runtime::Step>& steps) {
    for (runtime::Step& step : steps) {
      if (auto* launch = std::get_if<runtime::Launch>(&step.node)) {
        launch->scratch_bytes = module_->kernels()[static_cast<size_t>(launch->kernel)].scratch_bytes;
      }
    }
  }

  std::shared_ptr<CpuModule> module_;
  std::unique_ptr<runtime::Executor> executor_;
};

TEST(Programs, ScaledAddOfAnySize) {
  VarRef m = make_var("M"), s = make_var("s", kFloat32), b = make_var("b"), i = make_var("i");
  BufferRef x = param("A", kFloat32, {Expr(m)}), y = param("B", kFloat32, {Expr(m)}),
            out = param("C", kFloat32, {Expr(m)});
  Expr at = Expr(b) * idx(64) + Expr(i);
  Stmt body = if_then(less(at, Expr(m)), store(out, {at}, load(x, {at}) * Expr(s) + load(y, {at})));
  for (LoopKind kind : {LoopKind::Parallel, LoopKind::Vectorized}) {
    Program program(function({m}, {x, y, out, s},
                             kernel({b}, {ceil_div(Expr(m), idx(64))}, 128, for_loop(kind, i, idx(64), body))));
    for (int64_t n : {0, 1, 63, 64, 65, 1000}) {
      std::vector<float> va(static_cast<size_t>(n)), vb(va), vc(va);
      for (size_t e = 0; e < va.size(); ++e) {
        va[e] = static_cast<float>(e) * 0.25f;
        vb[e] = static_cast<float>(e % 7);
      }
      program.call({{&va, {n}}, {&vb, {n}}, {&vc, {n}}}, {1.5});
      for (size_t e = 0; e < va.size(); ++e) ASSERT_EQ(vc[e], va[e] * 1.5f + vb[e]);
    }
  }
}

/// Rows of a matrix divided by their sums, the matrix cut over both axes of a mesh: partial sums are gathered along
/// each mesh row. Buffers of a core stand at the place.
void expect_normalized_rows(ArrayPlace where) {
  constexpr int64_t rows = 2, columns = 3, block_m = 5, block_n = 40;
  constexpr int64_t M = rows * block_m, N = columns * block_n;
  BufferRef a = param("A", kFloat32, {idx(M), idx(N)}), out = param("B", kFloat32, {idx(M), idx(N)});
  BufferRef part = make_buffer("part", kFloat32, MemoryScope::Global, {idx(block_m)});
  BufferRef parts = make_buffer("parts", kFloat32, MemoryScope::Global, {idx(block_m), idx(columns)});
  auto over_cores = [&](const std::function<Stmt(Expr, Expr)>& body) {
    VarRef r = make_var("r"), c = make_var("c");
    return kernel({r, c}, {idx(rows), idx(columns)}, 128, body(Expr(r), Expr(c)));
  };
  Stmt sums = over_cores([&](Expr r, Expr c) {
    VarRef i = make_var("i"), j = make_var("j");
    Expr element = load(a, {r * idx(block_m) + Expr(i), c * idx(block_n) + Expr(j)});
    return for_loop(
        LoopKind::Serial, i, idx(block_m),
        seq({store(part, {Expr(i)}, float_imm(0, kFloat32)),
             for_loop(LoopKind::Serial, j, idx(block_n), store(part, {Expr(i)}, load(part, {Expr(i)}) + element))}));
  });
  Stmt gather =
      tile_op(TileOpcode::CommAllGather, {whole_region(part), whole_region(parts), std::string("y"), int64_t{1}});
  Stmt divide = over_cores([&](Expr r, Expr c) {
    VarRef i = make_var("i"), j = make_var("j"), k = make_var("k");
    const BufferRef copy = at_place(local("copy", kFloat32, {block_m, block_n}, MemoryScope::Shared), where),
                    total = at_place(local("total", kFloat32, {1}), where);
    Expr row = r * idx(block_m) + Expr(i), column = c * idx(block_n) + Expr(j);
    Stmt fetch = for_loop(LoopKind::Parallel, {i, j}, {idx(0), idx(0)}, {idx(block_m), idx(block_n)},
                          store(copy, {Expr(i), Expr(j)}, load(a, {row, column})));
    Stmt write =
        for_loop(LoopKind::Parallel, j, idx(block_n),
                 store(out, {row, column}, apply(Op::Div, {load(copy, {Expr(i), Expr(j)}), load(total, {idx(0)})})));
    Stmt add = for_loop(LoopKind::Unroll, k, idx(columns),
                        store(total, {idx(0)}, load(total, {idx(0)}) + load(parts, {Expr(i), Expr(k)})));
    return seq({alloc(copy), fetch,
                for_loop(LoopKind::Serial, i, idx(block_m),
                         seq({alloc(total), store(total, {idx(0)}, float_imm(0, kFloat32)), add, write}))});
  });
  FunctionRef f = function({}, {a, out}, seq({alloc(part), alloc(parts), sums, gather, divide}),
                           MeshShape{{rows, columns}, {"x", "y"}});
  Program program(f);
  std::vector<float> in(M * N), got(M * N, -1);
  for (size_t e = 0; e < in.size(); ++e) in[e] = static_cast<float>(e * 31 % 64);
  program.call({{&in, {M, N}}, {&got, {M, N}}});
  for (size_t r = 0; r < M; ++r) {
    float sum = 0;
    for (size_t c = 0; c < N; ++c) sum += in[r * N + c];  // integers: exact in any order
    for (size_t c = 0; c < N; ++c) ASSERT_EQ(got[r * N + c], in[r * N + c] / sum) << r << " " << c;
  }
}

TEST(Programs, MeshNormalizesRowsThroughAGather) {
  expect_normalized_rows(ArrayPlace::Registers);
  expect_normalized_rows(ArrayPlace::Stack);
}

}  // namespace
}  // namespace helve::testing
