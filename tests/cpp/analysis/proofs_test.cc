// Proofs on functions built by hand.
// Verdicts of both kinds of question, and the texts of what is refuted.
#include "helve/analysis/proofs.h"

#include <gtest/gtest.h>

#include "helve/ir/expr/text.h"
#include "helve/support/diagnostic.h"
#include "ir/tensor/programs/build_ir.h"
#include "ir/tensor/programs/rms_norm.h"

namespace helve {
namespace {

using namespace testing;

/// "bounds proved", one line for each proof, with the reason or the counterexample.
std::string describe(const FunctionRef& f) {
  std::string out;
  for (const Proof& p : prove(*f)) {
    out += std::string(to_string(p.kind)) + " " + std::string(to_string(p.verdict)) + ": " + p.question;
    if (!p.witness.empty()) out += " [" + p.witness + "]";
    if (!p.reason.empty()) out += " (" + p.reason + ")";
    for (const CallCondition& each : p.conditions) out += " {" + to_text(each.condition) + "}";
    out += "\n";
  }
  return out;
}

std::string fault(const FunctionRef& f) {
  try {
    refuse_refuted(prove(*f));
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

Stmt parallel(const VarRef& var, Expr extent, Stmt body) {
  return for_loop(LoopKind::Parallel, var, std::move(extent), std::move(body));
}

const VarRef i = make_var("i"), j = make_var("j"), b = make_var("b");
Expr at(const VarRef& v) { return Expr(v); }

TEST(Proofs, AnAccessInsideAndALoopWithoutRaces) {
  BufferRef a = param("A", kFloat32, {64});
  EXPECT_EQ(describe(function("f", {a}, one_block({parallel(i, idx(64), store(a, {at(i)}, f32(0)))}))),
            "bounds proved: A[i] is inside (64,)\nrace proved: blocks bx are independent\n"
            "race proved: iterations i are independent\n");
}

TEST(Proofs, TwoIterationsThatWriteOneElement) {
  BufferRef a = param("A", kFloat32, {64});
  EXPECT_EQ(fault(function("f", {a}, one_block({parallel(i, idx(4), store(a, {idx(0)}, f32(0)))}))),
            "error[HV0306]: iterations of this parallel loop write the same element of 'A'\n"
            "note: iterations i=0 and i=1 both write A[0]\n"
            "help: index 'A' with every loop variable (i), or make the loop T.serial");
  Stmt body = store(a, {floor_div(at(i), idx(3)) + idx(5)}, f32(0));
  EXPECT_EQ(describe(function("f", {a}, one_block({parallel(i, idx(9), body)}))),
            "bounds proved: A[i // 3 + 5] is inside (64,)\nrace proved: blocks bx are independent\n"
            "race refuted: iterations i are independent [iterations i=0 and i=1 both write A[5]]\n");
}

TEST(Proofs, ALoopOfOneIterationOrNoneHasNoRace) {
  BufferRef a = param("A", kFloat32, {64});
  for (int64_t extent : {0, 1}) {
    EXPECT_EQ(fault(function("f", {a}, one_block({parallel(i, idx(extent), store(a, {idx(0)}, f32(0)))}))), "");
  }
}

TEST(Proofs, CodeThatNeverRunsHasNoFault) {
  BufferRef a = param("A", kFloat32, {64});
  Stmt wrong = parallel(i, idx(4), seq({store(a, {idx(0)}, f32(0)), store(a, {at(i) + idx(100)}, f32(0))}));
  Stmt never = if_then(less(at(b) + idx(3), floor_div(at(b), idx(2))), wrong);
  EXPECT_EQ(fault(function("f", {a}, kernel({b}, {idx(8)}, 128, never))), "");
  EXPECT_NE(fault(function("f", {a}, kernel({b}, {idx(8)}, 128, wrong))), "");
}

TEST(Proofs, AGuardDecides) {
  BufferRef a = param("A", kFloat32, {100});
  const Expr element = at(b) * idx(64) + at(i);
  Stmt bare = store(a, {element}, f32(0));
  EXPECT_EQ(fault(function("f", {a}, kernel({b}, {idx(2)}, 128, parallel(i, idx(64), bare)))),
            "error[HV0210]: index 100 of dimension 0 of 'A' is outside [0, 100)\nnote: when b=1, i=36\n"
            "note: 'A' has shape (100,)\nhelp: guard the access or change the loop's extent");
  Stmt guarded = if_then(less(element, idx(100)), bare);
  EXPECT_EQ(describe(function("f", {a}, kernel({b}, {idx(2)}, 128, parallel(i, idx(64), guarded)))),
            "bounds proved: A[b * 64 + i] is inside (100,)\nrace proved: blocks b are independent\n"
            "race proved: iterations i are independent\n");
}

TEST(Proofs, TheConditionOfASelectionGuardsItsLoads) {
  BufferRef a = param("A", kFloat32, {10}), o = param("O", kFloat32, {20});
  const Expr value = select(less(at(i), idx(10)), load(a, {at(i)}), f32(0));
  EXPECT_EQ(fault(function("f", {a, o}, one_block({parallel(i, idx(20), store(o, {at(i)}, value))}))), "");
  const Expr swapped = select(less(at(i), idx(10)), f32(0), load(a, {at(i) - idx(9)}));
  EXPECT_NE(fault(function("f", {a, o}, one_block({parallel(i, idx(20), store(o, {at(i)}, swapped))}))), "");
  const Expr shifted = select(less(at(i), idx(10)), f32(0), load(a, {at(i) - idx(10)}));
  EXPECT_EQ(fault(function("f", {a, o}, one_block({parallel(i, idx(20), store(o, {at(i)}, shifted))}))), "");
}

TEST(Proofs, AReadOfAnotherIterationsElement) {
  BufferRef a = param("A", kFloat32, {9}), o = param("O", kFloat32, {9});
  Stmt shift = store(a, {at(i)}, load(a, {at(i) + idx(1)}));
  EXPECT_EQ(fault(function("f", {a}, one_block({parallel(i, idx(8), shift)}))),
            "error[HV0306]: iterations of this parallel loop read and write the same element of 'A'\n"
            "note: iteration i=1 writes A[1], iteration i=0 reads it\n"
            "help: read from a copy of 'A', or make the loop T.serial");
  EXPECT_EQ(
      fault(function("f", {a, o}, one_block({parallel(i, idx(8), store(o, {at(i)}, load(a, {at(i) + idx(1)})))}))), "");
  // Even elements are written, odd ones are read.
  Stmt apart = store(a, {at(i) * idx(2)}, load(a, {at(i) * idx(2) + idx(1)}));
  EXPECT_EQ(fault(function("f", {a}, one_block({parallel(i, idx(4), apart)}))), "");
}

TEST(Proofs, WhatIsAllocatedInTheBodyBelongsToTheIteration) {
  BufferRef inside = shared("S", kFloat32, {4}), outside = shared("U", kFloat32, {4});
  Stmt own = seq({alloc(inside), store(inside, {idx(0)}, f32(0))});
  EXPECT_EQ(fault(function("f", {}, one_block({parallel(i, idx(4), own)}))), "");
  EXPECT_NE(
      fault(function("f", {}, one_block({alloc(outside), parallel(i, idx(4), store(outside, {idx(0)}, f32(0)))}))), "");
}

TEST(Proofs, MemoryOfAThreadIsLeftOpen) {
  BufferRef local = make_buffer("t", kFloat32, MemoryScope::Local, extents({1}));
  FunctionRef f = function("f", {}, one_block({alloc(local), parallel(i, idx(4), store(local, {idx(0)}, f32(0)))}));
  EXPECT_EQ(describe(f),
            "bounds proved: t[0] is inside (1,)\nrace proved: blocks bx are independent\n"
            "race unknown: iterations i are independent ('t' is private to a thread, which runs several iterations)\n");
}

TEST(Proofs, BlocksThatWriteOneElement) {
  BufferRef a = param("A", kFloat32, {64}), s = shared("S", kFloat32, {64});
  Stmt same = parallel(i, idx(64), store(a, {at(i)}, f32(0)));
  EXPECT_EQ(fault(function("f", {a}, kernel({b}, {idx(2)}, 128, same))), "");  // the same constant twice
  Stmt fill = parallel(i, idx(64), store(a, {at(i)}, cast(at(b), kFloat32)));
  EXPECT_EQ(fault(function("f", {a}, kernel({b}, {idx(2)}, 128, fill))),
            "error[HV0306]: blocks of this kernel write the same element of 'A'\n"
            "note: blocks b=0 and b=1 both write A[0]\n"
            "help: give each block elements of its own, or split the work into two kernels");
  Stmt own = seq({alloc(s), parallel(i, idx(64), store(s, {at(i)}, f32(0)))});
  EXPECT_EQ(fault(function("f", {}, kernel({b}, {idx(2)}, 128, own))), "");
}

TEST(Proofs, CopiesOfOverlappingBoxes) {
  BufferRef a = param("A", kFloat32, {20}), s = shared("S", kFloat32, {8});
  auto copies = [&](int64_t step) {
    Stmt out = tile_op(TileOpcode::Copy, {whole_region(s), box(a, {{at(b) * idx(step), 8}}), f32(0)});
    return function("f", {a}, kernel({b}, {idx(3)}, 128, seq({alloc(s), out})));
  };
  EXPECT_EQ(fault(copies(8)), "");  // the last one passes the end, where nothing is written
  EXPECT_NE(fault(copies(7)).find("note: blocks b=0 and b=1 both write A[7]"), std::string::npos) << fault(copies(7));
  EXPECT_NE(fault(copies(-1)).find("error[HV0210]: index -1 of dimension 0 of 'A'"), std::string::npos);
}

TEST(Proofs, ExtentsOfACallDecide) {
  const VarRef m = make_var("M");
  BufferRef a = make_buffer("A", kFloat32, MemoryScope::Param, {at(m)});
  const Expr element = at(b) * idx(8) + at(i);
  Stmt bare = parallel(i, idx(8), store(a, {element}, f32(0)));
  auto launch = [&](Expr grid, Stmt body) {
    return dynamic_function("f", {m}, {a}, kernel({b}, {std::move(grid)}, 128, std::move(body)));
  };
  const std::string races = "race proved: blocks b are independent\nrace proved: iterations i are independent\n";
  EXPECT_EQ(describe(launch(floor_div(at(m), idx(8)), bare)), "bounds proved: A[b * 8 + i] is inside (M,)\n" + races);
  EXPECT_EQ(describe(launch(ceil_div(at(m), idx(8)), bare)),
            "bounds checked: A[b * 8 + i] is inside (M,) {M % 8 == 0}\n" + races);
  Stmt guarded = parallel(i, idx(8), if_then(less(element, at(m)), store(a, {element}, f32(0))));
  EXPECT_EQ(describe(launch(ceil_div(at(m), idx(8)), guarded)), "bounds proved: A[b * 8 + i] is inside (M,)\n" + races);
  // Whatever M is: once it runs, it is outside.
  EXPECT_EQ(fault(launch(idx(1), store(a, {at(m)}, f32(0)))),
            "error[HV0210]: index 0 of dimension 0 of 'A' is outside [0, 0)\nnote: when M=0\nnote: 'A' has shape (M,)\n"
            "help: guard the access or change the loop's extent");
}

TEST(Proofs, AScalarArgumentDecides) {
  const VarRef n = make_var("n");
  BufferRef a = param("A", kFloat32, {64});
  auto loop = [&](Stmt body) { return function("f", {a, n}, one_block({parallel(i, at(n), std::move(body))})); };
  EXPECT_EQ(describe(loop(store(a, {at(i)}, f32(0)))),
            "bounds checked: A[i] is inside (64,) {n <= 64}\nrace proved: blocks bx are independent\n"
            "race proved: iterations i are independent\n");
  EXPECT_EQ(describe(loop(store(a, {floor_mod(at(i), idx(5))}, f32(0)))),
            "bounds proved: A[i % 5] is inside (64,)\nrace proved: blocks bx are independent\n"
            "race checked: iterations i are independent {n <= 5}\n");
  // Whatever n is: once an iteration runs, it is outside; once two run, they meet.
  EXPECT_NE(fault(loop(store(a, {at(i) + idx(64)}, f32(0)))).find("HV0210"), std::string::npos);
  EXPECT_NE(fault(loop(store(a, {idx(3)}, f32(0)))).find("iterations i=0 and i=1 both write A[3]"), std::string::npos);
}

TEST(Proofs, IntegersOfDataTypesDecideByTheirValues) {
  const VarRef n = make_var("n", kInt32), u = make_var("u", DType{TypeCode::UInt, 64});
  BufferRef a = param("A", kFloat32, {64});
  EXPECT_EQ(describe(function("f", {a, n}, one_block({store(a, {cast(at(n), kIndex) * idx(3) - idx(7)}, f32(0))}))),
            "bounds checked: A[T.cast(n, \"index\") * 3 - 7] is inside (64,) {n >= 3 and n <= 23}\n"
            "race proved: blocks bx are independent\n");
  // A call's integers are signed, 64 bits wide.
  EXPECT_EQ(describe(function("f", {a, u}, one_block({store(a, {cast(at(u), kIndex)}, f32(0))}))),
            "bounds unknown: A[T.cast(u, \"index\")] is inside (64,) (it depends on 'u')\nrace proved: blocks bx are "
            "independent\n");
}

/// The lines of `describe` on shapes.
std::string shapes(const FunctionRef& f) {
  std::string out, all = describe(f);
  for (size_t from = 0, to; (to = all.find('\n', from)) != std::string::npos; from = to + 1) {
    if (all.compare(from, 6, "shape ") == 0) out += all.substr(from, to - from + 1);
  }
  return out;
}

TEST(Proofs, ShapesOfOperandsAgree) {
  const VarRef m = make_var("M"), n = make_var("N");
  BufferRef a = make_buffer("A", kFloat32, MemoryScope::Param, {at(m), at(n)});
  BufferRef c = make_buffer("C", kFloat32, MemoryScope::Param, {at(n), at(n)});
  BufferRef s = shared("S", kFloat32, {8, 4});
  auto of = [&](Stmt op) {
    return shapes(dynamic_function("f", {m, n}, {a, c}, kernel({b}, {idx(2)}, 128, seq({alloc(s), std::move(op)}))));
  };
  const auto copy = [&](Region from, Region to) {
    return tile_op(TileOpcode::Copy, {std::move(from), std::move(to), f32(0)});
  };
  EXPECT_EQ(of(copy(whole_region(a), whole_region(a))), "");
  EXPECT_EQ(of(copy(whole_region(a), whole_region(s))),
            "shape checked: src (M, N), dst (8, 4) of T.copy agree {M == 8 and N == 4}\n");
  EXPECT_EQ(of(copy(whole_region(a), whole_region(c))),
            "shape checked: src (M, N), dst (N, N) of T.copy agree {N == M}\n");
  // Dimensions of extent 1 are dropped; without a constant 1 they match by position.
  EXPECT_EQ(of(copy(whole_region(a), box(s, {{idx(0), 1}, {idx(0), 1}}))),
            "shape checked: src (M, N), dst (1, 1) of T.copy agree {M == 1 and N == 1}\n");
  EXPECT_EQ(of(tile_op(TileOpcode::ReduceSum, {whole_region(a), box(s, {{idx(0), 8}, {idx(0), 1}}), int64_t{1}, true})),
            "shape checked: src (M, N), dst (8, 1) of T.reduce_sum agree {M == 8}\n");
  const auto gemm = [&](bool transpose) {
    return tile_op(TileOpcode::Gemm, {whole_region(a), whole_region(a), whole_region(c), transpose, false, false});
  };
  EXPECT_EQ(of(gemm(true)), "");
  EXPECT_EQ(of(gemm(false)), "shape checked: A (M, N), B (M, N), C (N, N) of T.gemm agree {N == M}\n");
  // What the block decides as well: both blocks must agree.
  const Region part{a, {{idx(0), at(b) + idx(3), false}, {idx(0), at(m), false}}};
  EXPECT_EQ(of(copy(part, box(s, {{idx(0), 3}, {idx(0), 4}}))),
            "shape refuted: src (b + 3, M), dst (3, 4) of T.copy agree [M=0]\n");
}

TEST(Proofs, DataDependentSubscriptsAreUnknown) {
  BufferRef a = param("A", kFloat32, {64}), x = param("idx", kInt32, {8});
  const Expr loaded = cast(load(x, {at(i)}), kIndex);
  EXPECT_EQ(describe(function("f", {a, x}, one_block({parallel(i, idx(8), store(a, {loaded}, f32(0)))}))),
            "bounds proved: idx[i] is inside (8,)\n"
            "bounds unknown: A[T.cast(idx[i], \"index\")] is inside (64,) ('T.cast(idx[i], \"index\")' is not affine)\n"
            "race proved: blocks bx are independent\n"
            "race unknown: iterations i are independent ('T.cast(idx[i], \"index\")' is not affine)\n");
  // What is loaded does not matter where the iteration has its own part.
  const Expr part = at(i) * idx(8) + floor_mod(loaded, idx(8));
  EXPECT_EQ(describe(function("f", {a, x}, one_block({parallel(i, idx(8), store(a, {part}, f32(0)))}))),
            "bounds proved: idx[i] is inside (8,)\n"
            "bounds proved: A[i * 8 + T.cast(idx[i], \"index\") % 8] is inside (64,)\n"
            "race proved: blocks bx are independent\nrace proved: iterations i are independent\n");
}

TEST(Proofs, NeighbouringTilesAreOtherIterations) {
  BufferRef x = shared("X", kFloat32, {50, 40}, {16, 32});
  Stmt wrong = tile_store(x, {at(i), at(j)}, tile_load(x, {at(i), at(j) * idx(0)}));
  auto loop = [&](bool parallel, Stmt body) {
    return function("f", {}, one_block({alloc(x), for_tiles(x, {i, j}, parallel, std::move(body))}));
  };
  EXPECT_EQ(fault(loop(true, wrong)),
            "error[HV0306]: iterations of this parallel loop read and write the same element of 'X'\n"
            "note: iteration i=0, j=0 writes X[0, 0], iteration i=0, j=1 reads it\n"
            "help: read from a copy of 'X', or make the loop T.foreach_tiles(..., parallel=False)");
  EXPECT_EQ(fault(loop(false, wrong)), "");
  Stmt next = tile_store(x, {at(i), at(j)}, tile_load(x, {at(i) + idx(1), at(j)}));
  EXPECT_NE(fault(loop(false, next)).find("error[HV0210]: index 50 of dimension 0 of 'X' is outside [0, 50)"),
            std::string::npos)
      << fault(loop(false, next));
}

TEST(Proofs, ATileIsReadWhereTheStoredOneHasElements) {
  BufferRef x = shared("X", kFloat32, {50}, {32}), y = shared("Y", kFloat32, {40}, {32});
  auto loop = [&](const BufferRef& to, const BufferRef& from) {
    return function(
        "f", {},
        one_block({alloc(x), alloc(y), for_tiles(to, {i}, true, tile_store(to, {at(i)}, tile_load(from, {at(i)})))}));
  };
  EXPECT_EQ(fault(loop(y, x)), "");
  EXPECT_NE(fault(loop(x, y)).find("index 40 of dimension 0 of 'Y' is outside [0, 40)\nnote: when i=1, r=8"),
            std::string::npos)
      << fault(loop(x, y));
}

TEST(Proofs, IterationsOfAPersistentLoopAreDealtToBlocks) {
  BufferRef a = param("A", kFloat32, {64});
  auto program = [&](Expr element) {
    Stmt loop = for_loop(LoopKind::Persistent, i, idx(16), store(a, {std::move(element)}, f32(0)));
    return function("f", {a}, kernel({b}, {idx(4)}, 128, loop));
  };
  EXPECT_EQ(fault(program(at(i))), "");
  EXPECT_NE(fault(program(floor_div(at(i), idx(2)))).find("HV0306"), std::string::npos);
  // Block b runs the iterations that are b modulo 4, so these are different elements as well.
  EXPECT_EQ(fault(program(at(b) * idx(16) + floor_div(at(i), idx(4)))), "");
  EXPECT_EQ(fault(program(at(b))), "");  // iterations of one block follow one another
}

TEST(Proofs, RmsNormIsProved) {
  for (const auto& [m, n, rows, cols] : {std::tuple{64, 96, 1, 1}, {50, 77, 2, 3}, {4096, 8192, 2, 4}}) {
    FunctionRef f = rms_norm_splitk(m, n, 32, 64, rows, cols);
    int bounds = 0, races = 0;
    for (const Proof& p : prove(*f)) {
      EXPECT_EQ(p.verdict, ProofVerdict::Proved) << p.question << " " << p.reason << p.witness;
      (p.kind == ProofKind::Race ? races : bounds) += 1;
    }
    EXPECT_GT(bounds, 10);
    EXPECT_EQ(races, 5);  // the kernel, the persistent loop, three tile loops
  }
}

TEST(Proofs, AnEmptyFunctionIsAskedNothing) { EXPECT_TRUE(prove(*function("f", {}, seq({}))).empty()); }

/// The answer about the asynchronous copies to the buffer that the kernel fills first.
ProofVerdict of_copies(std::vector<Stmt> body, const BufferRef& a) {
  for (const Proof& p : prove(*function("f", {a}, one_block(std::move(body))))) {
    if (p.kind == ProofKind::Async) return p.verdict;
  }
  ADD_FAILURE() << "no question about copies";
  return ProofVerdict::Refuted;
}

TEST(Proofs, AsynchronousCopiesInLoops) {
  const BufferRef a = param("A", kFloat32, {2}), s = shared("s", kFloat32, {2});
  const auto copy = [&](const Expr& place) {
    return tile_op(TileOpcode::CopyAsync, {box(a, {{place, 1}}), box(s, {{place, 1}}), f32(0)});
  };
  const auto wait = [](int64_t pending) { return tile_op(TileOpcode::WaitAsync, {pending}); };
  const auto use = [&](const Expr& place) { return store(s, {place}, f32(0)); };
  const Expr this_half = floor_mod(at(i), idx(2)), other_half = floor_mod(at(i) + idx(1), idx(2));
  const auto verdict = [&](std::vector<Stmt> body) {
    return of_copies({alloc(s), serial(i, idx(4), std::move(body)), wait(0)}, a);
  };
  EXPECT_EQ(verdict({copy(this_half), use(other_half), wait(0)}), ProofVerdict::Proved);
  EXPECT_EQ(verdict({copy(this_half), use(this_half), wait(0)}), ProofVerdict::Unknown);
  EXPECT_EQ(verdict({copy(this_half), use(other_half)}), ProofVerdict::Unknown);
  // What the outer loop began keeps its place inside the inner one, what the inner one began does not behind it.
  EXPECT_EQ(verdict({copy(this_half), serial(j, idx(9), {use(other_half)}), wait(0)}), ProofVerdict::Proved);
  EXPECT_EQ(verdict({copy(this_half), serial(j, idx(9), {use(this_half)}), wait(0)}), ProofVerdict::Unknown);
  EXPECT_EQ(verdict({serial(j, idx(9), {copy(this_half), wait(1)}), use(other_half), wait(0)}), ProofVerdict::Unknown);
  EXPECT_EQ(verdict({serial(j, idx(9), {copy(this_half), wait(0)}), use(this_half)}), ProofVerdict::Proved);
}

TEST(Proofs, ADeepNestOfCopiesIsWalkedAFewTimes) {
  const BufferRef a = param("A", kFloat32, {2}), s = shared("s", kFloat32, {2});
  const auto copy = [&] { return tile_op(TileOpcode::CopyAsync, {whole_region(a), whole_region(s), f32(0)}); };
  Stmt nest = copy();
  for (int depth = 0; depth < 60; ++depth) nest = serial(make_var("v"), idx(2), {copy(), nest, copy()});
  EXPECT_EQ(of_copies({alloc(s), nest}, a), ProofVerdict::Unknown);
}

}  // namespace
}  // namespace helve
