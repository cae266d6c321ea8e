// The verifier: what it accepts, and the exact text of what it refuses.
#include "helve/ir/tensor/verify.h"

#include <gtest/gtest.h>

#include "helve/ir/tensor/equal.h"
#include "helve/ir/tensor/visit.h"
#include "helve/support/diagnostic.h"
#include "ir/tensor/programs/rms_norm.h"

namespace helve {
namespace {

Expr i64(int64_t v) { return int_imm(v); }
Expr f32(double v) { return float_imm(v, kFloat32); }
Expr e(const VarRef& v) { return Expr(v); }
BufferRef buffer(const char* name, std::vector<Expr> shape, MemoryScope scope = MemoryScope::Shared,
                 std::vector<int64_t> tile = {}, DType dtype = kFloat32) {
  return make_buffer(name, dtype, scope, std::move(shape), std::move(tile));
}
BufferRef tensor(const char* name, std::vector<Expr> shape, DType dtype = kFloat32) {
  return buffer(name, std::move(shape), MemoryScope::Param, {}, dtype);
}
Span line(int n) { return {intern_file("k.py"), n, 1, n, 9}; }

struct Program {
  std::vector<VarRef> dims;
  std::vector<Param> params;
  std::optional<MeshShape> mesh;
  std::vector<MeshTensor> mesh_tensors;

