// Splitting of mesh kernels: what crosses a collective, what is shared by iterations, what is refused.
#include "run_pass.h"

namespace helve::testing {
namespace {

constexpr int64_t kRows = 1, kColumns = 2;

/// A mesh kernel of 1 x 2 cores with a buffer `part` (4), a buffer `parts` (4, 2) and tensors A, B (2, 8, 4).
struct Mesh {
  BufferRef a = param("A", kFloat32, {2, 8, 4}), b = param("B", kFloat32, {2, 8, 4});
  BufferRef part = shared("part", kFloat32, {4}), parts = shared("parts", kFloat32, {4, 2});
  VarRef rid = make_var("rid"), cid = make_var("cid");

  FunctionRef function(std::vector<Stmt> body, Stmt host_before = {}) const {
    body.insert(body.begin(), {alloc(part), alloc(parts)});
    Stmt launch = kernel({rid, cid}, {idx(kRows), idx(kColumns)}, 128, seq(std::move(body)));
    return mesh_function("main", mesh_xy(kRows, kColumns), {}, {a, b},
                         host_before ? seq({host_before, launch}) : launch);
  }
  Stmt over(const std::function<Stmt(const Expr&)>& body) const {
    const VarRef i = make_var("i");
    return for_loop(LoopKind::Parallel, i, idx(4), body(Expr(i)));
  }
  /// A[cid, at, :] into part
  Stmt read(const Expr& at) const {
    return tile_op(TileOpcode::Copy,
                   {Region{a, {{Expr(cid), idx(1), true}, {at, idx(1), true}, {idx(0), idx(4), false}}},
                    whole_region(part), f32(0)});
  }
  Stmt gather() const {
    return tile_op(TileOpcode::CommAllGather, {whole_region(part), whole_region(parts), std::string("y"), int64_t{-1}});
  }
  Stmt all_reduce() const {
    return tile_op(TileOpcode::CommAllReduce,
                   {whole_region(part), whole_region(part), std::string("sum"), std::string("y")});
  }
  /// B[cid, at, i] = parts[i, 0] + parts[i, 1]
  Stmt write_sum(const Expr& at) const {
    return over([&](const Expr& i) {
      return store(b, {Expr(cid), at, i}, load(parts, {i, idx(0)}) + load(parts, {i, idx(1)}));
    });
  }
  Stmt write_part(const Expr& at) const {
    return over([&](const Expr& i) { return store(b, {Expr(cid), at, i}, load(part, {i})); });
  }
};

FunctionRef gather_each(const Mesh& m, int64_t iterations, int64_t begin = 0) {
  const VarRef it = make_var("it");
  return m.function({for_loop(LoopKind::Persistent, {it}, {idx(begin)}, {idx(iterations)},
                              seq({m.read(Expr(it)), m.gather(), m.write_sum(Expr(it))}))});
}

PassOptions chunk(int64_t iterations) {
  PassOptions options;
  options.persistent_chunk = iterations;
  return options;
}

TEST(SplitMeshKernels, MovesCollectivesToTheHost) {
  expect_prints(split_mesh_kernels, gather_each(Mesh(), 8), R"(
@T.prim_func(mesh=T.Mesh((1, 2), ("x", "y")))
def main(A: T.Tensor((2, 8, 4), "float32"), B: T.Tensor((2, 8, 4), "float32")):
    part_home = T.alloc_global((4,), "float32")
    parts_home = T.alloc_global((4, 2), "float32")
    for it in T.serial(8):
        with T.Kernel(1, 2) as (rid, cid):
            part = T.alloc_shared((4,), "float32")
            T.copy(A[cid, it, :], part)
            T.copy(part, part_home)
        T.comm.all_gather(part_home, parts_home, axis="y")
        with T.Kernel(1, 2) as (rid_1, cid_1):
            parts = T.alloc_shared((4, 2), "float32")
            T.copy(parts_home, parts)
            for i in T.Parallel(4):
                B[cid_1, it, i] = parts[i, 0] + parts[i, 1]
)");
}

TEST(SplitMeshKernels, SharesOneCollectiveAmongIterations) {
  expect_prints(split_mesh_kernels, gather_each(Mesh(), 7, 1), R"(
@T.prim_func(mesh=T.Mesh((1, 2), ("x", "y")))
def main(A: T.Tensor((2, 8, 4), "float32"), B: T.Tensor((2, 8, 4), "float32")):
    part_home = T.alloc_global((3, 4), "float32")
    parts_home = T.alloc_global((3, 4, 2), "float32")
    for it_round in T.serial(3):
        with T.Kernel(1, 2) as (rid, cid):
            part = T.alloc_shared((4,), "float32")
            for turn in T.Persistent([T.min(3, 7 - it_round * 3)]):
                T.copy(A[cid, 1 + (it_round * 3 + turn), :], part)
                T.copy(part, part_home[turn, :])
        T.comm.all_gather(part_home[0:T.min(3, 7 - it_round * 3), :], parts_home[0:T.min(3, 7 - it_round * 3), :, :], axis="y")
        with T.Kernel(1, 2) as (rid_1, cid_1):
            parts = T.alloc_shared((4, 2), "float32")
            for turn_1 in T.Persistent([T.min(3, 7 - it_round * 3)]):
                T.copy(parts_home[turn_1, :, :], parts)
                for i in T.Parallel(4):
                    B[cid_1, 1 + (it_round * 3 + turn_1), i] = parts[i, 0] + parts[i, 1]
)",
                chunk(3));
}

TEST(SplitMeshKernels, ChunksOfAnySizeComputeTheSame) {
  for (int64_t iterations : {0, 1, 2, 7}) {
    for (int64_t size : {1, 2, 3, 7, 100})
      expect_same_results(split_mesh_kernels, gather_each(Mesh(), iterations, 1), chunk(size));
  }
}

TEST(SplitMeshKernels, LeavesOtherFunctionsAlone) {
  const Mesh m;
  expect_untouched(split_mesh_kernels, m.function({m.read(idx(0)), m.write_part(idx(1))}));
  const BufferRef a = param("A", kFloat32, {4});
  expect_untouched(split_mesh_kernels, function("main", {a}, one_block({store(a, {idx(0)}, f32(1))})));
}

TEST(SplitMeshKernels, KeepsWhatAPartialWriteDoesNotReach) {
  const Mesh m;
  const BufferRef kept = shared("kept", kFloat32, {4});
  const Stmt fill = m.over([&](const Expr& i) { return store(kept, {i}, load(m.a, {Expr(m.cid), idx(0), i})); });
  const Stmt use = m.over([&](const Expr& i) { return store(m.b, {Expr(m.cid), idx(0), i}, load(kept, {i})); });
  const Stmt one = store(kept, {idx(2)}, f32(9));
  for (const Stmt& partial :
       {one, if_then(less(Expr(m.cid), idx(1)), one), tile_op(TileOpcode::Fill, {box(kept, {{idx(1), 2}}), f32(9)})}) {
    expect_same_results(split_mesh_kernels, m.function({alloc(kept), fill, m.read(idx(0)), m.gather(), partial,
                                                        m.gather(), use, m.write_sum(idx(1))}));
  }
}

TEST(SplitMeshKernels, CarriesBuffersAroundNestedLoops) {
  const Mesh m;
  const VarRef s = make_var("s"), t = make_var("t");
  const Stmt twice = m.over([&](const Expr& i) { return store(m.part, {i}, load(m.part, {i}) + f32(1)); });
  // the last statement of an iteration feeds the collective of the next one
  const Stmt inner = loop(LoopKind::Serial, t, idx(2), {m.all_reduce(), twice});
  expect_same_results(split_mesh_kernels, m.function({m.read(idx(0)), loop(LoopKind::Serial, s, idx(3), {inner, twice}),
                                                      m.write_part(idx(0))}));
}

TEST(SplitMeshKernels, SplitsBothBranches) {
  const Mesh m;
  const VarRef t = make_var("t");
  const Stmt body = if_then(less(Expr(t), idx(1)), seq({m.gather(), m.write_sum(Expr(t))}), m.all_reduce());
  expect_same_results(split_mesh_kernels,
                      m.function({m.read(idx(0)), loop(LoopKind::Serial, t, idx(3), {body}), m.write_part(idx(5))}));
}

TEST(SplitMeshKernels, AChunkIsNoLargerThanItsLoop) {
  int64_t leading = 0;
  walk(split_mesh_kernels(gather_each(Mesh(), 4), chunk(100))->body, [&](const Stmt& s) {
    if (const Alloc* a = as<Alloc>(s); a && a->buffer->scope == MemoryScope::Global)
      leading = *int_value(a->buffer->shape[0]);
  });
  EXPECT_EQ(leading, 4);
}

TEST(SplitMeshKernels, SharesNothingAmongIterationsThatOnlyMemoryCounts) {
  const Mesh m;
  const VarRef it = make_var("it");
  const FunctionRef f =
      m.function({loop(LoopKind::Persistent, it, Expr(m.cid) + idx(1), {m.read(Expr(it)), m.gather()})});
  EXPECT_TRUE(structural_equal(split_mesh_kernels(f, chunk(1)), split_mesh_kernels(f, chunk(2))));
}

/// for t: [alloc(scratch)] for i: for e: scratch[e] = i; part[i] = scratch[1]  all_reduce(part)
FunctionRef scratch_in_a_split_loop(const Mesh& m, bool inside) {
  const BufferRef scratch = make_buffer("scratch", kFloat32, MemoryScope::Local, extents({2}));
  const VarRef t = make_var("t"), e = make_var("e");
  const Stmt part = m.over([&](const Expr& i) {
    const Expr value = cast(i, kFloat32);
    const Stmt write = for_loop(LoopKind::Serial, e, idx(2), store(scratch, {e}, value));
    return seq({write, store(m.part, {i}, load(scratch, {idx(1)}))});
  });
  std::vector<Stmt> body = {part, m.all_reduce()};
  if (inside) body.insert(body.begin(), alloc(scratch));
  const Stmt turns = loop(LoopKind::Serial, t, idx(2), body);
  return inside ? m.function({turns, m.write_part(idx(0))}) : m.function({alloc(scratch), turns, m.write_part(idx(0))});
}

bool has_home(const FunctionRef& f, const std::string& buffer) {
  bool found = false;
  walk(split_mesh_kernels(f, {})->body, [&](const Stmt& s) {
    const Alloc* a = as<Alloc>(s);
    found |= a && a->buffer->name == buffer + "_home";
  });
  return found;
}

TEST(SplitMeshKernels, KeepsNoBufferFromOneTurnOfALoopThatAllocatesItToTheNext) {
  const Mesh m;
  const BufferRef own = shared("own", kFloat32, {4});
  const VarRef t = make_var("t");
  const Stmt some = if_then(less(Expr(m.cid), idx(1)), store(own, {idx(0)}, f32(1)));
  const Stmt use = if_then(less(Expr(m.cid), idx(1)), store(m.b, {Expr(m.cid), idx(0), idx(0)}, load(own, {idx(0)})));
  const auto turns = [&](bool inside) {
    std::vector<Stmt> body = {some, use, m.all_reduce()};
    if (inside) body.insert(body.begin(), alloc(own));
    const Stmt repeated = loop(LoopKind::Serial, t, idx(2), body);
    return inside ? m.function({m.read(idx(0)), repeated}) : m.function({alloc(own), m.read(idx(0)), repeated});
  };
  EXPECT_FALSE(has_home(turns(true), "own"));
  EXPECT_TRUE(has_home(turns(false), "own"));
  // across a collective of the same turn it goes on
  const Stmt across = loop(LoopKind::Serial, t, idx(2), {alloc(own), some, m.all_reduce(), use});
  EXPECT_TRUE(has_home(m.function({m.read(idx(0)), across}), "own"));
  expect_same_results(split_mesh_kernels, m.function({m.read(idx(0)), across}));
}

TEST(SplitMeshKernels, KeepsNoScratchThatIsWrittenBeforeItIsRead) {
  const Mesh m;
  for (bool inside : {true, false}) EXPECT_FALSE(has_home(scratch_in_a_split_loop(m, inside), "scratch"));
}

TEST(SplitMeshKernels, SplitsTwoPersistentLoops) {
  const Mesh m;
  const VarRef s = make_var("s"), t = make_var("t");
  const FunctionRef f = m.function(
      {loop(LoopKind::Persistent, s, idx(3), {m.read(Expr(s)), m.gather(), m.write_sum(Expr(s))}), m.read(idx(1)),
       m.all_reduce(), m.write_part(idx(7)),
       loop(LoopKind::Persistent, t, idx(2), {m.read(Expr(t)), m.all_reduce(), m.write_part(Expr(t) + idx(4))})});
  for (int64_t size : {1, 2, 4}) expect_same_results(split_mesh_kernels, f, chunk(size));
}

TEST(SplitMeshKernels, DoesNotShareACollectiveOnOneBufferOfAllIterations) {
  const Mesh m;
  const BufferRef g = make_buffer("G", kFloat32, MemoryScope::Global, extents({4}));
  const VarRef it = make_var("it");
  const Stmt to_g = tile_op(TileOpcode::Copy, {whole_region(m.part), whole_region(g), f32(0)});
  const Stmt gather =
      tile_op(TileOpcode::CommAllGather, {whole_region(g), whole_region(m.parts), std::string("y"), int64_t{-1}});
  const FunctionRef f = m.function(
      {loop(LoopKind::Serial, it, idx(3), {m.read(Expr(it)), to_g, gather, m.write_sum(Expr(it))})}, alloc(g));
  expect_same_results(split_mesh_kernels, f, chunk(2));
  const VarRef p = make_var("it");
  const FunctionRef persistent = m.function(
      {loop(LoopKind::Persistent, p, idx(3), {m.read(Expr(p)), to_g, gather, m.write_sum(Expr(p))})}, alloc(g));
  expect_same_results(split_mesh_kernels, persistent, chunk(2));
}

TEST(SplitMeshKernels, SharesACollectiveWhoseRootIsOneForAllIterations) {
  const Mesh m;
  const VarRef it = make_var("it");
  const Stmt broadcast =
      tile_op(TileOpcode::CommBroadcast, {whole_region(m.part), whole_region(m.part), Expr(m.rid), std::string("y")});
  const FunctionRef f =
      m.function({loop(LoopKind::Persistent, it, idx(5), {m.read(Expr(it)), broadcast, m.write_part(Expr(it))})});
  size_t rank = 0;
  walk(split_mesh_kernels(f, chunk(2))->body, [&](const Stmt& s) {
    const TileOp* op = as<TileOp>(s);
    if (op && op->row().is_collective()) rank = op->region(0).ranges.size();
  });
  EXPECT_EQ(rank, 2u);
  for (int64_t size : {1, 2, 8}) expect_same_results(split_mesh_kernels, f, chunk(size));
}

TEST(SplitMeshKernels, DimensionsOfSharedCollectivesStayTheirOwn) {
  const Mesh m;
  const BufferRef rows = shared("rows", kFloat32, {2, 4}), wide = shared("wide", kFloat32, {8});
  for (int64_t dim : {0, -2}) {
    const VarRef it = make_var("it");
    const Stmt to_rows =
        tile_op(TileOpcode::CommAllGather, {whole_region(m.part), whole_region(rows), std::string("y"), dim});
    const Stmt to_wide = tile_op(TileOpcode::CommAllGather,
                                 {whole_region(m.part), whole_region(wide), std::string("y"), dim == 0 ? dim : -1});
    const Stmt back = tile_op(TileOpcode::CommReduceScatter, {whole_region(wide), whole_region(m.part),
                                                              std::string("max"), std::string("y"), int64_t{0}});
    const Stmt swap =
        tile_op(TileOpcode::CommAllToAll, {whole_region(rows), whole_region(rows), std::string("y"), int64_t{0}});
    const Stmt write = m.over([&](const Expr& i) {
      return store(m.b, {Expr(m.cid), Expr(it), i},
                   load(rows, {idx(0), i}) * f32(3) + load(rows, {idx(1), i}) + load(m.part, {i}));
    });
    const FunctionRef f =
        m.function({alloc(rows), alloc(wide),
                    loop(LoopKind::Persistent, it, idx(5), {m.read(Expr(it)), to_rows, to_wide, swap, back, write})});
    for (int64_t size : {1, 2, 8}) expect_same_results(split_mesh_kernels, f, chunk(size));
  }
}

TEST(SplitMeshKernels, WritesScalarsIntoTheirUses) {
  const Mesh m;
  const VarRef t = make_var("t"), v = make_var("v"), w = make_var("w");
  const FunctionRef f = m.function({loop(
      LoopKind::Serial, t, idx(3),
      {bind(v, Expr(t) * idx(2)), m.read(Expr(v)), m.gather(), bind(w, Expr(v) + idx(1)), m.write_sum(Expr(w))})});
  expect_same_results(split_mesh_kernels, f);
}

TEST(SplitMeshKernels, RefusesALoadedScalarAcrossACollective) {
  const Mesh m;
  const VarRef v = make_var("v", kFloat32);
  const Stmt use = store(m.b, {Expr(m.cid), idx(0), idx(0)}, Expr(v) + f32(1));
  EXPECT_EQ(refusal(split_mesh_kernels, m.function({m.read(idx(0)), bind(v, load(m.part, {idx(0)})), m.gather(), use})),
            "error[HV0408]: 'v' cannot be kept across 'T.comm.all_gather'\n"
            "note: the value is loaded here\n"
            "help: load 'v' again after the collective, or keep it in a buffer");
  // used before the collective it is an ordinary scalar
  expect_same_results(split_mesh_kernels, m.function({m.read(idx(0)), bind(v, load(m.part, {idx(0)})), use, m.gather(),
                                                      m.write_sum(idx(1))}));
}

TEST(SplitMeshKernels, LeavesControlFlowByMemoryToTheHost) {
  const Mesh m;
  const Expr positive = less(f32(0), load(m.part, {idx(0)}));
  expect_prints(split_mesh_kernels, m.function({m.read(idx(0)), while_loop(positive, m.all_reduce())}), R"(
@T.prim_func(mesh=T.Mesh((1, 2), ("x", "y")))
def main(A: T.Tensor((2, 8, 4), "float32"), B: T.Tensor((2, 8, 4), "float32")):
    control = T.alloc_global((1,), "bool")
    part_home = T.alloc_global((4,), "float32")
    with T.Kernel(1, 2) as (rid, cid):
        part = T.alloc_shared((4,), "float32")
        T.copy(A[cid, 0, :], part)
        control[0] = 0.0 < part[0]
        T.copy(part, part_home)
    while control[0]:
        T.comm.all_reduce(part_home, part_home, axis="y")
        with T.Kernel(1, 2) as (rid_1, cid_1):
            part_1 = T.alloc_shared((4,), "float32")
            T.copy(part_home, part_1)
            control[0] = 0.0 < part_1[0]
)");
  // One collective for several iterations would need one control value for all of them.
  const VarRef it = make_var("it");
  const FunctionRef each =
      m.function({for_loop(LoopKind::Persistent, it, idx(4), seq({m.read(Expr(it)), if_then(positive, m.gather())}))});
  EXPECT_TRUE(structural_equal(split_mesh_kernels(each, chunk(1)), split_mesh_kernels(each, chunk(2))));
}

TEST(SplitMeshKernels, LeavesControlFlowByCoordinatesToTheHost) {
  const Mesh m;
  const VarRef t = make_var("t");
  // Alike along the axis of the collective, different along the other one.
  expect_prints(split_mesh_kernels,
                m.function({m.read(idx(0)), loop(LoopKind::Serial, t, Expr(m.rid), {m.all_reduce()})}), R"(
@T.prim_func(mesh=T.Mesh((1, 2), ("x", "y")))
def main(A: T.Tensor((2, 8, 4), "float32"), B: T.Tensor((2, 8, 4), "float32")):
    control = T.alloc_global((1,), "int64")
    part_home = T.alloc_global((4,), "float32")
    with T.Kernel(1, 2) as (rid, cid):
        part = T.alloc_shared((4,), "float32")
        T.copy(A[cid, 0, :], part)
        control[0] = T.cast(rid, "int64")
        T.copy(part, part_home)
    for t in T.serial(T.cast(control[0], "index")):
        T.comm.all_reduce(part_home, part_home, axis="y")
)");
}

TEST(SplitMeshKernels, RefusesOperandsThatTheHostDoesNotKnow) {
  const Mesh m;
  const Region one{m.part, {{Expr(m.rid), idx(1), false}}};
  const Stmt sum = tile_op(TileOpcode::CommAllReduce, {one, one, std::string("sum"), std::string("y")});
  EXPECT_EQ(refusal(split_mesh_kernels, m.function({m.read(idx(0)), sum})),
            "error[HV0409]: 'T.comm.all_reduce' depends on a value that is known only inside the kernel\n"
            "note: this value depends on the core\n"
            "help: in operands of a collective use parameters, extents and loop variables, or compile for "
            "target=\"interp\"");
}

}  // namespace
}  // namespace helve::testing
