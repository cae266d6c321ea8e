// CUDA C without Python: kernels built node by node, and what is said of them.
#include "helve/codegen/cuda/cuda_module.h"

#include <gtest/gtest.h>

#include "helve/support/diagnostic.h"

namespace helve {
namespace {

BufferRef param(const char* name, DType dtype, int64_t extent) {
  return make_buffer(name, dtype, MemoryScope::Param, {int_imm(extent)});
}

KernelSource source_of(Stmt body, std::vector<VarRef> vars, std::vector<Expr> extents, int64_t threads) {
  Stmt k = kernel(std::move(vars), std::move(extents), threads, std::move(body));
  return {"main_0", Ref<const Kernel>(as<Kernel>(k))};
}

Stmt over_threads(const VarRef& tx, int64_t threads, Stmt body) {
  return for_loop(LoopKind::Thread, tx, int_imm(threads), std::move(body));
}

TEST(CudaModule, AVectorOfEachThread) {
  BufferRef a = param("A", kFloat32, 4096), b = param("B", kFloat32, 4096);
  VarRef bx = make_var("bx"), tx = make_var("t"), v = make_var("v");
  const Expr at = (Expr(bx) * int_imm(64) + Expr(tx)) * int_imm(4) + Expr(v);
  Stmt lanes = for_loop(LoopKind::Vectorized, v, int_imm(4),
                        store_vector(b, {at}, load_vector(a, {at}, 16) + float_imm(1.0, kFloat32), 16));
  const CudaSource out = emit_cuda({source_of(over_threads(tx, 64, lanes), {bx}, {int_imm(16)}, 64)}, {false, false});
  EXPECT_EQ(out.text, R"(extern "C" __global__ void __launch_bounds__(64)
main_0(float* B, const float* __restrict__ A) {
    const int tx = threadIdx.x;
    const int bx = blockIdx.x;
    {
        float A_v[4];
        helve_load<16>(A_v, A + (bx * 256 + tx * 4));
        float B_v[4];
        #pragma unroll
        for (int v = 0; v < 4; ++v) {
            B_v[v] = A_v[v] + 1.0f;
        }
        helve_store<16>(B + (bx * 256 + tx * 4), B_v);
    }
}
)");
  ASSERT_EQ(out.kernels.size(), 1u);
  EXPECT_EQ(out.kernels[0].threads, 64);
  EXPECT_EQ(out.kernels[0].shared_bytes, 0);
  EXPECT_EQ(out.kernels[0].alignments, (std::vector<int64_t>{16, 16}));
}

TEST(CudaModule, AddressesBeyondAnIntAreWide) {
  BufferRef a = param("A", kFloat32, int64_t{1} << 40);
  VarRef bx = make_var("bx"), tx = make_var("tx");
  Stmt body = over_threads(tx, 32, store(a, {Expr(bx) * int_imm(1 << 20) + Expr(tx)}, float_imm(0.0, kFloat32)));
  const CudaSource out = emit_cuda({source_of(body, {bx}, {int_imm(1 << 20)}, 32)}, {false, false});
  EXPECT_NE(out.text.find("A[(long long)bx * 1048576 + tx] = 0.0f;"), std::string::npos) << out.text;
}

TEST(CudaModule, KernelsShareAPrelude) {
  BufferRef a = param("A", {TypeCode::BFloat, 16}, 32);
  VarRef tx = make_var("tx");
  Stmt body = over_threads(tx, 32, store(a, {Expr(tx)}, float_imm(2.0, kFloat32)));
  KernelSource first = source_of(body, {}, {}, 32), second = first;
  second.name = "main_1";
  const CudaSource out = emit_cuda({first, second});
  const std::string part = "struct helve_bfloat16";
  const size_t at = out.text.find(part);
  ASSERT_NE(at, std::string::npos);
  EXPECT_EQ(out.text.find(part, at + 1), std::string::npos);
  EXPECT_NE(out.text.find("main_1("), std::string::npos);
}

TEST(CudaModule, RefusesPackedElements) {
  BufferRef a = param("A", kFloat32, 32);
  BufferRef packed = make_buffer("L", {TypeCode::Int, 4}, MemoryScope::Local, {int_imm(2)});
  VarRef tx = make_var("tx");
  Stmt first = store(packed, {int_imm(0)}, int_imm(1, {TypeCode::Int, 4}));
  Stmt second = store(a, {Expr(tx)}, float_imm(0, kFloat32));
  Stmt body = over_threads(tx, 32, seq({alloc(packed), first, second}));
  try {
    emit_cuda({source_of(body, {}, {}, 32)});
    FAIL() << "a packed dtype";
  } catch (const UserError& e) {
    EXPECT_EQ(e.diagnostic().code, Code::DTypeOnTarget);
  }
}

}  // namespace
}  // namespace helve
