// RMSNorm on a mesh, built, compiled and run from C++ without Python.
// What tutorials/01_rms_norm.py writes as Python text is here the tree itself: buffers, statements, tile operations.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "helve/driver/compile.h"
#include "helve/print/printer.h"
#include "helve/support/diagnostic.h"

namespace {

using namespace helve;

/// for i, j in T.foreach_tiles(shape_of, parallel=True): target[i, j] = value(i, j)
template <class Value>
Stmt tile_loop(const BufferRef& shape_of, const BufferRef& target, Value&& value) {
  std::vector<VarRef> vars;
  std::vector<Expr> at;
  for (size_t d = 0; d < shape_of->rank(); ++d) {
    vars.push_back(make_var(d == 0 ? "i" : "j"));
    at.emplace_back(vars.back());
  }
  return for_tiles(shape_of, vars, true, tile_store(target, at, value(at)));
}

FunctionRef rms_norm_splitk(int64_t M, int64_t N, int64_t blk_m, int64_t blk_k, int64_t rows, int64_t columns) {
  Ref<Function> f = make_ref<Function>();
  f->name = "main";
  f->mesh = MeshShape{{rows, columns}, {"x", "y"}};

  BufferRef A = make_buffer("A", kFloat32, MemoryScope::Param, {int_imm(M), int_imm(N)});
  BufferRef B = make_buffer("B", kFloat32, MemoryScope::Param, {int_imm(M), int_imm(N)});
  f->params = {A, B};
  for (const BufferRef& tensor : {A, B}) {
    f->mesh_tensors.push_back({tensor, {{"x", 0}, {"y", 1}}, {blk_m, blk_k}, {}});
  }
  const std::vector<Expr> block = sharded_shape(*f->mesh, f->mesh_tensors[0]);

  const std::vector<Expr> tile_shape = {int_imm(blk_m), int_imm(blk_k)};
  BufferRef tile = make_buffer("A_tile", kFloat32, MemoryScope::Shared, tile_shape, {32, 32});
  BufferRef acc = make_buffer("acc", kFloat32, MemoryScope::Shared, tile_shape, {32, 32});
  BufferRef part = make_buffer("part", kFloat32, MemoryScope::Shared, {int_imm(blk_m)}, {32});
  BufferRef parts = make_buffer("parts", kFloat32, MemoryScope::Shared, {int_imm(blk_m), int_imm(columns)}, {32, 32});

  VarRef rid = make_var("rid");
  VarRef cid = make_var("cid");
  VarRef bx = make_var("bx");
  const Expr zero = float_imm(0, kFloat32);
  const Expr column_tiles = int_imm((*int_value(block[1]) + blk_k - 1) / blk_k);
  const Expr row_tiles = int_imm((*int_value(block[0]) + blk_m - 1) / blk_m);
  auto mesh_copy = [&](const BufferRef& from, const BufferRef& to, const VarRef& bk) {
    std::vector<Expr> coord = {Expr(bx), Expr(bk)};
    return tile_op(TileOpcode::MeshTensorCopy, {whole_region(from), whole_region(to), coord, zero});
  };
  auto reduce = [&](const BufferRef& from, const BufferRef& to) {
    return tile_op(TileOpcode::ReduceSum, {whole_region(from), whole_region(to), int64_t{1}, true});
  };

  VarRef k1 = make_var("bk");
  Stmt square = tile_loop(tile, acc, [&](const std::vector<Expr>& at) {
    return tile_load(acc, at) + tile_load(tile, at) * tile_load(tile, at);
  });
  Stmt scale = tile_loop(part, part, [&](const std::vector<Expr>& at) {
    Expr mean = apply(Op::Div, {tile_load(part, at), float_imm(static_cast<double>(N), kFloat32)});
    return apply(Op::Rsqrt, {mean + float_imm(1e-6, kFloat32)});
  });
  VarRef k2 = make_var("bk");
  Stmt normalize = tile_loop(
      tile, tile, [&](const std::vector<Expr>& at) { return tile_load(tile, at) * tile_load(part, {at[0]}); });

  Stmt iteration = seq({
      tile_op(TileOpcode::Fill, {whole_region(acc), zero}),
      for_loop(LoopKind::Serial, k1, column_tiles, seq({mesh_copy(A, tile, k1), square})),
      reduce(acc, part),
      tile_op(TileOpcode::CommAllGather, {whole_region(part), whole_region(parts), std::string("y"), int64_t{-1}}),
      reduce(parts, part),
      scale,
      for_loop(LoopKind::Serial, k2, column_tiles, seq({mesh_copy(A, tile, k2), normalize, mesh_copy(tile, B, k2)})),
  });
  Stmt body = seq(
      {alloc(tile), alloc(acc), alloc(part), alloc(parts), for_loop(LoopKind::Persistent, bx, row_tiles, iteration)});
  f->body = kernel({rid, cid}, {int_imm(rows), int_imm(columns)}, 128, body);
  return FunctionRef(f);
}

runtime::DLTensor tensor_of(std::vector<float>& data, int64_t* shape) {
  runtime::DLTensor t = {};
  t.data = data.data();
  t.device = {runtime::kDLCPU, 0};
  t.ndim = 2;
  t.dtype = {runtime::kDLFloat, 32, 1};
  t.shape = shape;
  return t;
}

/// The largest absolute difference from the definition in double.
double largest_error(const std::vector<float>& a, const std::vector<float>& b, int64_t M, int64_t N) {
  double worst = 0;
  for (int64_t i = 0; i < M; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < N; ++j) sum += double{a[i * N + j]} * a[i * N + j];
    const double scale = 1 / std::sqrt(sum / static_cast<double>(N) + 1e-6);
    for (int64_t j = 0; j < N; ++j) {
      const double error = std::fabs(b[i * N + j] - a[i * N + j] * scale);
      if (!(error <= worst)) worst = error;  // a NaN is the worst
    }
  }
  return worst;
}

bool run(Target target, int64_t M, int64_t N, int64_t rows, int64_t columns) {
  CompileOptions options;
  options.target = target;
  options.verify_passes = true;
  auto kernel = compile(rms_norm_splitk(M, N, 32, 64, rows, columns), options);

  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<float> a(static_cast<size_t>(M * N));
  for (float& x : a) x = normal(random);
  std::vector<float> b(a.size(), NAN);
  int64_t shape[] = {M, N};
  const runtime::DLTensor in = tensor_of(a, shape);
  const runtime::DLTensor out = tensor_of(b, shape);
  const std::vector<runtime::TensorArgument> arguments = {{&in}, {&out}};
  kernel->call(arguments, {}, {});

  const double error = largest_error(a, b, M, N);
  std::printf("%-6s %4lld x %-4lld on %lldx%lld: largest error %.1e\n", std::string(to_string(target)).c_str(),
              static_cast<long long>(M), static_cast<long long>(N), static_cast<long long>(rows),
              static_cast<long long>(columns), error);
  return error < 1e-5;
}

}  // namespace

int main(int argc, char**) {
  try {
    if (argc > 1) std::puts(print(rms_norm_splitk(128, 256, 32, 64, 2, 2)).c_str());
    bool good = run(Target::Interp, 50, 77, 2, 3);
#ifdef HELVE_WITH_LLVM
    good = run(Target::Llvm, 50, 77, 2, 3) && good;
    good = run(Target::Llvm, 1000, 777, 3, 2) && good;
#endif
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
  } catch (const std::exception& error) {
    std::puts(error.what());
    return EXIT_FAILURE;
  }
}
