// Loops that are fused or divided by dynamic extents: counted in mixed radix they are judged, and mutants are refused.
// What is asked of isl in the other count is exact, so that a wrong digit or a wrong order is refuted with a witness.
#include <gtest/gtest.h>

#include "helve/arith/simplify.h"
#include "helve/ir/tensor/visit.h"
#include "helve/schedule/legality.h"
#include "ir/tensor/programs/build_ir.h"
#include "visits.h"

namespace helve::testing {
namespace {

const VarRef m = make_var("M"), n = make_var("N");
const VarRef i = make_var("i"), j = make_var("j"), ij = make_var("ij"), io = make_var("io"), ii = make_var("ii");
const Expr M(m), N(n);

BufferRef tensor(const std::string& name, std::vector<Expr> shape) {
  return make_buffer(name, kInt32, MemoryScope::Param, std::move(shape));
}

Stmt loop(const VarRef& var, Expr extent, Stmt body, LoopKind kind = LoopKind::Serial) {
  return for_loop(kind, {var}, {idx(0)}, {std::move(extent)}, std::move(body));
}

Legality check(const FunctionRef& f, const Stmt& was, const Stmt& after, const Stmt& now,
               std::vector<std::pair<VarRef, Expr>> values) {
  return check_rewrite(*f, f->body, after,
                       {{now.get(), visit_of(after, now.get()), visit_of(f->body, was.get()), std::move(values)}},
                       ExactEngine());
}

/// `for i in M: for j in N: A[i, j] = A[i - 1, j] + 1`, where the first row is another tensor's.
struct Rows {
  BufferRef a = tensor("A", {M + idx(1), N});
  Stmt was = at(Expr(i), Expr(j));
  FunctionRef f = dynamic_function("f", {m, n}, {a}, loop(i, M, loop(j, N, was)));

