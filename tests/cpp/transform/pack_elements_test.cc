// Elements of which two share a byte become bytes, and mean the same.
#include "run_pass.h"

namespace helve::testing {
namespace {

constexpr DType kInt4{TypeCode::Int, 4};

TEST(PackElements, LeavesOtherFunctionsAlone) {
  const BufferRef a = param("A", kFloat32, {8});
  const VarRef i = make_var("i");
  expect_untouched(pack_elements, function("main", {a}, one_block({serial(i, idx(8), {store(a, {i}, f32(1))})})));
}

TEST(PackElements, ReadsHalvesOfBytes) {
  const VarRef k = make_var("K"), i = make_var("i");
  const BufferRef w = make_buffer("W", kInt4, MemoryScope::Param, {Expr(k)});
  const BufferRef out = make_buffer("OUT", kInt32, MemoryScope::Param, {Expr(k)});
  const Stmt body = one_block({serial(i, Expr(k), {store(out, {i}, cast(load(w, {i}), kInt32))})});
  expect_prints(pack_elements, dynamic_function("main", {k}, {w, out}, body), R"(
K_pairs = T.dyn("K_pairs")

@T.prim_func
def main(W: T.Tensor((K_pairs,), "uint8"), OUT: T.Tensor((K_pairs * 2,), "int32")):
    with T.Kernel(1) as bx:
        for i in T.serial(K_pairs * 2):
            OUT[i] = T.cast(T.cast(T.cast(W[i // 2], "int32") << T.cast(28 - i % 2 * 4, "int32") >> 28, "int8"), "int32")
)");
}

TEST(PackElements, AStoreOfHalfAByteIsRefused) {
  const BufferRef w = param("W", kInt4, {8});
  const VarRef i = make_var("i");
  const FunctionRef f = function("main", {w}, one_block({serial(i, idx(8), {store(w, {i}, cast(Expr(i), kInt4))})}));
  try {
    pack_elements(f, {});
    FAIL() << "two executors may store one byte";
  } catch (const UserError& error) {
    EXPECT_EQ(error.diagnostic().code, Code::PackedStore);
  }
}

}  // namespace
}  // namespace helve::testing
