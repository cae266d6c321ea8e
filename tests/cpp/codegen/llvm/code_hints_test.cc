// What a lowered program says to LLVM: rolled loops, and statements that become functions.
#include "helve/ir/tensor/visit.h"
#include "run_kernel.h"

namespace helve::testing {
namespace {

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

/// out[i] = a[i] + 1 for 8 elements.
Stmt increments(const BufferRef& a, const BufferRef& out) {
  const VarRef i = make_var("i");
  return for_loop(LoopKind::Serial, i, idx(8), store(out, {Expr(i)}, load(a, {Expr(i)}) + float_imm(1, kFloat32)));
}

TEST(CodeHints, RolledLoopsSaySo) {
  const BufferRef a = param("a", kFloat32, {idx(8)}), out = param("out", kFloat32, {idx(8)});
  for (const bool is_rolled : {false, true}) {
    const Stmt loop = increments(a, out);
    std::vector<float> in(8, 2), got(8);
    Arguments args;
    args.buffers = {{a.get(), in.data()}, {out.get(), got.data()}};
    auto module = run(single(is_rolled ? rolled(loop) : loop), args);
    EXPECT_EQ(got, std::vector<float>(8, 3));
    EXPECT_EQ(count(module->llvm_ir(false), "\"llvm.loop.unroll.disable\""), is_rolled);
  }
}

TEST(CodeHints, OutlinesBecomeFunctions) {
  // The first function has memory of its own and leaves a result in memory that the second reads.
  const BufferRef a = param("a", kFloat32, {idx(8)}), out = param("out", kFloat32, {idx(8)});
  const BufferRef own = local("own", kFloat32, {8}), sum = local("sum", kFloat32, {8});
  const Stmt first = outline(seq({alloc(own), increments(a, own), increments(own, sum)}));
  const Stmt second = outline(increments(sum, out));
  for (const ArrayPlace place : {ArrayPlace::Registers, ArrayPlace::Stack}) {
    BufferMap places{{own.get(), at_place(own, place)}, {sum.get(), at_place(sum, place)}};
    const Stmt body = redeclare_buffers(seq({alloc(sum), first, second}), places);
    std::vector<float> in(8, 2), got(8);
    Arguments args;
    args.buffers = {{a.get(), in.data()}, {out.get(), got.data()}};
    auto module = run(single(body), args);
    EXPECT_EQ(got, std::vector<float>(8, 5));
    EXPECT_EQ(count(module->llvm_ir(false), "define internal void @helve_kernel_0.blocks.part"), 2u);
    EXPECT_EQ(module->kernels()[0].scratch_bytes, place == ArrayPlace::Stack ? 0 : 128);
  }
}

}  // namespace
}  // namespace helve::testing