  FunctionRef host(Stmt body) const {
    Ref<Function> f = make_ref<Function>();
    f->name = "main";
    f->dims = dims;
    f->params = params;
    f->mesh = mesh;
    f->mesh_tensors = mesh_tensors;
    f->body = std::move(body);
    return FunctionRef(f);
  }
  /// The statements in a kernel of one block, or of the mesh.
  FunctionRef in_kernel(std::vector<Stmt> stmts) const {
    if (!mesh) return host(kernel({make_var("bx")}, {i64(1)}, 128, seq(std::move(stmts))));
    return host(kernel({rid, cid}, {i64(mesh->extents[0]), i64(mesh->extents[1])}, 128, seq(std::move(stmts))));
  }
  VarRef rid = make_var("rid"), cid = make_var("cid");
};

std::string verdict(const FunctionRef& f) {
  try {
    verify(f);
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}
std::string in_kernel(std::vector<Stmt> stmts) { return verdict(Program().in_kernel(std::move(stmts))); }

const VarRef i = make_var("i"), j = make_var("j"), k = make_var("k");

TEST(Verify, TheStandardProgramIsAcceptedOnUnevenSizesAndMeshes) {
  for (int64_t rows : {1, 2, 3}) {
    for (int64_t cols : {1, 2, 5}) {
      for (int64_t size : {1, 37, 256}) {
        EXPECT_EQ(verdict(testing::rms_norm_splitk(size, 2 * size + 1, 16, 40, rows, cols)), "accepted")
            << rows << cols << size;
      }
    }
  }
}

// Scopes of names.

TEST(VerifyScope, NamesOutOfScopeAreFaultsOfHelve) {
  BufferRef a = buffer("A", {i64(4)});
  Stmt fill = tile_op(TileOpcode::Fill, {whole_region(a), f32(0)});
  EXPECT_EQ(in_kernel({alloc(a), fill}), "accepted");
  EXPECT_THROW(in_kernel({fill, alloc(a)}), InternalError);
  EXPECT_THROW(in_kernel({for_loop(LoopKind::Serial, i, i64(2), alloc(a)), fill}), InternalError);
  EXPECT_THROW(in_kernel({alloc(a), store(a, {e(i)}, f32(0))}), InternalError);
  EXPECT_THROW(in_kernel({alloc(a), alloc(a)}), InternalError);
  Stmt loop = for_loop(LoopKind::Serial, i, i64(4), store(a, {e(i)}, f32(0)));
  EXPECT_EQ(in_kernel({alloc(a), loop, loop}), "accepted");
  EXPECT_THROW(in_kernel({alloc(a), for_loop(LoopKind::Serial, i, i64(4), loop)}), InternalError);
  VarRef m = make_var("M");
  Program p;
  p.params = {tensor("X", {e(m)})};
  EXPECT_THROW(verdict(p.host(seq({}))), InternalError);
  p.dims = {m};
  EXPECT_EQ(verdict(p.host(seq({}))), "accepted");
}

TEST(VerifyScope, ABindEndsWithItsSequence) {
  BufferRef a = buffer("A", {i64(4)});
  VarRef v = make_var("v");
  Stmt use = store(a, {e(v)}, f32(0));
  EXPECT_EQ(in_kernel({alloc(a), bind(v, i64(1)), use}), "accepted");
  EXPECT_THROW(in_kernel({alloc(a), if_then(bool_imm(true), bind(v, i64(1))), use}), InternalError);
  EXPECT_THROW(in_kernel({alloc(a), bind(v, e(v))}), InternalError);
}

// Allocations, loops, kernels.

TEST(VerifyPlace, AllocationsBelongToTheirScope) {
  VarRef m = make_var("M");
  Program p;
  p.dims = {m};
  p.params = {tensor("A", {e(m)})};
  EXPECT_EQ(verdict(p.host(alloc(buffer("G", {e(m)}, MemoryScope::Global)))), "accepted");
  EXPECT_EQ(verdict(p.host(alloc(buffer("S", {i64(4)}), line(3)))),
            "error[HV0307]: 'T.alloc_shared' cannot be used at host scope\n  --> k.py:3:1\n"
            "help: allocate it inside T.Kernel, or use T.alloc_global");
  EXPECT_EQ(
      verdict(p.in_kernel({alloc(buffer("G", {i64(4)}, MemoryScope::Global))})),
      "error[HV0307]: 'T.alloc_global' cannot be used at kernel scope\nnote: the kernel\nhelp: allocate it before "
      "the kernel");
  EXPECT_EQ(verdict(p.in_kernel({alloc(buffer("S", {e(m), i64(2)}))})),
            "error[HV0108]: 'T.alloc_shared' cannot take (M, 2) for 'shape': memory of a kernel has constant extents\n"
            "help: use constants, or T.alloc_global before the kernel");
  EXPECT_EQ(verdict(p.in_kernel({alloc(buffer("S", {i64(0), i64(2)}))})), "accepted");
}

TEST(VerifyPlace, DynamicExtentsAreExtentsOfParameters) {
  Program p;
  p.dims = {make_var("M"), make_var("N")};
  p.params = {tensor("A", {e(p.dims[0]), e(p.dims[1]) + i64(1)})};
  EXPECT_EQ(verdict(p.host(seq({}))), "error[HV0703]: 'N' is not the extent of any tensor parameter\n"
                                      "help: give one dimension of a tensor parameter the extent 'N' itself");
  p.params.push_back(tensor("B", {e(p.dims[1])}));
  EXPECT_EQ(verdict(p.host(seq({}))), "accepted");
}

TEST(VerifyPlace, OperationsBelongInKernels) {
  BufferRef a = tensor("A", {i64(4)});
  Program p;
  p.params = {a};
  EXPECT_EQ(verdict(p.host(tile_op(TileOpcode::Clear, {whole_region(a)}, line(2)))),
            "error[HV0307]: 'T.clear' cannot be used at host scope\n  --> k.py:2:1\nhelp: put it inside T.Kernel");
  EXPECT_EQ(verdict(p.host(store(a, {i64(0)}, f32(1)))),
            "error[HV0307]: 'a store' cannot be used at host scope\nhelp: put it inside T.Kernel");
  EXPECT_EQ(verdict(p.host(for_loop(LoopKind::Parallel, i, i64(4), seq({}), line(7)))),
            "error[HV0307]: 'T.Parallel' cannot be used at host scope\n  --> k.py:7:1\nhelp: put it inside T.Kernel");
  EXPECT_EQ(verdict(p.in_kernel(
                {for_loop(LoopKind::Parallel, i, i64(4), tile_op(TileOpcode::Clear, {whole_region(a)}), line(7))})),
            "error[HV0307]: 'T.clear' cannot be used at iteration scope\n"
            "note: an iteration of this loop is executed by a part of the block only (k.py:7:1)\nhelp: make the loop "
            "T.serial, or move the operation out of it");
  EXPECT_EQ(
      verdict(p.in_kernel({for_loop(LoopKind::Persistent, i, i64(4), tile_op(TileOpcode::Clear, {whole_region(a)}))})),
      "accepted");
}

TEST(VerifyPlace, Kernels) {
  auto launch = [](int64_t extent, int64_t threads, Stmt body) {
    return kernel({make_var("bx")}, {i64(extent)}, threads, std::move(body), line(4));
  };
  Program p;
  EXPECT_EQ(verdict(p.host(launch(0, 32, seq({})))), "accepted");
  EXPECT_EQ(verdict(p.host(launch(-1, 32, seq({})))), "error[HV0209]: extent -1 is negative\n  --> k.py:4:1\n"
                                                      "help: an extent is 0 or more; with an extent of 0 nothing runs");
  for (int64_t threads : {0, 48, -32}) {
    EXPECT_EQ(verdict(p.host(launch(1, threads, seq({})))),
              "error[HV0108]: 'T.Kernel' cannot take " + std::to_string(threads) +
                  " for 'threads': threads come in warps of 32\n  --> k.py:4:1\nhelp: use a multiple of 32");
  }
  EXPECT_EQ(
      verdict(p.host(launch(1, 32, launch(1, 32, seq({}))))),
      "error[HV0307]: 'T.Kernel' cannot be used at kernel scope\n  --> k.py:4:1\nnote: the outer kernel (k.py:4:1)\n"
      "help: launch kernels one after the other");
  EXPECT_EQ(verdict(p.host(seq({launch(1, 32, seq({})), launch(1, 32, seq({}))}))), "accepted");
}

TEST(VerifyPlace, Loops) {
  EXPECT_EQ(in_kernel({for_loop(LoopKind::Serial, i, i64(0), seq({}))}), "accepted");
  EXPECT_EQ(in_kernel({for_loop(LoopKind::Serial, i, i64(-2), seq({}), line(5))}),
            "error[HV0209]: extent -2 is negative\n  --> k.py:5:1\n"
            "help: an extent is 0 or more; with an extent of 0 nothing runs");
  auto pipelined = [](int stages) {
    return for_loop(LoopKind::Pipelined, {i}, {i64(0)}, {i64(3)}, seq({}), stages, line(5));
  };
  EXPECT_EQ(in_kernel({pipelined(1)}), "accepted");
  EXPECT_EQ(in_kernel({pipelined(0)}), "accepted");
  EXPECT_TRUE(structural_equal(pipelined(0), pipelined(1)));
  EXPECT_EQ(in_kernel({pipelined(-1)}),
            "error[HV0305]: num_stages is -1\n  --> k.py:5:1\nhelp: num_stages is 0 or 1 (no overlap) or more");
}

TEST(VerifyPlace, ConstantIndicesLieInside) {
  BufferRef a = buffer("A", {i64(4), i64(3)});
  auto at = [&](int64_t x, int64_t y) { return store(a, {i64(x), i64(y)}, f32(0), line(6)); };
  const std::string refused =
      "error[HV0210]: index 3 of dimension 1 of 'A' is outside [0, 3)\n  --> k.py:6:1\nnote: 'A' has shape (4, 3)\n"
      "help: indices of dimension 1 go from 0 to 2";
  EXPECT_EQ(in_kernel({alloc(a), at(3, 2)}), "accepted");
  EXPECT_EQ(in_kernel({alloc(a), at(3, 3)}), refused);
  const Expr small = less(load(a, {i64(0), i64(0)}), f32(1));  // may never hold
  EXPECT_EQ(in_kernel({alloc(a), if_then(small, at(3, 3))}), "accepted");
  EXPECT_EQ(in_kernel({alloc(a), if_then(small, at(3, 2), at(3, 3))}), "accepted");
  EXPECT_EQ(in_kernel({alloc(a), if_then(bool_imm(true), at(3, 3), at(3, 2))}), refused);
  EXPECT_EQ(in_kernel({alloc(a), store(a, {i64(0), i64(0)}, load(a, {i64(1), i64(3)}), line(6))}), refused);
  // What never runs is not refused: lowered tails look like this.
  EXPECT_EQ(in_kernel({alloc(a), if_then(less(i64(3), i64(3)), at(3, 3))}), "accepted");
  EXPECT_EQ(in_kernel({alloc(a), if_then(logical_and(bool_imm(true), less(i64(3), i64(3))), at(3, 3))}), "accepted");
  EXPECT_EQ(in_kernel({alloc(a), if_then(less(i64(2), i64(3)), at(3, 2), at(3, 3))}), "accepted");
  EXPECT_EQ(in_kernel({alloc(a), if_then(less(i64(2), i64(3)), at(3, 3))}), refused);
  EXPECT_EQ(in_kernel({alloc(a), for_loop(LoopKind::Serial, i, i64(0), at(3, 3))}), "accepted");
}

// Tile loops.

struct Tiles {
  BufferRef x = buffer("X", {i64(40), i64(70)}, MemoryScope::Shared, {32, 32});
  BufferRef y = buffer("Y", {i64(40), i64(70)}, MemoryScope::Shared, {32, 32});
  BufferRef part = buffer("part", {i64(40)}, MemoryScope::Shared, {32});
  BufferRef column = buffer("column", {i64(40), i64(3)}, MemoryScope::Shared, {32, 1});
  BufferRef other = buffer("other", {i64(40), i64(70)}, MemoryScope::Shared, {16, 32});
  BufferRef flat = buffer("flat", {i64(40), i64(70)});
  std::string run(Stmt body) const {
    return in_kernel({alloc(x), alloc(y), alloc(part), alloc(column), alloc(other), alloc(flat),
                      for_tiles(x, {i, j}, true, std::move(body), line(8))});
  }
  std::string reads(Expr value) const { return run(tile_store(x, {e(i), e(j)}, std::move(value), line(9))); }
};

TEST(VerifyTiles, OperandsFollowTheLoopsTile) {
  Tiles t;
  EXPECT_EQ(t.reads(tile_load(t.y, {e(i), e(j)}) * tile_load(t.part, {e(i)})), "accepted");
  EXPECT_EQ(t.reads(tile_load(t.column, {e(i), i64(0)})), "accepted");
  EXPECT_EQ(t.reads(tile_load(t.y, {e(i), e(j) * i64(1) + i64(0)})), "accepted");
  EXPECT_EQ(t.reads(tile_load(t.other, {e(i), e(j)})),
            "error[HV0302]: 'other' has no tile that matches (32, 32) of this loop\n  --> k.py:9:1\n"
            "note: 'other' has shape (40, 70)\nnote: the tile of 'other' is (16, 32)\n"
            "note: the loop goes over the tiles of 'X' (k.py:8:1)\n"
            "help: allocate it with T.alloc_shared_tiles and the same tile_size");
  EXPECT_EQ(t.reads(tile_load(t.flat, {e(i), e(j)})),
            "error[HV0302]: 'flat' has no tile that matches (32, 32) of this loop\n  --> k.py:9:1\n"
            "note: 'flat' has shape (40, 70)\nnote: the loop goes over the tiles of 'X' (k.py:8:1)\n"
            "help: allocate it with T.alloc_shared_tiles and the same tile_size");
  EXPECT_EQ(t.reads(load(t.flat, {e(i), e(j)})),
            "error[HV0302]: 'flat' has no tile that matches (32, 32) of this loop\n  --> k.py:9:1\n"
            "note: 'flat' has shape (40, 70)\nnote: inside a tile loop subscripts denote tiles (k.py:8:1)\n"
            "help: allocate it with T.alloc_shared_tiles and the same tile_size");
  EXPECT_EQ(t.reads(tile_load(t.y, {e(i), i64(3)})),
            "error[HV0210]: index 3 of dimension 1 of 'Y' is outside [0, 3)\n  --> k.py:9:1\n"
            "note: 'Y' has 3 tiles along dimension 1\nhelp: guard the access or change the loop's extent");
}

TEST(VerifyTiles, IndicesAreAffine) {
  Tiles t;
  const std::string refused =
      "error[HV0308]: tile indices of 'Y' are not the loop's variables\n  --> k.py:9:1\n"
      "note: the loop goes over the tiles of 'X' (k.py:8:1)\nhelp: index tiles with the variables of the enclosing "
      "T.foreach_tiles";
  EXPECT_EQ(t.reads(tile_load(t.y, {floor_mod(e(i), i64(2)), e(j)})), refused);
  EXPECT_EQ(t.reads(tile_load(t.y, {e(i) * e(j), e(j)})), refused);
  EXPECT_EQ(t.reads(tile_load(t.y, {i64(1) - e(i), apply(Op::Neg, {e(j)}) + i64(2)})), "accepted");
}

TEST(VerifyTiles, StoresUseTheLoopsVariables) {
  Tiles t;
  Expr value = tile_load(t.x, {e(i), e(j)});
  EXPECT_EQ(t.run(tile_store(t.part, {e(i)}, value, line(9))),
            "error[HV0303]: the store to 'part' would need a reduction: it does not vary with loop variable 'j'\n"
            "  --> k.py:9:1\nnote: 'j' is a variable of this loop (k.py:8:1)\n"
            "help: use T.reduce_sum (or max, min, ...) into 'part' outside the loop");
  EXPECT_EQ(t.run(tile_store(t.y, {i64(0), e(j)}, value)),
            "error[HV0303]: the store to 'Y' would need a reduction: it does not vary with loop variable 'i'\n"
            "note: 'i' is a variable of this loop (k.py:8:1)\n"
            "help: use T.reduce_sum (or max, min, ...) into 'Y' outside the loop");
  const std::string index =
      "error[HV0308]: tile indices of 'Y' are not the loop's variables\n  --> k.py:9:1\n"
      "note: the loop goes over the tiles of 'X' (k.py:8:1)\nhelp: index tiles with the variables of the enclosing "
      "T.foreach_tiles";
  EXPECT_EQ(t.run(tile_store(t.y, {e(j), e(i)}, value, line(9))), index);
  EXPECT_EQ(t.run(tile_store(t.y, {e(i), e(j) + i64(1)}, value, line(9))), index);
  EXPECT_EQ(t.run(tile_store(t.column, {e(i), e(j)}, value, line(9))),
            "error[HV0304]: a tile of shape (32, 32) is stored to 'column', whose tile is (32, 1)\n  --> k.py:9:1\n"
            "note: 'column' has shape (40, 3)\nhelp: store to a buffer with the same tile");
}

TEST(VerifyTiles, TilesAreValuesOfStoresOnly) {
  Tiles t;
  EXPECT_EQ(t.run(bind(make_var("v", kFloat32), tile_load(t.x, {e(i), e(j)}, line(9)))),
            "error[HV0309]: a tile of 'X' is used outside the value of a store\n  --> k.py:9:1\n"
            "help: write the tile into the expression that is stored, 'X[i, j] = ...'");
  EXPECT_THROW(in_kernel({alloc(t.x), tile_store(t.x, {i64(0), i64(0)}, f32(0))}), InternalError);
}

TEST(VerifyTiles, LoopsDoNotNest) {
  Tiles t;
  EXPECT_EQ(t.run(for_tiles(t.part, {k}, false, seq({}), line(10))),
            "error[HV0301]: a tile loop is inside another tile loop\n  --> k.py:10:1\nnote: the outer tile loop "
            "(k.py:8:1)\n"
            "help: give the inner work to the outer loop, or use T.Parallel over elements");
  EXPECT_EQ(in_kernel({alloc(t.flat), for_tiles(t.flat, {i, j}, false, seq({}), line(10))}),
            "error[HV0108]: 'T.foreach_tiles' cannot take 'flat' for 'buffer': it has no tiles\n  --> k.py:10:1\n"
            "note: 'flat' has shape (40, 70)\nhelp: allocate it with T.alloc_shared_tiles");
  EXPECT_EQ(
      in_kernel({alloc(t.x), for_tiles(t.x, {i}, false, seq({}), line(10))}),
      "error[HV0201]: 'X' has 2 dimensions, the subscript has 1 index\n  --> k.py:10:1\nnote: 'X' has shape (40, 70)\n"
      "help: a tile loop has one variable for each dimension");
}

}  // namespace
}  // namespace helve
