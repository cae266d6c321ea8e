// The exact text of every fault that the interpreter finds.
#include "arrays.h"

namespace helve::testing {
namespace {

Span line(int number) { return Span{intern_file("k.py"), number, 5, number, 9}; }

/// Runs a kernel of one block on an int32 tensor v of shape (4, 3).
std::string fault_of(const std::function<Stmt(BufferRef v)>& make) {
  const BufferRef v = param("v", kInt32, {4, 3});
  std::vector<int32_t> data(12, 1);
  return error_text(function("main", {v}, one_block({make(v)})), {tensor(data, {4, 3})});
}

/// Runs a kernel on a 2 x 2 mesh on an int32 tensor v of shape (4, 3); r and c are the core's coordinates.
std::string mesh_fault_of(const std::function<Stmt(BufferRef v, Expr r, Expr c)>& make) {
  const BufferRef v = param("v", kInt32, {4, 3});
  const VarRef r = make_var("r"), c = make_var("c");
  const MeshTensor placed{v, {{"x", 0}}, {2, 3}, {}};
  const FunctionRef f =
      mesh_function("main", mesh_xy(2, 2), {placed}, {v}, kernel({r, c}, {idx(2), idx(2)}, 128, make(v, r, c)));
  std::vector<int32_t> data(12, 1);
  return error_text(f, {tensor(data, {4, 3})});
}

Stmt set(const BufferRef& v, const Expr& value, Span span = {}) { return store(v, {idx(0), idx(0)}, value, span); }
Expr zero() { return int_imm(0, kInt32); }

std::string outside(const std::string& shape) {
  return "\nnote: " + shape + "\nhelp: guard the access or change the loop's extent";
}

TEST(Faults, AccessesOutOfBounds) {
  EXPECT_EQ(fault_of([](BufferRef v) { return set(v, load(v, {idx(4), idx(0)}, line(3))); }),
            "error[HV0210]: index 4 of dimension 0 of 'v' is outside [0, 4)\n  --> k.py:3:5" +
                outside("'v' has shape (4, 3)"));
  EXPECT_EQ(fault_of([](BufferRef v) { return store(v, {idx(0), idx(1) - idx(2)}, zero(), line(4)); }),
            "error[HV0210]: index -1 of dimension 1 of 'v' is outside [0, 3)\n  --> k.py:4:5" +
                outside("'v' has shape (4, 3)"));
  EXPECT_EQ(
      fault_of([](BufferRef v) { return tile_op(TileOpcode::Clear, {box(v, {{idx(1), 2}, {idx(2), 2}})}, line(5)); }),
      "error[HV0210]: index 3 of dimension 1 of 'v' is outside [0, 3)\n  --> k.py:5:5" +
          outside("'v' has shape (4, 3)"));
  EXPECT_EQ(fault_of([](BufferRef v) {
              return tile_op(TileOpcode::Copy,
                             {box(v, {{idx(0) - idx(1), 2}, {idx(0), 1}}), box(v, {{idx(0), 2}, {idx(0), 1}}), zero()},
                             line(6));
            }),
            "error[HV0210]: index -1 of dimension 0 of 'v' is outside [0, 4)\n  --> k.py:6:5" +
                outside("'v' has shape (4, 3)"));
  // only parameters pad
  EXPECT_EQ(fault_of([](BufferRef v) {
              const BufferRef s = shared("s", kInt32, {4, 3});
              return seq({alloc(s), tile_op(TileOpcode::Copy,
                                            {box(s, {{idx(2), 4}, {idx(0), 3}}), whole_region(v), zero()}, line(7))});
            }),
            "error[HV0210]: index 4 of dimension 0 of 's' is outside [0, 4)\n  --> k.py:7:5" +
                outside("'s' has shape (4, 3)"));
}

TEST(Faults, TileAccessesOutOfBounds) {
  const auto in_tiles = [](int64_t n, const std::function<Stmt(BufferRef x, BufferRef y, VarRef i)>& make) {
    return fault_of([&](BufferRef) {
      const BufferRef x = shared("x", kInt32, {6}, {4}), y = shared("y", kInt32, {n}, {4});
      const VarRef i = make_var("i");
      return seq({alloc(x), alloc(y), for_tiles(x, {i}, true, make(x, y, i))});
    });
  };
  EXPECT_EQ(
      in_tiles(5, [](BufferRef x, BufferRef y, VarRef i) { return tile_store(x, {i}, tile_load(y, {i}, line(3))); }),
      "error[HV0210]: index 5 of dimension 0 of 'y' is outside [0, 5)\n  --> k.py:3:5" + outside("'y' has shape (5,)"));
  EXPECT_EQ(
      in_tiles(4, [](BufferRef, BufferRef y, VarRef i) { return tile_store(y, {i}, zero(), line(4)); }),
      "error[HV0210]: index 4 of dimension 0 of 'y' is outside [0, 4)\n  --> k.py:4:5" + outside("'y' has shape (4,)"));
}

TEST(Faults, Arithmetic) {
  const char* divisor = "error[HV0208]: division by zero\n  --> k.py:3:5\nhelp: the divisor must not be 0";
  EXPECT_EQ(fault_of([](BufferRef v) {
              return set(
                  v, apply(Op::FloorDiv, {load(v, {idx(0), idx(0)}), load(v, {idx(0), idx(1)}) - int_imm(1, kInt32)},
                           line(3)));
            }),
            divisor);
  EXPECT_EQ(fault_of([](BufferRef v) {
              return set(v, cast(apply(Op::FloorMod, {idx(5), idx(1) - idx(1)}, line(3)), kInt32));
            }),
            divisor);
  EXPECT_EQ(fault_of([](BufferRef v) {
              return set(v, cast(apply(Op::Mul, {idx(int64_t{1} << 62), idx(4)}, line(4)), kInt32));
            }),
            "error[HV0701]: the result of '*' does not fit the 64 bits that an index has when it runs\n  --> k.py:4:5\n"
            "help: use smaller extents, or compute in a data type such as int64, which wraps");
  EXPECT_EQ(fault_of([](BufferRef v) {
              return set(v, apply(Op::ShiftLeft, {int_imm(1, kInt32), int_imm(-2, kInt32)}, line(5)));
            }),
            "error[HV0702]: a shift by -2\n  --> k.py:5:5\nhelp: shift by 0 or more; shift the other way for negative "
            "counts");
}

TEST(Faults, Extents) {
  const char* help = "\nhelp: an extent is 0 or more; with an extent of 0 nothing runs";
  const BufferRef small = make_buffer("s", kInt32, MemoryScope::Shared, {idx(2) - idx(3)});
  EXPECT_EQ(fault_of([&](BufferRef) { return alloc(small, line(3)); }),
            std::string("error[HV0209]: extent -1 is negative\n  --> k.py:3:5") + help);
  EXPECT_EQ(error_text(function("main", {}, kernel({make_var("b")}, {idx(2) - idx(4)}, 128, seq({}), line(4))), {}),
            std::string("error[HV0209]: extent -2 is negative\n  --> k.py:4:5") + help);
  const BufferRef large = make_buffer("s", kInt32, MemoryScope::Shared, {idx(int64_t{1} << 40), idx(int64_t{1} << 40)});
  EXPECT_EQ(fault_of([&](BufferRef) { return alloc(large, line(5)); }),
            "error[HV0623]: buffer 's' of 4611686018427387900 bytes cannot be allocated\n  --> k.py:5:5\n"
            "help: pass smaller tensors, or free memory");
}

TEST(Faults, ShapesOfTileOperations) {
  const auto mismatch = [](const std::string& what, const std::string& left, const std::string& right) {
    return "error[HV0205]: " + what + ": " + left + " and " + right +
           " differ\n  --> k.py:3:5\nhelp: make the two shapes equal, slices included";
  };
  EXPECT_EQ(fault_of([](BufferRef v) {
              return tile_op(TileOpcode::Copy,
                             {box(v, {{idx(0), 2}, {idx(0), 3}}), box(v, {{idx(0), 3}, {idx(0), 2}}), zero()}, line(3));
            }),
            mismatch("src and dst of T.copy", "(2, 3)", "(3, 2)"));
  EXPECT_EQ(fault_of([](BufferRef v) {
              return tile_op(TileOpcode::Gemm, {whole_region(v), whole_region(v), whole_region(v), false, false, false},
                             line(3));
            }),
            mismatch("A and B of T.gemm", "(4, 3)", "(4, 3)"));
  EXPECT_EQ(fault_of([](BufferRef v) {
              return tile_op(TileOpcode::Gemm, {whole_region(v), whole_region(v), whole_region(v), false, true, false},
                             line(3));
            }),
            mismatch("A @ B and C of T.gemm", "(4, 4)", "(4, 3)"));
  EXPECT_EQ(fault_of([](BufferRef v) {
              return tile_op(TileOpcode::ReduceSum,
                             {whole_region(v), box(v, {{idx(0), 4}, {idx(0), -1}}), int64_t{0}, true}, line(3));
            }),
            mismatch("the reduced src and dst of T.reduce_sum", "(3,)", "(4,)"));
  EXPECT_EQ(fault_of([](BufferRef v) {
              return tile_op(TileOpcode::ReduceMax, {whole_region(v), whole_region(v), int64_t{2}, true}, line(3));
            }),
            "error[HV0108]: 'T.reduce_max' cannot take 2 for 'dim': the region has 2 dimensions\n  --> k.py:3:5\n"
            "help: dimensions count from 0, or from -1 backwards");
}

TEST(Faults, MeshTensorCopies) {
  const auto copy_tile = [](BufferRef from, std::vector<int64_t> tile, std::vector<Expr> coord) {
    const BufferRef t = shared("t", kInt32, tile);
    return seq(
        {alloc(t), tile_op(TileOpcode::MeshTensorCopy,
                           {whole_region(std::move(from)), whole_region(t), std::move(coord), zero()}, line(3))});
  };
  EXPECT_EQ(mesh_fault_of([&](BufferRef v, Expr, Expr) { return copy_tile(v, {3, 2}, {idx(0), idx(0)}); }),
            "error[HV0205]: the tiling and the tile of T.mesh_tensor_copy: (2, 3) and (3, 2) differ\n  --> k.py:3:5\n"
            "help: make the two shapes equal, slices included");
  EXPECT_EQ(mesh_fault_of([&](BufferRef v, Expr, Expr) { return copy_tile(v, {2, 3}, {idx(0) - idx(1), idx(0)}); }),
            "error[HV0210]: index -2 of dimension 0 of 'v' is outside [0, 2)\n  --> k.py:3:5" +
                outside("'v' has shape (4, 3)"));
  EXPECT_EQ(mesh_fault_of([&](BufferRef, Expr, Expr) {
              const BufferRef s = shared("s", kInt32, {2, 3});
              return seq({alloc(s), copy_tile(s, {2, 3}, {idx(0), idx(0)})});
            }),
            "error[HV0407]: 's' has no mesh annotation\n  --> k.py:3:5\nhelp: add it to T.annotate_mesh_tensor");
  EXPECT_EQ(fault_of([&](BufferRef v) { return copy_tile(v, {2, 3}, {idx(0), idx(0)}); }),
            "error[HV0404]: 'T.mesh_tensor_copy' needs a mesh\n  --> k.py:3:5\n"
            "help: annotate the tensors with T.annotate_mesh_tensor, or name the mesh: @T.prim_func(mesh=mesh)");
}

/// A collective at line 3 from a src to a dst of these shapes on the 2 x 2 mesh.
std::string collective_fault(TileOpcode op, std::vector<int64_t> src, std::vector<int64_t> dst,
                             std::vector<TileOperand> rest) {
  return mesh_fault_of([&](BufferRef, Expr, Expr) {
    const BufferRef s = shared("s", kInt32, src), d = shared("d", kInt32, dst);
    std::vector<TileOperand> operands = {whole_region(s), whole_region(d)};
    operands.insert(operands.end(), rest.begin(), rest.end());
    return seq({alloc(s), alloc(d), tile_op(op, operands, line(3))});
  });
}

TEST(Faults, Collectives) {
  const std::string y = "y", sum = "sum", all = "all";
  const auto shape = [](const std::string& operation, const std::string& expected, const std::string& given) {
    return "error[HV0406]: '" + operation + "' gives " + expected + ", 'd' is " + given +
           "\n  --> k.py:3:5\nhelp: allocate 'd' as " + expected;
  };
  EXPECT_EQ(collective_fault(TileOpcode::CommAllGather, {3}, {3, 3}, {y, int64_t{-1}}),
            shape("T.comm.all_gather", "(3, 2)", "(3, 3)"));
  EXPECT_EQ(collective_fault(TileOpcode::CommAllGather, {3}, {5}, {y, int64_t{0}}),
            shape("T.comm.all_gather", "(6,)", "(5,)"));
  EXPECT_EQ(collective_fault(TileOpcode::CommAllReduce, {3}, {4}, {sum, y}),
            shape("T.comm.all_reduce", "(3,)", "(4,)"));
  EXPECT_EQ(collective_fault(TileOpcode::CommBroadcast, {3}, {4}, {int64_t{0}, y}),
            shape("T.comm.broadcast", "(3,)", "(4,)"));
  EXPECT_EQ(collective_fault(TileOpcode::CommPermute, {3}, {4}, {int64_t{1}, y}),
            shape("T.comm.permute", "(3,)", "(4,)"));
  EXPECT_EQ(collective_fault(TileOpcode::CommReduceScatter, {6, 2}, {3}, {sum, y, int64_t{1}}),
            shape("T.comm.reduce_scatter", "(6,)", "(3,)"));
  EXPECT_EQ(collective_fault(TileOpcode::CommReduceScatter, {6}, {6}, {sum, y, int64_t{0}}),
            shape("T.comm.reduce_scatter", "(3,)", "(6,)"));
  const auto bad = [](const std::string& text, const std::string& help) {
    return "error[HV0108]: 'T.comm." + text + "\n  --> k.py:3:5\nhelp: " + help;
  };
  EXPECT_EQ(collective_fault(TileOpcode::CommBroadcast, {3}, {3}, {int64_t{2}, y}),
            bad("broadcast' cannot take 2 for 'root': the group has 2 cores", "roots count from 0 in each group"));
  EXPECT_EQ(collective_fault(TileOpcode::CommAllToAll, {3}, {3}, {y, int64_t{0}}),
            bad("all_to_all' cannot take 0 for 'dim': 3 elements are not 2 equal parts",
                "make the extent a multiple of the number of cores in the group"));
  EXPECT_EQ(collective_fault(TileOpcode::CommAllReduce, {3}, {3}, {std::string("mean"), y}),
            bad("all_reduce' cannot take 'mean' for 'op': it is no combination", "write sum, prod, max or min"));
  EXPECT_EQ(collective_fault(TileOpcode::CommPut, {3}, {3},
                             {std::vector<Expr>{idx(0), idx(2)}, std::vector<Expr>{idx(0), idx(0)}}),
            bad("put' cannot take 2 for 'src_core': the mesh has 2 cores along axis 'y'",
                "coordinates of a core count from 0 along each axis of the mesh"));
  EXPECT_EQ(collective_fault(TileOpcode::CommBroadcast, {3}, {3}, {int64_t{0}, std::string("z")}),
            "error[HV0402]: 'z' is not an axis of the mesh\n  --> k.py:3:5\nhelp: mesh axes are: x, y, all");
  EXPECT_EQ(fault_of([](BufferRef) { return tile_op(TileOpcode::CommBarrier, {std::string("all")}, line(3)); }),
            "error[HV0404]: 'T.comm.barrier' needs a mesh\n  --> k.py:3:5\n"
            "help: annotate the tensors with T.annotate_mesh_tensor, or name the mesh: @T.prim_func(mesh=mesh)");
}

TEST(Faults, ThePlacesOfAPutAgreeOnAllCores) {
  EXPECT_EQ(
      mesh_fault_of([](BufferRef, Expr r, Expr) {
        const BufferRef s = shared("s", kInt32, {3});
        const std::vector<Expr> from = {r, idx(0)}, to = {idx(0), idx(0)};
        return seq({alloc(s), tile_op(TileOpcode::CommPut, {whole_region(s), whole_region(s), from, to}, line(3))});
      }),
      "error[HV0432]: 'src_core' of 'T.comm.put' over axis 'all' differs between the cores of its group\n"
      "  --> k.py:3:5\nnote: it is (0, 0) on core (0, 0) and (1, 0) on core (1, 0)\n"
      "help: make it equal on all of them: parameters, loop variables and coordinates along other axes are");
}

TEST(Faults, DivergentControlAroundACollective) {
  const auto barrier = [](std::string axis) { return tile_op(TileOpcode::CommBarrier, {std::move(axis)}, line(3)); };
  const auto divergent = [](const std::string& axis, const std::string& note) {
    return "error[HV0405]: 'T.comm.barrier' over axis '" + axis +
           "' is under control flow that differs between the cores of its group\n  --> k.py:3:5\nnote: " + note +
           " (k.py:2:5)\nhelp: move it out of the condition or loop, or make what that depends on equal on all of "
           "them, for example by T.comm.all_reduce";
  };
  EXPECT_EQ(mesh_fault_of([&](BufferRef, Expr, Expr c) {
              return if_then(apply(Op::Eq, {c, idx(0)}, line(2)), seq({}), barrier("y"), line(1));
            }),
            divergent("y", "the condition is true on core (0, 0) and false on core (0, 1)"));
  EXPECT_EQ(mesh_fault_of([&](BufferRef, Expr r, Expr) {
              return for_loop(LoopKind::Serial, make_var("i"), r, barrier("x"), line(2));
            }),
            divergent("x", "the loop runs 0 iterations on core (0, 0) and 1 iteration on core (1, 0)"));
  EXPECT_EQ(mesh_fault_of([&](BufferRef, Expr r, Expr c) {
              return for_loop(LoopKind::Persistent, make_var("i"), r * idx(2) + c, barrier("all"), line(2));
            }),
            divergent("all", "the loop runs 0 iterations on core (0, 0) and 1 iteration on core (0, 1)"));
  EXPECT_EQ(mesh_fault_of([&](BufferRef, Expr, Expr c) {
              const BufferRef n = shared("n", kInt32, {1});
              const Expr v = load(n, {idx(0)});
              return seq({alloc(n), store(n, {idx(0)}, cast(c, kInt32)),
                          while_loop(apply(Op::Lt, {v, int_imm(2, kInt32)}, line(2)),
                                     seq({store(n, {idx(0)}, v + int_imm(1, kInt32)), barrier("y")}))});
            }),
            divergent("y", "the condition is true on core (0, 0) and false on core (0, 1)"));
  EXPECT_EQ(mesh_fault_of([&](BufferRef, Expr r, Expr) {
              return for_loop(LoopKind::Serial, {make_var("i")}, {r + idx(3)}, {idx(2)}, barrier("x"), 1, line(2));
            }),
            divergent("x", "the loop begins at 3 on core (0, 0) and 4 on core (1, 0)"));
  EXPECT_EQ(mesh_fault_of([&](BufferRef, Expr r, Expr) {
              return for_loop(LoopKind::Persistent, {make_var("i"), make_var("j")}, {idx(0), idx(0)},
                              {r + idx(1), idx(2) - r}, barrier("x"), 1, line(2));
            }),
            divergent("x", "the loop runs 1 iteration on core (0, 0) and 2 iterations on core (1, 0)"));
}

TEST(Faults, ALaunchHasTheGridOfTheMesh) {
  const VarRef r = make_var("r"), c = make_var("c");
  const Stmt second = kernel({r, c}, {idx(2), idx(2)}, 128, seq({}), line(3));
  EXPECT_EQ(error_text(mesh_function("main", mesh_xy(2, 3), {}, {}, second), {}),
            "error[HV0401]: the grid (2, 2) is not the mesh (2, 3)\n  --> k.py:3:5\n"
            "help: write T.Kernel(2, 3), one block for each core of the mesh");
}

}  // namespace
}  // namespace helve::testing