  Stmt at(const Expr& row, const Expr& column) const {
    return store(a, {row + idx(1), column}, load(a, {row, column}) + int_imm(1, kInt32));
  }
  Legality fused(const Expr& extent, const Expr& row, const Expr& column, LoopKind kind = LoopKind::Serial) const {
    const Stmt now = at(row, column);
    return check(f, was, loop(ij, extent, now, kind), now, {{i, row}, {j, column}});
  }
};

TEST(MixedRadix, AFusedLoopRunsOverThePairsOfItsDigits) {
  const Rows rows;
  const Legality found = rows.fused(M * N, floor_div(Expr(ij), N), floor_mod(Expr(ij), N));
  EXPECT_EQ(found.verdict, Verdict::Proved) << text_of(found);
}

TEST(MixedRadix, WrongDigitsAreRefused) {
  const Rows rows;
  const Expr row = floor_div(Expr(ij), N), column = floor_mod(Expr(ij), N);
  const Legality less = rows.fused((M - idx(1)) * N, row, column);
  EXPECT_EQ(less.fault, RewriteFault::Lost) << text_of(less);
  const Legality more = rows.fused((M + idx(1)) * N, row, column);
  EXPECT_EQ(more.fault, RewriteFault::Added) << text_of(more);
  const Legality other = rows.fused(M * N, floor_div(Expr(ij), M), floor_mod(Expr(ij), M));
  EXPECT_EQ(other.verdict, Verdict::Refuted) << text_of(other);
  const Legality mixed = rows.fused(M * N, row, floor_mod(Expr(ij), M));
  EXPECT_NE(mixed.verdict, Verdict::Proved);
  const Legality late = rows.fused(M * N, floor_div(Expr(ij) + idx(1), N), floor_mod(Expr(ij) + idx(1), N));
  EXPECT_NE(late.verdict, Verdict::Proved);
}

TEST(MixedRadix, AFusedLoopThatCarriesADependenceIsNotParallel) {
  const Rows rows;
  const Legality found = rows.fused(M * N, floor_div(Expr(ij), N), floor_mod(Expr(ij), N), LoopKind::Parallel);
  EXPECT_EQ(found.fault, RewriteFault::AtOnce);
  EXPECT_EQ(text_of(found),
            "'A[i, j]' at i = 1, j = 0 depends on 'A[i + 1, j]' at i = 0, j = 0, and both would run in different "
            "iterations of one parallel loop");
}

TEST(MixedRadix, ExtentsThatMayBothBeNegativeAreNotCountedByDigits) {
  const VarRef k = make_var("k"), l = make_var("l");  // parameters, of any value
  const BufferRef a = tensor("A", {M, N});
  const auto at = [&](const Expr& row, const Expr& column) { return store(a, {row, column}, int_imm(1, kInt32)); };
  const Stmt was = at(Expr(i), Expr(j)), now = at(floor_div(Expr(ij), Expr(l)), floor_mod(Expr(ij), Expr(l)));
  const FunctionRef f = dynamic_function("f", {m, n}, {k, l, a}, loop(i, Expr(k), loop(j, Expr(l), was)));
  const Legality found = check(f, was, loop(ij, Expr(k) * Expr(l), now), now,
                               {{i, floor_div(Expr(ij), Expr(l))}, {j, floor_mod(Expr(ij), Expr(l))}});
  EXPECT_EQ(found.verdict, Verdict::Unknown);
}

TEST(MixedRadix, AFusedLoopThatBeginsLaterHasOtherDigits) {
  const Rows rows;
  const Expr row = floor_div(Expr(ij), N), column = floor_mod(Expr(ij), N);
  const Stmt now = rows.at(row, column);
  for (const int64_t begin : {0, 1}) {
    const Stmt after = for_loop(LoopKind::Serial, {ij}, {idx(begin)}, {M * N}, now);
    const Legality found = check(rows.f, rows.was, after, now, {{i, row}, {j, column}});
    EXPECT_EQ(found.verdict, begin == 0 ? Verdict::Proved : Verdict::Unknown);
  }
}

TEST(MixedRadix, AValueThatTookThePlaceOfALoadIsNotLost) {
  const BufferRef a = tensor("A", {M, N}), b = tensor("B", {M, N});
  const BufferRef x = make_buffer("X", kInt32, MemoryScope::Shared, {M, N});
  const Expr row = floor_div(Expr(ij), N), column = floor_mod(Expr(ij), N), element = load(x, {Expr(i), Expr(j)});
  const Stmt stored = store(x, {row, column}, load(a, {row, column})), used = store(b, {Expr(i), Expr(j)}, element);
  const Stmt now = store(b, {Expr(i), Expr(j)}, load(a, {Expr(i), Expr(j)}));
  const Stmt before = seq({alloc(x), loop(ij, M * N, stored), loop(i, M, loop(j, N, used))});
  const Stmt after = seq({alloc(x), loop(i, M, loop(j, N, now))});
  const FunctionRef f = dynamic_function("f", {m, n}, {a, b}, before);
  Origin origin{now.get(), visit_of(after, now.get()), visit_of(before, used.get()), {}};
  origin.inlined = {{element.get(), visit_of(before, stored.get()), {{ij, Expr(i) * N + Expr(j)}}}};
  const Legality found = check_rewrite(*f, before, after, {origin}, ExactEngine(), {x, a});
  EXPECT_EQ(found.verdict, Verdict::Unknown) << "legal, and not refuted: " << text_of(found);
}

/// `for i in M: A[i + 1] = A[i] + 1`, of which each element depends on the one before.
struct Chain {
  BufferRef a = tensor("A", {M + idx(1)});
  Stmt was = at(Expr(i));
  FunctionRef f = dynamic_function("f", {m}, {a}, loop(i, M, was));

