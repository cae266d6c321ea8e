// Shape, dtype and mesh rules of tile operations: what they accept, and the exact text of what they refuse.
#include <gtest/gtest.h>

#include "helve/ir/tensor/verify.h"
#include "helve/support/diagnostic.h"

namespace helve {
namespace {

const DType kI8{TypeCode::Int, 8}, kF16{TypeCode::Float, 16}, kBF16{TypeCode::BFloat, 16};
const VarRef m = make_var("M"), n = make_var("N");
const MeshShape kMesh{{2, 3}, {"x", "y"}};

Expr i64(int64_t v) { return int_imm(v); }
std::vector<Expr> dims(const std::vector<int64_t>& shape) {
  std::vector<Expr> out;
  for (int64_t extent : shape) out.push_back(i64(extent));
  return out;
}
Region box(const char* name, std::vector<int64_t> shape, DType dtype = kFloat32) {
  return whole_region(make_buffer(name, dtype, MemoryScope::Shared, dims(shape)));
}
Region symbolic(const char* name, std::vector<Expr> shape) {
  return whole_region(make_buffer(name, kFloat32, MemoryScope::Param, std::move(shape)));
}

std::string verdict(TileOpcode code, std::vector<TileOperand> operands, const MeshShape* mesh = nullptr) {
  Stmt s = tile_op(code, std::move(operands));
  try {
    verify_tile_op(*as<TileOp>(s), mesh);
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

// Copies.

std::string copy(Region src, Region dst) { return verdict(TileOpcode::Copy, {std::move(src), std::move(dst), i64(0)}); }

TEST(CopyRule, ShapesAreEqualExtentsOfOneAside) {
  EXPECT_EQ(copy(box("A", {4, 8}), box("B", {4, 8}, kBF16)), "accepted");
  EXPECT_EQ(copy(box("A", {1, 4, 1, 8}), box("B", {4, 8, 1})), "accepted");
  EXPECT_EQ(copy(box("A", {}), box("B", {1})), "accepted");
  EXPECT_EQ(copy(box("A", {0}), box("B", {0})), "accepted");
  EXPECT_EQ(copy(box("A", {4, 8}), box("B", {8, 4})),
            "error[HV0205]: src and dst of T.copy: (4, 8) and (8, 4) differ\nnote: 'A' has shape (4, 8)\n"
            "note: 'B' has shape (8, 4)\nhelp: make the two shapes equal, slices included");
  EXPECT_EQ(copy(box("A", {32}), box("B", {4, 8})),
            "error[HV0205]: src and dst of T.copy: (32,) and (4, 8) differ\nnote: 'A' has shape (32,)\n"
            "note: 'B' has shape (4, 8)\nhelp: make the two shapes equal, slices included");
  EXPECT_NE(copy(box("A", {0}), box("B", {1})), "accepted");
}

TEST(CopyRule, SymbolicExtentsAreRefusedOnlyWhenNoValueFits) {
  EXPECT_EQ(copy(symbolic("A", {Expr(m), i64(8)}), symbolic("B", {i64(4), Expr(n)})), "accepted");
  EXPECT_EQ(copy(symbolic("A", {Expr(m), i64(8)}), box("B", {8})), "accepted");
  EXPECT_EQ(copy(symbolic("A", {Expr(m), i64(8)}), box("B", {4, 9})),
            "error[HV0205]: src and dst of T.copy: (M, 8) and (4, 9) differ\nnote: 'A' has shape (M, 8)\n"
            "note: 'B' has shape (4, 9)\nhelp: make the two shapes equal, slices included");
  EXPECT_NE(copy(symbolic("A", {Expr(m)}), box("B", {4, 9})), "accepted");
}

TEST(CopyRule, OnlyGlobalTensorsAreReadPastTheirEnd) {
  auto part = [](Region r, int64_t begin, int64_t extent) {
    r.ranges[0] = {i64(begin), i64(extent), false};
    return r;
  };
  EXPECT_EQ(copy(part(symbolic("A", dims({10})), 8, 8), box("B", {8})), "accepted");
  EXPECT_EQ(copy(box("B", {8}), part(symbolic("A", dims({10})), 8, 8)), "accepted");
  EXPECT_EQ(copy(part(box("S", {10}), 2, 8), box("B", {8})), "accepted");
  EXPECT_EQ(copy(part(box("S", {10}), 10, 0), box("B", {0})), "accepted");
  EXPECT_EQ(copy(part(box("S", {10}), 8, 8), box("B", {8})),
            "error[HV0210]: index 15 of dimension 0 of 'S' is outside [0, 10)\nnote: 'S' has shape (10,)\n"
            "help: indices of dimension 0 go from 0 to 9");
  EXPECT_EQ(copy(part(symbolic("A", dims({10})), -1, 8), box("B", {8})),
            "error[HV0203]: index -1 of 'A' is negative\nnote: 'A' has shape (10,)\n"
            "help: indices count from 0; write shape - n for the n-th last");
  EXPECT_EQ(copy(part(symbolic("A", dims({10})), 5, -1), box("B", {8})),
            "error[HV0209]: extent -1 is negative\n"
            "note: 'A' has shape (10,)\n"
            "help: a slice ends where it begins, or later");
  Region past = part(symbolic("A", dims({10})), 8, 8);
  EXPECT_EQ(verdict(TileOpcode::Clear, {past}),
            "error[HV0210]: index 15 of dimension 0 of 'A' is outside [0, 10)\nnote: 'A' has shape (10,)\n"
            "help: indices of dimension 0 go from 0 to 9");
}

// Products.

std::string gemm(Region a, Region b, Region c, bool ta = false, bool tb = false) {
  return verdict(TileOpcode::Gemm, {std::move(a), std::move(b), std::move(c), ta, tb, false});
}

TEST(GemmRule, Shapes) {
  for (bool ta : {false, true}) {
    for (bool tb : {false, true}) {
      Region a = ta ? box("A", {5, 4}) : box("A", {4, 5});
      Region b = tb ? box("B", {6, 5}) : box("B", {5, 6});
      EXPECT_EQ(gemm(a, b, box("C", {4, 6}), ta, tb), "accepted");
      const auto tells = [](const std::string& refused, const std::string& flag, bool value) {
        return refused.ends_with("help: the shapes are those of a product with " + flag + (value ? "=True" : "=False"));
      };
      EXPECT_TRUE(tells(gemm(a, b, box("C", {4, 6}), !ta, tb), "transpose_A", ta));
      EXPECT_TRUE(tells(gemm(a, b, box("C", {4, 6}), ta, !tb), "transpose_B", tb));
    }
  }
  EXPECT_EQ(
      gemm(box("A", {4, 5}), box("B", {7, 6}), box("C", {4, 6})),
      "error[HV0205]: K in A and B of T.gemm: 5 and 7 differ\nnote: 'A' has shape (4, 5)\nnote: 'B' has shape (7, 6)\n"
      "help: make the two shapes equal, slices included");
  EXPECT_EQ(
      gemm(box("A", {4, 5}), box("B", {5, 6}), box("C", {3, 6})),
      "error[HV0205]: M in A and C of T.gemm: 4 and 3 differ\nnote: 'A' has shape (4, 5)\nnote: 'C' has shape (3, 6)\n"
      "help: make the two shapes equal, slices included");
  EXPECT_EQ(
      gemm(box("A", {4, 5}), box("B", {5, 6}), box("C", {4, 7})),
      "error[HV0205]: N in B and C of T.gemm: 6 and 7 differ\nnote: 'B' has shape (5, 6)\nnote: 'C' has shape (4, 7)\n"
      "help: make the two shapes equal, slices included");
  EXPECT_EQ(gemm(box("A", {5}), box("B", {5, 6}), box("C", {4, 7})),
            "error[HV0108]: 'T.gemm' cannot take (5,) for 'A': an operand is a matrix\nnote: 'A' has shape (5,)\n"
            "help: give a region of two dimensions");
}

TEST(GemmRule, TheResultOverlapsNoOperand) {
  Region a = box("A", {8, 4}), low = a, high = a;
  low.ranges[0] = {i64(0), i64(4), false};
  high.ranges[0] = {i64(4), i64(4), false};
  Region b = box("B", {4, 4});
  EXPECT_EQ(gemm(low, b, high), "accepted");
  EXPECT_EQ(gemm(low, b, low),
            "error[HV0108]: 'T.gemm' cannot take 'A' for 'C': it overlaps A\nhelp: multiply into another buffer");
  EXPECT_EQ(gemm(low, b, b),
            "error[HV0108]: 'T.gemm' cannot take 'B' for 'C': it overlaps B\nhelp: multiply into another buffer");
}

TEST(GemmRule, Accumulators) {
  auto types = [](DType a, DType b, DType c) {
    return gemm(box("A", {4, 4}, a), box("B", {4, 4}, b), box("C", {4, 4}, c));
  };
  const DType e4m3{TypeCode::Float8E4M3, 8}, e5m2{TypeCode::Float8E5M2, 8}, u8{TypeCode::UInt, 8};
  EXPECT_EQ(types(kF16, kF16, kFloat32), "accepted");
  EXPECT_EQ(types(kF16, kF16, kF16), "accepted");
  EXPECT_EQ(types(e4m3, e5m2, kFloat32), "accepted");
  EXPECT_EQ(types(kI8, kI8, kInt32), "accepted");
  EXPECT_EQ(types(u8, u8, kInt32), "accepted");
  EXPECT_EQ(types(kI8, kI8, kI8),
            "error[HV0206]: the accumulator of T.gemm is int8, expected int32\nnote: 'C' has shape (4, 4)\n"
            "help: declare it with that type, or T.copy it to a buffer that has it: a copy converts");
  EXPECT_EQ(types({TypeCode::Int, 16}, {TypeCode::Int, 16}, {TypeCode::Int, 16}),
            "error[HV0206]: the accumulator of T.gemm is int16, expected int32\nnote: 'C' has shape (4, 4)\n"
            "help: declare it with that type, or T.copy it to a buffer that has it: a copy converts");
  EXPECT_EQ(types(kFloat32, kFloat32, kF16),
            "error[HV0206]: the accumulator of T.gemm is float16, expected float32 or a wider float\n"
            "note: 'C' has shape (4, 4)\nhelp: declare it with that type, or T.copy it to a buffer that has it: a copy "
            "converts");
  EXPECT_EQ(types(kF16, kBF16, kFloat32),
            "error[HV0206]: B of T.gemm is bfloat16, expected float16, as A\nnote: 'B' has shape (4, 4)\n"
            "help: declare it with that type, or T.copy it to a buffer that has it: a copy converts");
  EXPECT_EQ(types(kBool, kBool, kInt32),
            "error[HV0206]: A of T.gemm is bool, expected a number\nnote: 'A' has shape (4, 4)\n"
            "help: declare it with that type, or T.copy it to a buffer that has it: a copy converts");
}

// Reductions.

std::string reduce(TileOpcode op, Region src, Region dst, int64_t dim) {
  return verdict(op, {std::move(src), std::move(dst), dim, true});
}

TEST(ReduceRule, DstHasTheShapeWithoutTheDimension) {
  for (int64_t dim : {1, -2}) {
    EXPECT_EQ(reduce(TileOpcode::ReduceSum, box("A", {4, 5, 6}), box("B", {4, 6}), dim), "accepted");
    EXPECT_EQ(reduce(TileOpcode::ReduceSum, box("A", {4, 5, 6}), box("B", {4, 1, 6}), dim), "accepted");
    EXPECT_EQ(
        reduce(TileOpcode::ReduceSum, box("A", {4, 5, 6}), box("B", {4, 5}), dim),
        "error[HV0205]: src without dimension 1 and dst of T.reduce_sum: (4, 6) and (4, 5) differ\n"
        "note: 'A' has shape (4, 5, 6)\nnote: 'B' has shape (4, 5)\nhelp: make the two shapes equal, slices included");
  }
  EXPECT_EQ(reduce(TileOpcode::ReduceMax, box("A", {4}), box("B", {}), 0), "accepted");
  EXPECT_EQ(reduce(TileOpcode::ReduceMax, box("A", {4}), box("B", {1}), -1), "accepted");
  EXPECT_EQ(reduce(TileOpcode::ReduceMax, symbolic("A", {Expr(m), i64(4)}), box("B", {7}), 1), "accepted");
}

TEST(ReduceRule, TheDimensionExists) {
  for (int64_t dim : {2, -3}) {
    EXPECT_EQ(reduce(TileOpcode::ReduceMin, box("A", {4, 5}), box("B", {4}), dim),
              "error[HV0108]: 'T.reduce_min' cannot take " + std::to_string(dim) +
                  " for 'dim': the source has shape (4, 5)\nnote: 'A' has shape (4, 5)\n"
                  "help: dim is 0 to 1, or counted from the end -2 to -1");
  }
  EXPECT_EQ(reduce(TileOpcode::ReduceMin, box("A", {}), box("B", {}), 0),
            "error[HV0108]: 'T.reduce_min' cannot take 0 for 'dim': the source has shape ()\nnote: 'A' has shape ()\n"
            "help: reduce a region with a dimension");
}

TEST(ReduceRule, DstDoesNotOverlapSrc) {
  Region a = box("A", {4, 4}), low = a, high = a;
  low.ranges[0] = {i64(0), i64(2), false};
  high.ranges[0] = {i64(2), i64(1), false};
  EXPECT_EQ(reduce(TileOpcode::ReduceSum, low, high, 0), "accepted");
  high.ranges[0] = {i64(1), i64(1), false};
  EXPECT_EQ(reduce(TileOpcode::ReduceSum, low, high, 0),
            "error[HV0108]: 'T.reduce_sum' cannot take 'A' for 'dst': it overlaps the source\nhelp: reduce into "
            "another buffer");
}

TEST(ReduceRule, Types) {
  auto types = [](TileOpcode op, DType a, DType b) { return reduce(op, box("A", {4, 5}, a), box("B", {4}, b), 1); };
  EXPECT_EQ(types(TileOpcode::ReduceAny, kBool, kBool), "accepted");
  EXPECT_EQ(types(TileOpcode::ReduceSum, kBF16, kFloat32), "accepted");
  EXPECT_EQ(types(TileOpcode::ReduceSum, kFloat32, kBF16), "accepted");
  EXPECT_EQ(types(TileOpcode::ReduceSum, kI8, kInt32), "accepted");
  EXPECT_EQ(types(TileOpcode::ReduceAll, kInt32, kBool),
            "error[HV0206]: 'A' in T.reduce_all is int32, expected bool\nnote: 'A' has shape (4, 5)\n"
            "help: declare it with that type, or T.copy it to a buffer that has it: a copy converts");
  EXPECT_EQ(types(TileOpcode::ReduceAny, kBool, kInt32),
            "error[HV0206]: 'B' in T.reduce_any is int32, expected bool\nnote: 'B' has shape (4,)\n"
            "help: declare it with that type, or T.copy it to a buffer that has it: a copy converts");
  EXPECT_EQ(types(TileOpcode::ReduceSum, kBool, kInt32),
            "error[HV0206]: 'A' in T.reduce_sum is bool, expected a number\nnote: 'A' has shape (4, 5)\n"
            "help: declare it with that type, or T.copy it to a buffer that has it: a copy converts");
  EXPECT_EQ(types(TileOpcode::ReduceProd, kFloat32, kInt32),
            "error[HV0206]: 'B' in T.reduce_prod is int32, expected float32, as the source\nnote: 'B' has shape (4,)\n"
            "help: declare it with that type, or T.copy it to a buffer that has it: a copy converts");
}

// Collectives.

const std::string kX = "x", kY = "y", kAll = "all";

TEST(CollectiveRule, NeedsAMeshAndAnAxis) {
  EXPECT_EQ(verdict(TileOpcode::CommBarrier, {kAll}),
            "error[HV0404]: 'T.comm.barrier' needs a mesh\n"
            "help: annotate the tensors with T.annotate_mesh_tensor, or name the mesh: @T.prim_func(mesh=mesh)");
  for (const std::string& axis : {kX, kY, kAll})
    EXPECT_EQ(verdict(TileOpcode::CommBarrier, {axis}, &kMesh), "accepted");
  EXPECT_EQ(verdict(TileOpcode::CommBarrier, {std::string("z")}, &kMesh),
            "error[HV0402]: 'z' is not an axis of the mesh\nhelp: mesh axes are: \"x\", \"y\", \"all\"");
}

TEST(CollectiveRule, AllGather) {
  auto gather = [](Region dst, std::string axis, int64_t dim) {
    return verdict(TileOpcode::CommAllGather, {box("A", {4, 5}), std::move(dst), std::move(axis), dim}, &kMesh);
  };
  EXPECT_EQ(gather(box("B", {4, 5, 3}), kY, -1), "accepted");
  EXPECT_EQ(gather(box("B", {2, 4, 5}), kX, 0), "accepted");
  EXPECT_EQ(gather(box("B", {4, 6, 5}), kAll, 1), "accepted");
  EXPECT_EQ(gather(box("B", {4, 15}), kY, -1), "accepted");
  EXPECT_EQ(gather(box("B", {24, 5}), kAll, 0), "accepted");
  EXPECT_EQ(gather(box("B", {4, 5, 2}), kY, -1),
            "error[HV0406]: 'T.comm.all_gather' gives (4, 5, 3), 'B' is (4, 5, 2)\nnote: 'B' has shape (4, 5, 2)\n"
            "help: allocate 'B' as (4, 5, 3)");
  EXPECT_EQ(gather(box("B", {4, 5}), kY, -1),
            "error[HV0406]: 'T.comm.all_gather' gives (4, 15), 'B' is (4, 5)\nnote: 'B' has shape (4, 5)\n"
            "help: allocate 'B' as (4, 15)");
  EXPECT_EQ(gather(box("B", {4, 15}), kY, 2),
            "error[HV0108]: 'T.comm.all_gather' cannot take 2 for 'dim': there are 2 dimensions\n"
            "help: dimensions count from 0, or from the end with -1");
  EXPECT_EQ(gather(box("B", {4, 15}, kF16), kY, -1),
            "error[HV0206]: 'B' in T.comm.all_gather is float16, expected float32, as the source\nnote: 'B' has shape "
            "(4, 15)\n"
            "help: convert with T.cast(x, dtype)");
}

TEST(CollectiveRule, ReduceScatter) {
  auto scatter = [](Region src, int64_t dim, std::string op = "sum") {
    return verdict(TileOpcode::CommReduceScatter, {std::move(src), box("B", {4, 5}), std::move(op), kY, dim}, &kMesh);
  };
  EXPECT_EQ(scatter(box("A", {4, 5, 3}), -1), "accepted");
  EXPECT_EQ(scatter(box("A", {12, 5}), 0, "max"), "accepted");
  EXPECT_EQ(scatter(box("A", {11, 5}), 0),
            "error[HV0205]: 3 cores' parts of T.comm.reduce_scatter: (11, 5) and (12, 5) differ\nnote: 'A' has shape "
            "(11, 5)\n"
            "note: 'B' has shape (4, 5)\nhelp: make the two shapes equal, slices included");
  EXPECT_EQ(scatter(box("A", {12, 5}), 0, "mean"),
            "error[HV0108]: 'T.comm.reduce_scatter' cannot take \"mean\" for 'op': it is no reduction\n"
            "help: op is \"sum\", \"prod\", \"max\" or \"min\"");
}

TEST(CollectiveRule, SameShapes) {
  auto reduce_all = [](Region src, Region dst) {
    return verdict(TileOpcode::CommAllReduce, {std::move(src), std::move(dst), std::string("sum"), kAll}, &kMesh);
  };
  EXPECT_EQ(reduce_all(box("A", {4, 1}), box("B", {4})), "accepted");
  EXPECT_EQ(reduce_all(box("A", {4}), box("B", {5})),
            "error[HV0406]: 'T.comm.all_reduce' gives (4,), 'B' is (5,)\nnote: 'B' has shape (5,)\nhelp: allocate 'B' "
            "as (4,)");
  EXPECT_EQ(reduce_all(box("A", {4}, kBool), box("B", {4}, kBool)),
            "error[HV0206]: 'A' in T.comm.all_reduce is bool, expected a number\nnote: 'A' has shape (4,)\n"
            "help: convert with T.cast(x, dtype)");
  auto broadcast = [](int64_t root, std::string axis) {
    return verdict(TileOpcode::CommBroadcast, {box("A", {4}), box("B", {4}), root, std::move(axis)}, &kMesh);
  };
  EXPECT_EQ(broadcast(5, kAll), "accepted");
  EXPECT_EQ(broadcast(2, kY), "accepted");
  EXPECT_EQ(broadcast(2, kX), "error[HV0108]: 'T.comm.broadcast' cannot take 2 for 'root': the group has 2 cores\n"
                              "help: roots count from 0 in each group");
  EXPECT_EQ(verdict(TileOpcode::CommPermute, {box("A", {4}), box("B", {4}), int64_t{-7}, kX}, &kMesh), "accepted");
}

TEST(CollectiveRule, PutNamesCores) {
  auto put = [](std::vector<int64_t> from) {
    return verdict(TileOpcode::CommPut, {box("A", {4}), box("B", {4}), dims(from), std::vector<Expr>{Expr(m), i64(2)}},
                   &kMesh);
  };
  EXPECT_EQ(put({1, 2}), "accepted");
  const std::string refused = "error[HV0108]: 'T.comm.put' cannot take ";
  EXPECT_EQ(put({1}), refused + "(1,) for 'src_core': the mesh is (2, 3)\n"
                                "help: give one coordinate for each mesh axis");
  const std::string help = "help: coordinates of a core count from 0 along each axis of the mesh";
  EXPECT_EQ(put({1, 3}), refused + "3 for 'src_core': the mesh has 3 cores along axis 'y'\n" + help);
  EXPECT_EQ(put({-1, 0}), refused + "-1 for 'src_core': the mesh has 2 cores along axis 'x'\n" + help);
}

TEST(CollectiveRule, AllToAllSplitsEvenly) {
  auto exchange = [](int64_t extent, int64_t dim) {
    return verdict(TileOpcode::CommAllToAll, {box("A", {extent, 4}), box("B", {extent, 4}), kY, dim}, &kMesh);
  };
  EXPECT_EQ(exchange(6, 0), "accepted");
  EXPECT_EQ(exchange(0, -2), "accepted");
  EXPECT_EQ(exchange(6, 1),
            "error[HV0108]: 'T.comm.all_to_all' cannot take 1 for 'dim': 4 elements are not 3 equal parts\n"
            "help: make the extent a multiple of the number of cores in the group");
}

// In a mesh function.

struct MeshProgram {
  BufferRef a = make_buffer("A", kFloat32, MemoryScope::Param, {i64(40), i64(50)});
  BufferRef x = make_buffer("X", kFloat32, MemoryScope::Shared, {i64(8), i64(16)});
  BufferRef y = make_buffer("Y", kFloat32, MemoryScope::Shared, {i64(8), i64(16)});
  VarRef rid = make_var("rid"), cid = make_var("cid");
  std::vector<MeshTensor> mesh_tensors = {{a, {{"x", 0}, {"y", 1}}, {8, 16}, {}}};
  std::vector<Expr> grid = dims({2, 3});

  std::string run(std::vector<Stmt> stmts) const {
    stmts.insert(stmts.begin(), {alloc(x), alloc(y)});
    Ref<Function> f = make_ref<Function>();
    f->params = {a};
    f->mesh = kMesh;
    f->mesh_tensors = mesh_tensors;
    f->body = kernel({rid, cid}, grid, 128, seq(std::move(stmts)));
    try {
      verify(FunctionRef(f));
    } catch (const UserError& error) {
      return error.what();
    }
    return "accepted";
  }
  std::string copy_tile(Region src, Region dst, std::vector<int64_t> coord) const {
    return run({tile_op(TileOpcode::MeshTensorCopy, {std::move(src), std::move(dst), dims(coord), i64(0)})});
  }
};

TEST(MeshRule, TheGridIsTheMesh) {
  MeshProgram p;
  EXPECT_EQ(p.run({}), "accepted");
  p.grid = dims({3, 2});
  EXPECT_EQ(p.run({}), "error[HV0401]: the grid (3, 2) is not the mesh (2, 3)\n"
                       "help: write T.Kernel(2, 3), one block for each core of the mesh");
}

TEST(MeshRule, Placement) {
  MeshProgram p;
  p.mesh_tensors[0].sharding = {{"z", 0}};
  EXPECT_EQ(p.run({}), "error[HV0402]: 'z' is not an axis of the mesh\nhelp: mesh axes are: \"x\", \"y\"");
  p.mesh_tensors[0].sharding = {{"x", 2}};
  EXPECT_EQ(p.run({}), "error[HV0403]: sharding of 'A' names dimension 2, it has 2\nnote: 'A' has shape (40, 50)\n"
                       "help: dimensions count from 0");
  p.mesh_tensors[0].sharding = {{"x", 0}, {"x", 1}};
  EXPECT_EQ(
      p.run({}),
      "error[HV0108]: 'T.annotate_mesh_tensor' cannot take \"x\" for 'sharding': the axis cuts a dimension already\n"
      "help: name each mesh axis once");
  p.mesh_tensors[0].sharding = {{"x", 0}, {"y", 0}};
  EXPECT_EQ(p.run({}), "accepted");
  p.mesh_tensors[0].tiling = {8};
  EXPECT_EQ(p.run({}), "error[HV0205]: tiling of 'A': (8,) and (40, 50) differ\nnote: 'A' has shape (40, 50)\n"
                       "help: the tiling has one extent for each dimension");
  p.mesh_tensors[0].tiling = {8, 0};
  EXPECT_EQ(p.run({}), "error[HV0108]: 'T.annotate_mesh_tensor' cannot take (8, 0) for 'tiling': a tile has elements\n"
                       "help: every extent of a tiling is 1 or more");
}

TEST(MeshRule, MeshTensorCopy) {
  MeshProgram p;
  Region a = whole_region(p.a), x = whole_region(p.x), y = whole_region(p.y);
  EXPECT_EQ(p.copy_tile(a, x, {0, 1}), "accepted");
  EXPECT_EQ(p.copy_tile(x, a, {0, 1}), "accepted");
  EXPECT_EQ(
      p.copy_tile(x, y, {0, 1}),
      "error[HV0407]: 'X' has no mesh annotation\nnote: 'X' has shape (8, 16)\nhelp: add it to T.annotate_mesh_tensor");
  EXPECT_EQ(p.copy_tile(a, a, {0, 1}),
            "error[HV0108]: 'T.mesh_tensor_copy' cannot take 'A' for 'dst': both operands are mesh tensors\n"
            "note: 'A' has shape (40, 50)\nhelp: copy through a buffer of the core");
  EXPECT_EQ(p.copy_tile(a, x, {0}),
            "error[HV0201]: 'A' has 2 dimensions, the subscript has 1 index\nhelp: give one index or slice for each "
            "dimension");
  EXPECT_EQ(
      p.copy_tile(a, x, {0, -1}),
      "error[HV0203]: index -1 of 'A' is negative\nhelp: indices count from 0; write shape - n for the n-th last");
  Region half = x, part = a;
  half.ranges[0] = {i64(0), i64(4), false};
  part.ranges[0] = {i64(0), i64(8), false};
  EXPECT_EQ(p.copy_tile(a, half, {0, 0}),
            "error[HV0205]: the tiling of 'A' and 'X': (8, 16) and (4, 16) differ\n"
            "note: the tiling of 'A' is declared as (8, 16)\nnote: 'X' has shape (8, 16)\n"
            "help: make the two shapes equal, slices included");
  EXPECT_EQ(p.copy_tile(part, x, {0, 0}),
            "error[HV0108]: 'T.mesh_tensor_copy' cannot take a part of 'A' for 'src': coord chooses the tile\n"
            "help: give 'A' whole");
  p.mesh_tensors.clear();
  EXPECT_EQ(p.copy_tile(x, a, {0, 1}),
            "error[HV0407]: 'A' has no mesh annotation\nnote: 'A' has shape (40, 50)\nhelp: add it to "
            "T.annotate_mesh_tensor");
}

TEST(MeshRule, ControlAroundACollectiveIsUniform) {
  MeshProgram p;
  const VarRef v = make_var("v"), i = make_var("i");
  auto barrier = [](const std::string& axis) { return tile_op(TileOpcode::CommBarrier, {axis}); };
  Expr row_zero = apply(Op::Eq, {Expr(p.rid), i64(0)}), column_zero = apply(Op::Eq, {Expr(p.cid), i64(0)});
  auto refused = [](const std::string& axis, const std::string& what) {
    return "error[HV0405]: 'T.comm.barrier' over axis '" + axis +
           "' is under control flow that differs between the cores of its group\nnote: the " + what +
           " depends on the core's own coordinates\nhelp: move it out of the condition or loop, or make what that "
           "depends on equal on all of them, for example by T.comm.all_reduce";
  };
  EXPECT_EQ(p.run({if_then(row_zero, barrier(kY))}), "accepted");
  EXPECT_EQ(p.run({if_then(column_zero, barrier(kX))}), "accepted");
  EXPECT_EQ(p.run({if_then(row_zero, barrier(kX))}), refused("x", "condition"));
  EXPECT_EQ(p.run({if_then(column_zero, seq({}), barrier(kAll))}), refused("all", "condition"));
  EXPECT_EQ(p.run({while_loop(column_zero, barrier(kY))}), refused("y", "condition"));
  EXPECT_EQ(p.run({for_loop(LoopKind::Serial, i, Expr(p.rid), barrier(kX))}), refused("x", "loop"));
  EXPECT_EQ(p.run({bind(v, Expr(p.rid) + i64(1)), if_then(less(Expr(v), i64(3)), barrier(kX))}),
            refused("x", "condition"));
  EXPECT_EQ(p.run({for_loop(LoopKind::Serial, i, i64(4), if_then(less(Expr(i), i64(3)), barrier(kX)))}), "accepted");
  EXPECT_EQ(p.run({for_loop(LoopKind::Persistent, i, i64(4), barrier(kAll))}), "accepted");
  for (LoopKind kind : {LoopKind::Parallel, LoopKind::Vectorized}) {
    EXPECT_EQ(p.run({for_loop(kind, i, i64(4), barrier(kAll))}),
              "error[HV0307]: 'T.comm.barrier' cannot be used at iteration scope\n"
              "note: an iteration of this loop is executed by a part of the block only\nhelp: make the loop T.serial, "
              "or move the operation out of it");
  }
}

}  // namespace
}  // namespace helve
