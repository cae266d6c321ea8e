// Arrays of threads: those that stay out of registers.
#include <gtest/gtest.h>

#include "helve/ir/expr/build.h"
#include "helve/ir/tensor/visit.h"
#include "helve/transform/passes.h"
#include "ir/tensor/programs/build_ir.h"

namespace helve::testing {
namespace {

/// A thread fills an array in a loop of `extent` and reads its elements at `at` of the loop's variable.
bool stays_in_memory(DType dtype, LoopKind kind, int64_t extent, const std::function<Expr(const Expr&)>& at) {
  const BufferRef x = make_buffer("x", dtype, MemoryScope::Local, {idx(extent)});
  const BufferRef a = param("A", dtype, {extent});
  const VarRef i = make_var("i"), k = make_var("k");
  const Stmt fill = for_loop(LoopKind::Unroll, i, idx(extent), store(x, {Expr(i)}, load(a, {Expr(i)})));
  const Stmt read = for_loop(kind, k, idx(extent), store(a, {Expr(k)}, load(x, {at(Expr(k))})));
  const FunctionRef f = function("f", {a}, kernel({make_var("b")}, {idx(1)}, 32, seq({alloc(x), fill, read})));
  PassOptions options;
  options.machine.thread_registers = 255;
  bool found = false;
  walk(place_arrays(f, options)->body, [&](const Stmt& s) {
    const Alloc* n = as<Alloc>(s);
    found |= n && n->buffer->place == ArrayPlace::Memory;
  });
  return found;
}

TEST(PlaceArrays, AreThoseWithSubscriptsThatOnlyTheRunKnows) {
  const DType half{TypeCode::Float, 16};
  const auto itself = [](const Expr& k) { return k; };
  EXPECT_FALSE(stays_in_memory(half, LoopKind::Serial, 8, itself));  // unrolled by the compiler
  EXPECT_TRUE(stays_in_memory(half, LoopKind::Serial, 24, itself));  // too long for that
  EXPECT_FALSE(stays_in_memory(half, LoopKind::Unroll, 24, itself));  // unrolled as the program says
  EXPECT_FALSE(stays_in_memory(kFloat32, LoopKind::Serial, 24, itself));  // a word is slow at worst
  const VarRef n = make_var("n");
  const auto shifted = [&](const Expr& k) { return floor_mod(k + Expr(n), idx(8)); };
  EXPECT_TRUE(stays_in_memory(half, LoopKind::Unroll, 8, shifted));
}

}  // namespace
}  // namespace helve::testing