  Stmt at(const Expr& e) const { return store(a, {e + idx(1)}, load(a, {e}) + int_imm(1, kInt32)); }
  Legality divided(const Expr& parts, const Expr& size, bool guarded, LoopKind kind = LoopKind::Serial,
                   bool swapped = false) const {
    const Expr together = Expr(io) * size + Expr(ii);
    const Stmt now = at(together), body = guarded ? if_then(less(together, M), now) : now;
    const Stmt after =
        swapped ? loop(ii, size, loop(io, parts, body, kind), kind) : loop(io, parts, loop(ii, size, body, kind), kind);
    return check(f, was, after, now, {{i, together}});
  }
};

TEST(MixedRadix, TwoLoopsOverPartsAreOneLoop) {
  const Chain chain;
  const Legality guarded = chain.divided(idx(4), ceil_div(M, idx(4)), true);
  EXPECT_EQ(guarded.verdict, Verdict::Proved) << text_of(guarded);
  EXPECT_FALSE(guarded.reassociates);
}

TEST(MixedRadix, WrongPartsAreRefused) {
  const Chain chain;
  EXPECT_EQ(chain.divided(idx(4), floor_div(M, idx(4)), false).fault, RewriteFault::Lost);
  EXPECT_EQ(chain.divided(idx(4), ceil_div(M, idx(4)), false).fault, RewriteFault::Added);
  EXPECT_EQ(chain.divided(idx(3), ceil_div(M, idx(4)), true).fault, RewriteFault::Lost);
  EXPECT_EQ(chain.divided(idx(4), ceil_div(M, idx(4)), true, LoopKind::Parallel).fault, RewriteFault::AtOnce);
  // The order of the digits is that of the numbers only if the high one is outside.
  EXPECT_NE(chain.divided(idx(4), ceil_div(M, idx(4)), true, LoopKind::Serial, true).verdict, Verdict::Proved);
}

TEST(MixedRadix, PartsOfAnotherSizeThanTheyCountAreNotOneLoop) {
  const Chain chain;
  const Expr size = ceil_div(M, idx(4)), together = Expr(io) * size + Expr(ii);
  const Stmt now = chain.at(together);
  const Stmt after = loop(io, idx(4), loop(ii, size + idx(1), if_then(less(together, M), now)));
  EXPECT_NE(check(chain.f, chain.was, after, now, {{i, together}}).verdict, Verdict::Proved);
}

TEST(MixedRadix, PartsThatBeginLaterAreNotOneLoop) {
  const VarRef k = make_var("k");
  const BufferRef a = tensor("A", {M * idx(8)});
  const Expr together = Expr(io) * M + Expr(ii);
  const Stmt was = store(a, {Expr(k)}, int_imm(1, kInt32)), now = store(a, {together}, int_imm(1, kInt32));
  const auto found = [&](int64_t begin, int64_t outer, int64_t inner) {
    const FunctionRef f =
        dynamic_function("f", {m}, {a}, for_loop(LoopKind::Serial, {k}, {idx(begin)}, {M * idx(4)}, was));
    const Stmt parts = for_loop(LoopKind::Serial, {ii}, {idx(inner)}, {M}, now);
    return check(f, was, for_loop(LoopKind::Serial, {io}, {idx(outer)}, {idx(4)}, parts), now, {{k, together}});
  };
  EXPECT_EQ(found(0, 0, 0).verdict, Verdict::Proved) << text_of(found(0, 0, 0));
  EXPECT_NE(found(1, 1, 0).verdict, Verdict::Proved) << "A[M] is the first";
  EXPECT_NE(found(0, 0, 1).verdict, Verdict::Proved) << "A[1] is the first";
}

TEST(MixedRadix, PartsOfWhichOneLoopHasNoOrderAreNotOneLoop) {
  const Chain chain;
  const Expr size = ceil_div(M, idx(4)), together = Expr(io) * size + Expr(ii);
  const Stmt now = chain.at(together), guarded = if_then(less(together, M), now);
  const auto found = [&](LoopKind outer, LoopKind inner) {
    return check(chain.f, chain.was, loop(io, idx(4), loop(ii, size, guarded, inner), outer), now, {{i, together}});
  };
  EXPECT_EQ(found(LoopKind::Serial, LoopKind::Serial).verdict, Verdict::Proved);
  EXPECT_NE(found(LoopKind::Serial, LoopKind::Parallel).verdict, Verdict::Proved);
  EXPECT_NE(found(LoopKind::Parallel, LoopKind::Serial).verdict, Verdict::Proved);
}

TEST(MixedRadix, PartsOfASizeThatMayBeNegativeAreNotOneLoop) {
  const VarRef k = make_var("k"), l = make_var("l");  // parameters, of any value
  const BufferRef a = tensor("A", {M});
  const Expr together = Expr(io) * Expr(l) + Expr(ii);
  const Stmt was = store(a, {Expr(i)}, int_imm(1, kInt32)), now = store(a, {together}, int_imm(1, kInt32));
  const FunctionRef f = dynamic_function("f", {m}, {k, l, a}, loop(i, Expr(k) * Expr(l), was));
  const Legality found = check(f, was, loop(io, Expr(k), loop(ii, Expr(l), now)), now, {{i, together}});
  EXPECT_EQ(found.verdict, Verdict::Unknown) << "no part runs where both are negative";
}

/// `for io in 4: for ii in extent: A[io * size + ii] = io`, made parallel over `io`.
Legality parallel_parts(const Expr& size, const Expr& extent) {
  const BufferRef a = tensor("A", {M * idx(2) + idx(8)});
  const Stmt was = store(a, {Expr(io) * size + Expr(ii)}, cast(Expr(io), kInt32));
  const auto nest = [&](LoopKind kind) { return loop(io, idx(4), loop(ii, extent, was), kind); };
  return check(dynamic_function("f", {m}, {a}, nest(LoopKind::Serial)), was, nest(LoopKind::Parallel), was, {});
}

TEST(MixedRadix, EqualNumbersHaveEqualDigits) {
  const Expr size = ceil_div(M, idx(4));
  EXPECT_EQ(parallel_parts(size, size).verdict, Verdict::Proved);
  EXPECT_NE(parallel_parts(size, size + idx(1)).verdict, Verdict::Proved);  // parts overlap
  EXPECT_NE(parallel_parts(size, M).verdict, Verdict::Proved);
}

TEST(MixedRadix, EqualDigitsAreOfEqualNumbers) {
  const auto parallel = [&](const Expr& row, const Expr& column) {
    const BufferRef a = tensor("A", {M + N, M + N});
    const Stmt was = store(a, {row, column}, cast(Expr(i), kInt32));
    const auto nest = [&](LoopKind kind) { return loop(i, M, was, kind); };
    return check(dynamic_function("f", {m, n}, {a}, nest(LoopKind::Serial)), was, nest(LoopKind::Parallel), was, {});
  };
  const Expr at = Expr(i) * idx(2) + idx(1);
  EXPECT_EQ(parallel(floor_div(at, N), floor_mod(at, N)).verdict, Verdict::Proved);
  EXPECT_NE(parallel(floor_div(at, N), floor_mod(at, M)).verdict, Verdict::Proved);
  EXPECT_NE(parallel(floor_div(at, N), floor_div(at, N)).verdict, Verdict::Proved);
  EXPECT_NE(parallel(floor_div(at, N), floor_mod(at + idx(1), N)).verdict, Verdict::Proved);
}

TEST(MixedRadix, AnAssumptionOfTheFunctionLeavesNoRest) {
  const Chain chain;
  Ref<Function> narrow = make_ref<Function>(*chain.f);
  narrow->assumptions.push_back({apply(Op::Eq, {floor_mod(M, idx(4)), idx(0)}), {}});
  const Expr size = floor_div(M, idx(4)), together = Expr(io) * size + Expr(ii);
  const Stmt now = chain.at(together);
  const Legality found =
      check(FunctionRef(narrow), chain.was, loop(io, idx(4), loop(ii, size, now)), now, {{i, together}});
  EXPECT_EQ(found.verdict, Verdict::Proved) << text_of(found);
}

}  // namespace
}  // namespace helve::testing
