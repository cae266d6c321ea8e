// Which copies of a run the copy units of a GPU can do, and why not the others.
#include "helve/analysis/async_run.h"

#include <gtest/gtest.h>

#include "helve/ir/expr/text.h"
#include "ir/tensor/programs/build_ir.h"

namespace helve::testing {
namespace {

Stmt copy(const Region& from, const Region& to, Expr pad = {}) {
  if (!pad) pad = from.buffer->dtype.is_float() ? float_imm(0, from.buffer->dtype) : int_imm(0, from.buffer->dtype);
  return tile_op(TileOpcode::CopyAsync, {from, to, pad});  // the run before it is an instruction
}

/// "yes", or the reason.
std::string judged(const Stmt& s, const Facts& facts = {}) {
  std::string reason;
  const bool fits = is_async_run(*as<TileOp>(s), as<TileOp>(s)->expr(2), facts, &reason);
  EXPECT_EQ(fits, reason.empty());
  return fits ? "yes" : reason;
}

BufferRef global(DType dtype, std::vector<Expr> shape, std::vector<Expr> strides = {}) {
  return make_buffer("A", dtype, MemoryScope::Param, std::move(shape), {}, std::move(strides));
}

TEST(AsyncRun, FourEightOrSixteenBytesMove) {
  for (const auto& [dtype, run, verdict] : std::vector<std::tuple<DType, int64_t, std::string>>{
           {kFloat32, 1, "yes"},
           {kFloat32, 2, "yes"},
           {kFloat32, 4, "yes"},
           {kFloat64, 2, "yes"},
           {{TypeCode::UInt, 8}, 4, "yes"},
           {{TypeCode::UInt, 8}, 16, "yes"},
           {{TypeCode::Float, 16}, 2, "yes"},
           {kFloat32, 3, "4, 8 or 16 bytes move at once, not 12"},
           {kFloat32, 8, "4, 8 or 16 bytes move at once, not 32"},
           {{TypeCode::Float, 16}, 1, "4, 8 or 16 bytes move at once, not 2"}}) {
    const BufferRef a = param("A", dtype, {16}), x = shared("X", dtype, {16});
    const Stmt s = copy(box(a, {{idx(0), run}}), box(x, {{idx(0), run}}));
    EXPECT_EQ(judged(s), verdict) << to_string(dtype) << " " << run;
    EXPECT_EQ(run_length(*as<TileOp>(s)), run);
  }
}

TEST(AsyncRun, FromGlobalToBlockMemoryOfOneType) {
  const BufferRef a = param("A", kFloat32, {16}), x = shared("X", kFloat32, {16}), h = shared("H", kFloat64, {16});
  const BufferRef f = make_buffer("F", kFloat32, MemoryScope::Fragment, extents({16}));
  const auto run = [](const BufferRef& b) { return box(b, {{idx(4), 4}}); };
  EXPECT_EQ(judged(copy(run(a), run(x))), "yes");
  EXPECT_EQ(judged(copy(run(x), run(x))), "'X' is no global tensor");
  EXPECT_EQ(judged(copy(run(a), run(f))), "'F' is no shared memory");
  EXPECT_EQ(judged(copy(run(a), run(a))), "'A' is no shared memory");
  EXPECT_EQ(judged(copy(run(a), run(h), float_imm(0, kFloat64))), "it converts float32 to float64");
}

TEST(AsyncRun, BothAddressesAreMultiplesOfTheRun) {
  const VarRef i = make_var("i"), n = make_var("n");
  const BufferRef x = shared("X", kFloat32, {64});
  const auto from = [&](const BufferRef& a, Expr begin) {
    return copy(box(a, {{Expr(i), -1}, {std::move(begin), 4}}), box(x, {{idx(0), 4}}));
  };
  const auto unknown = [](const char* name) {
    return std::string("an address in '") + name + "' is not known to be a multiple of 16 bytes";
  };
  EXPECT_EQ(judged(from(global(kFloat32, extents({8, 16})), Expr(i) * idx(4))), "yes");
  EXPECT_EQ(judged(from(global(kFloat32, extents({8, 16})), Expr(i) * idx(2))), unknown("A"));
  EXPECT_EQ(judged(from(global(kFloat32, extents({8, 18})), idx(0))), unknown("A"));
  EXPECT_EQ(judged(from(global(kFloat32, {idx(8), Expr(n)}), idx(0))), unknown("A"));
  Facts facts;
  facts.bind_residue(n, {4, 0});
  EXPECT_EQ(judged(from(global(kFloat32, {idx(8), Expr(n)}), idx(0)), facts), "yes");
  const BufferRef a = global(kFloat32, extents({8, 16}));
  EXPECT_EQ(judged(copy(box(a, {{idx(0), -1}, {idx(0), 4}}), box(x, {{idx(2), 4}}))), unknown("X"));
}

TEST(AsyncRun, NeighboursAreSideBySide) {
  const BufferRef x = shared("X", kFloat32, {16});
  const auto strided = [&](std::vector<Expr> strides, int64_t run) {
    const BufferRef a = global(kFloat32, extents({8, 16}), std::move(strides));
    return judged(copy(box(a, {{idx(0), -1}, {idx(0), run}}), box(x, {{idx(0), run}})));
  };
  EXPECT_EQ(strided({idx(20), idx(1)}, 4), "yes");
  EXPECT_EQ(strided({idx(1), idx(8)}, 4), "neighbours along the last dimension of 'A' are not side by side");
  EXPECT_EQ(strided({idx(1), idx(8)}, 1), "yes");  // one element has no neighbour
}

TEST(AsyncRun, PastTheEndWithAllOfItsElementsOrNone) {
  const VarRef i = make_var("i"), n = make_var("n");
  const BufferRef x = shared("X", kFloat32, {16});
  const auto at = [&](Expr extent, Expr begin, int64_t run, Expr pad = {}) {
    return judged(copy(box(global(kFloat32, {std::move(extent)}), {{std::move(begin), run}}), box(x, {{idx(0), run}}),
                       std::move(pad)));
  };
  EXPECT_EQ(at(idx(20), Expr(i) * idx(4), 4), "yes");
  EXPECT_EQ(at(idx(18), Expr(i) * idx(4), 4), "16 bytes may cross the end of 'A'");
  EXPECT_EQ(at(Expr(n), Expr(i), 1), "yes");
  EXPECT_EQ(at(Expr(n), Expr(i), 1, f32(1)), "elements past the end of 'A' are not filled with 0");
  EXPECT_EQ(at(Expr(n), Expr(i), 1, f32(-0.0)), "elements past the end of 'A' are not filled with 0");
  EXPECT_EQ(at(idx(16), idx(12), 4, f32(1)), "yes");  // nothing lies past the end
}

TEST(AsyncRun, TheConditionUnderWhichARunExists) {
  const VarRef i = make_var("i"), j = make_var("j");
  Facts facts;
  facts.bind(i, {0, 7});
  const auto condition = [&](int64_t rows, int64_t columns) {
    const BufferRef a = param("A", kFloat32, {rows, columns});
    const Expr found = begins_inside(box(a, {{Expr(i), -1}, {Expr(j), 4}}), facts);
    return found ? to_text(found) : "always";
  };
  EXPECT_EQ(condition(8, 16), "j < 16");
  EXPECT_EQ(condition(7, 16), "i < 7 and j < 16");
  facts.bind(j, {0, 12});
  EXPECT_EQ(condition(8, 16), "always");
}

}  // namespace
}  // namespace helve::testing
