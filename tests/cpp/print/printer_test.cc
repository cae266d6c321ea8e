// Text of functions and statements.
#include "helve/print/printer.h"

#include <gtest/gtest.h>

#include "ir/tensor/programs/rms_norm.h"

namespace helve {
namespace {

Expr i64(int64_t v) { return int_imm(v); }
Expr f32(double v) { return float_imm(v, kFloat32); }
BufferRef buffer(const char* name, std::vector<Expr> shape, MemoryScope scope = MemoryScope::Param,
                 std::vector<int64_t> tile = {}, std::vector<Expr> strides = {}) {
  return make_buffer(name, kFloat32, scope, std::move(shape), std::move(tile), std::move(strides));
}
BufferRef typed_buffer(const char* name, const char* dtype, std::vector<Expr> shape = {int_imm(8)}) {
  return make_buffer(name, *parse_dtype(dtype), MemoryScope::Param, std::move(shape));
}

TEST(Print, AMeshFunction) {
  VarRef n = make_var("N"), rid = make_var("rid"), cid = make_var("cid"), b = make_var("b"), i = make_var("i"),
         j = make_var("j");
  BufferRef a = buffer("A", {i64(100), Expr(n)});
  BufferRef x = buffer("X", {i64(32), i64(256)}, MemoryScope::Shared, {32, 32});
  BufferRef part = buffer("part", {i64(32)}, MemoryScope::Shared, {32});
  BufferRef parts = buffer("parts", {i64(32), i64(4)}, MemoryScope::Shared, {16, 4});
  Stmt tiles = for_tiles(x, {i, j}, true,
                         tile_store(x, {Expr(i), Expr(j)},
                                    apply(Op::Mul, {tile_load(x, {Expr(i), Expr(j)}), tile_load(part, {Expr(i)})})));
  Stmt loop =
      for_loop(LoopKind::Persistent, {b}, {i64(0)}, {i64(3)},
               seq({tile_op(TileOpcode::Fill, {whole_region(x), f32(0)}),
                    tile_op(TileOpcode::MeshTensorCopy,
                            {whole_region(a), whole_region(x), std::vector<Expr>{Expr(b), i64(0)}, i64(0)}),
                    tiles, tile_op(TileOpcode::ReduceSum, {whole_region(x), whole_region(part), int64_t{1}, true}),
                    tile_op(TileOpcode::CommAllGather,
                            {whole_region(part), whole_region(parts), std::string("y"), int64_t{-1}})}));
  Ref<Function> f = make_ref<Function>();
  f->name = "main";
  f->dims = {n};
  f->params = {a};
  f->mesh = MeshShape{{2, 4}, {"x", "y"}};
  f->mesh_tensors = {{a, {{"x", 0}, {"y", 1}}, {32, 256}, {}}};
  f->body = kernel({rid, cid}, {i64(2), i64(4)}, 128, seq({alloc(x), alloc(part), alloc(parts), loop}));
  EXPECT_EQ(print(FunctionRef(f)), R"(N = T.dyn("N")

@T.prim_func
def main(A: T.Tensor((100, N), "float32")):
    T.annotate_mesh_tensor({A: {"sharding": {"x": 0, "y": 1}, "tiling": [32, 256]}}, nrows=2, ncols=4)
    with T.Kernel(2, 4) as (rid, cid):
        X = T.alloc_shared_tiles((32, 256), "float32")
        part = T.alloc_shared_tiles((32,), "float32")
        parts = T.alloc_shared_tiles((32, 4), "float32", tile_size=(16, 4))
        for b in T.Persistent([3]):
            T.fill(X, 0.0)
            T.mesh_tensor_copy(A, X, coord=[b, 0])
            for i, j in T.foreach_tiles(X, parallel=True):
                X[i, j] = X[i, j] * part[i]
            T.reduce_sum(X, part, dim=1)
            T.comm.all_gather(part, parts, axis="y")
)");
  f->mesh = MeshShape{{2, 4}, {"r", "c"}};
  f->mesh_tensors = {{a, {{"c", 1}}, {32, 256}, {}}};
  EXPECT_TRUE(print(FunctionRef(f)).starts_with(R"(N = T.dyn("N")

@T.prim_func(mesh=T.Mesh((2, 4), ("r", "c")))
def main(A: T.Tensor((100, N), "float32")):
    T.annotate_mesh_tensor({A: {"sharding": {"c": 1}, "tiling": [32, 256]}})
    with)"));
  f->mesh_tensors.clear();
  f->mesh = MeshShape{{5}, {"x"}};
  EXPECT_TRUE(print(FunctionRef(f)).find("@T.prim_func(mesh=T.Mesh((5,), (\"x\",)))\n") != std::string::npos);
  EXPECT_EQ(print(FunctionRef(f)).find("annotate"), std::string::npos);
}

TEST(Print, TheStandardProgram) {
  EXPECT_EQ(print(testing::rms_norm_splitk(40, 50, 8, 16, 2, 3)), R"(@T.prim_func
def main(A: T.Tensor((40, 50), "float32"), B: T.Tensor((40, 50), "float32")):
    T.annotate_mesh_tensor({A: {"sharding": {"x": 0, "y": 1}, "tiling": [8, 16]}, B: {"sharding": {"x": 0, "y": 1}, "tiling": [8, 16]}}, nrows=2, ncols=3)
    with T.Kernel(2, 3) as (rid, cid):
        A_tile = T.alloc_shared_tiles((8, 16), "float32")
        acc = T.alloc_shared_tiles((8, 16), "float32")
        part = T.alloc_shared_tiles((8,), "float32")
        parts = T.alloc_shared_tiles((8, 3), "float32")
        for bx in T.Persistent([3]):
            T.fill(acc, 0.0)
            for bk in T.serial(2):
                T.mesh_tensor_copy(A, A_tile, coord=[bx, bk])
                for i, j in T.foreach_tiles(A_tile, parallel=True):
                    acc[i, j] = acc[i, j] + A_tile[i, j] * A_tile[i, j]
            T.reduce_sum(acc, part, dim=1)
            T.comm.all_gather(part, parts, axis="y")
            T.reduce_sum(parts, part, dim=1)
            for i_1 in T.foreach_tiles(part, parallel=True):
                part[i_1] = T.rsqrt(part[i_1] / 50.0 + 1e-06)
            for bk_1 in T.serial(2):
                T.mesh_tensor_copy(A, A_tile, coord=[bx, bk_1])
                for i_2, j_1 in T.foreach_tiles(A_tile, parallel=True):
                    A_tile[i_2, j_1] = A_tile[i_2, j_1] * part[i_2]
                T.mesh_tensor_copy(A_tile, B, coord=[bx, bk_1])
)");
}

TEST(Print, ParametersAndAnEmptyBody) {
  VarRef m = make_var("M"), ld = make_var("ld");
  Ref<Function> f = make_ref<Function>();
  f->name = "T";
  f->dims = {m, ld};
  f->params = {buffer("A", {Expr(m), i64(3)}, MemoryScope::Param, {}, {Expr(ld), i64(1)}),
               make_var("s", kFloat32),
               make_var("n"),
               make_var("flag", kBool),
               buffer("Z", {}),
               typed_buffer("H", "bfloat16")};
  f->body = seq({});
  EXPECT_EQ(print(FunctionRef(f)), R"(M = T.dyn("M")
ld = T.dyn("ld")

@T.prim_func
def T_1(A: T.Tensor((M, 3), "float32", strides=(ld, 1)), s: T.float32, n: T.index, flag: T.bool, Z: T.Tensor((), "float32"), H: T.Tensor((8,), "bfloat16")):
    pass
)");
  f->mesh = MeshShape{{2, 4}, {"x", "y"}};
  f->mesh_tensors = {{std::get<BufferRef>(f->params[0]), {{"x", 0}}, {1, 3}, {}}};
  EXPECT_TRUE(print(FunctionRef(f)).ends_with("\"tiling\": [1, 3]}}, nrows=2, ncols=4)\n"));
}

TEST(Print, Loops) {
  VarRef i = make_var("i"), j = make_var("j"), n = make_var("n"), m = make_var("m");
  Stmt none = seq({});
  auto loop = [&](LoopKind kind, Expr begin, Expr extent, int stages = 1) {
    return print(for_loop(kind, {i}, {begin}, {extent}, none, stages));
  };
  EXPECT_EQ(loop(LoopKind::Serial, i64(0), i64(8)), "for i in T.serial(8):\n    pass\n");
  EXPECT_EQ(loop(LoopKind::Serial, i64(3), i64(8)), "for i in T.serial(3, 11):\n    pass\n");
  EXPECT_EQ(loop(LoopKind::Serial, i64(0), Expr(n)), "for i in T.serial(n):\n    pass\n");
  EXPECT_EQ(loop(LoopKind::Unroll, Expr(m), Expr(n)), "for i in T.unroll(m, m + n):\n    pass\n");
  EXPECT_EQ(loop(LoopKind::Vectorized, Expr(m), Expr(n) - Expr(m)), "for i in T.vectorized(m, n):\n    pass\n");
  // An extent of (m + n) - m reads back only in full: `m, m + n` is the extent n.
  EXPECT_EQ(loop(LoopKind::Serial, Expr(m), (Expr(m) + Expr(n)) - Expr(m)),
            "for i in T.serial(m, m + (m + n - m)):\n    pass\n");
  EXPECT_EQ(loop(LoopKind::Pipelined, i64(0), Expr(n), 2), "for i in T.Pipelined(n, num_stages=2):\n    pass\n");
  EXPECT_EQ(print(for_loop(LoopKind::Parallel, {i, j}, {i64(1), i64(0)}, {i64(4), Expr(n)}, none)),
            "for i, j in T.Parallel((1, 5), n):\n    pass\n");
  EXPECT_EQ(print(for_loop(LoopKind::Persistent, {i, j}, {i64(0), Expr(m)}, {i64(4), Expr(n)}, none)),
            "for i, j in T.Persistent([4, (m, m + n)]):\n    pass\n");
}

TEST(Print, KernelsAndBranches) {
  VarRef bx = make_var("bx");
  BufferRef a = buffer("A", {i64(8)});
  auto set = [&](double v) { return store(a, {i64(0)}, f32(v)); };
  Stmt branch = if_then(less(Expr(bx), i64(3)), set(1), if_then(less(Expr(bx), i64(5)), set(2), set(3)));
  EXPECT_EQ(print(kernel({bx}, {i64(8)}, 64, branch)), R"(with T.Kernel(8, threads=64) as bx:
    if bx < 3:
        A[0] = 1.0
    elif bx < 5:
        A[0] = 2.0
    else:
        A[0] = 3.0
)");
  EXPECT_EQ(print(if_then(bool_imm(true), seq({}), seq({}))), "if T.bool(True):\n    pass\nelse:\n    pass\n");
  EXPECT_EQ(print(while_loop(less(load(a, {i64(0)}), f32(4)), set(5))), "while A[0] < 4.0:\n    A[0] = 5.0\n");
}

TEST(Print, OneVariableOfTwoScopesHasANameInEach) {
  BufferRef a = buffer("A", {i64(8)});
  VarRef i = make_var("i"), v = make_var("v");
  Stmt loop = for_loop(LoopKind::Serial, i, i64(8),
                       seq({bind(v, Expr(i) + i64(1)), store(a, {Expr(i)}, cast(Expr(v), kFloat32))}));
  EXPECT_EQ(print(seq({loop, loop})), R"(for i in T.serial(8):
    v = i + 1
    A[i] = T.cast(v, "float32")
for i_1 in T.serial(8):
    v_1 = i_1 + 1
    A[i_1] = T.cast(v_1, "float32")
)");
}

TEST(Print, Allocations) {
  auto alloc_text = [](MemoryScope scope, std::vector<Expr> shape, std::vector<int64_t> tile = {}) {
    return print(alloc(buffer("X", std::move(shape), scope, std::move(tile))));
  };
  EXPECT_EQ(alloc_text(MemoryScope::Global, {i64(64)}), "X = T.alloc_global((64,), \"float32\")\n");
  EXPECT_EQ(alloc_text(MemoryScope::Shared, {i64(32), i64(1)}), "X = T.alloc_shared((32, 1), \"float32\")\n");
  EXPECT_EQ(alloc_text(MemoryScope::Fragment, {i64(32)}), "X = T.alloc_fragment((32,), \"float32\")\n");
  EXPECT_EQ(alloc_text(MemoryScope::Local, {}), "X = T.alloc_local((), \"float32\")\n");
  EXPECT_EQ(alloc_text(MemoryScope::Shared, {i64(40)}, {32}), "X = T.alloc_shared_tiles((40,), \"float32\")\n");
  EXPECT_EQ(alloc_text(MemoryScope::Shared, {i64(40)}, {8}),
            "X = T.alloc_shared_tiles((40,), \"float32\", tile_size=(8,))\n");
  EXPECT_EQ(alloc_text(MemoryScope::Shared, {i64(2), i64(40), i64(50)}, {1, 32, 32}),
            "X = T.alloc_shared_tiles((2, 40, 50), \"float32\")\n");
  EXPECT_EQ(alloc_text(MemoryScope::Shared, {i64(2), i64(40), i64(50)}, {1, 16, 32}),
            "X = T.alloc_shared_tiles((2, 40, 50), \"float32\", tile_size=(1, 16, 32))\n");
}

TEST(Print, Regions) {
  VarRef k = make_var("k");
  BufferRef a = buffer("A", {i64(40), i64(50)}), b = buffer("B", {i64(32)});
  auto text = [&](Range first, Range second) {
    return print(tile_op(TileOpcode::Copy, {Region{a, {first, second}}, whole_region(b), i64(0)}));
  };
  EXPECT_EQ(text({i64(0), i64(40), false}, {i64(0), i64(50), false}), "T.copy(A, B)\n");
  EXPECT_EQ(text({i64(0), i64(32), false}, {Expr(k), i64(1), true}), "T.copy(A[0:32, k], B)\n");
  EXPECT_EQ(text({Expr(k) * i64(32), i64(32), false}, {i64(0), i64(50), false}),
            "T.copy(A[k * 32:k * 32 + 32, :], B)\n");
  EXPECT_EQ(text({i64(8), i64(32), false}, {i64(3), i64(1), false}), "T.copy(A[8:40, 3:4], B)\n");
  EXPECT_EQ(text({i64(0), Expr(k), false}, {i64(0), i64(0), false}), "T.copy(A[0:k, 0:0], B)\n");
}

TEST(Print, OperandsLeaveOutDefaults) {
  BufferRef a = buffer("A", {i64(4), i64(4)}), b = buffer("B", {i64(4), i64(4)}),
            h = typed_buffer("H", "float16", {i64(4), i64(4)});
  auto copy = [&](BufferRef dst, Expr pad) {
    return print(tile_op(TileOpcode::Copy, {whole_region(a), whole_region(dst), pad}));
  };
  EXPECT_EQ(copy(b, f32(0)), "T.copy(A, B)\n");
  EXPECT_EQ(copy(b, f32(1.5)), "T.copy(A, B, pad=1.5)\n");
  EXPECT_EQ(copy(b, f32(-0.0)), "T.copy(A, B, pad=-0.0)\n");
  EXPECT_EQ(copy(h, i64(0)), "T.copy(A, H)\n");
  EXPECT_EQ(copy(b, extreme_imm(kFloat32, true)), "T.copy(A, B, pad=-T.infinity(\"float32\"))\n");
  EXPECT_EQ(print(tile_op(TileOpcode::Gemm, {whole_region(a), whole_region(b), whole_region(a), false, true, true})),
            "T.gemm(A, B, A, transpose_B=True, clear=True)\n");
  EXPECT_EQ(print(tile_op(TileOpcode::CommBroadcast, {whole_region(a), whole_region(b), int64_t{3}, std::string("x")})),
            "T.comm.broadcast(A, B, 3, axis=\"x\")\n");
  const VarRef k = make_var("k"), i = make_var("i");
  const auto permute = [&](TileOperand shift, TileOperand source) {
    return print(tile_op(TileOpcode::CommPermute, {whole_region(a), whole_region(b), shift, std::string("x"), source}));
  };
  EXPECT_EQ(permute(Expr(i) * i64(2), false), "T.comm.permute(A, B, shift=i * 2, axis=\"x\")\n");
  EXPECT_EQ(permute(int64_t{1}, IndexMap{k, Expr(k) - Expr(i)}),
            "T.comm.permute(A, B, axis=\"x\", source=lambda k: k - i)\n");
  EXPECT_EQ(print(tile_op(TileOpcode::CommBarrier, {std::string("x, z")})), "T.comm.barrier(axis=(\"x\", \"z\"))\n");
  EXPECT_EQ(print(tile_op(TileOpcode::CommPut, {whole_region(a), whole_region(b), std::vector<Expr>{i64(0), i64(1)},
                                                std::vector<Expr>{i64(1), i64(1)}})),
            "T.comm.put(A, B, src_core=[0, 1], dst_core=[1, 1])\n");
  EXPECT_EQ(print(tile_op(TileOpcode::CommBarrier, {std::string("all")})), "T.comm.barrier()\n");
}

TEST(Print, EveryOperationPrintsItsName) {
  BufferRef a = buffer("A", {i64(4)});
  const VarRef k = make_var("k");
  for (const TileOpRow& row : tile_op_rows()) {
    std::vector<TileOperand> operands;
    for (const TileParam& p : row.params) {
      switch (p.kind) {
        case ParamKind::In:
        case ParamKind::Out:
        case ParamKind::InOut:
        case ParamKind::Source:
        case ParamKind::Barriers: operands.emplace_back(whole_region(a)); break;
        case ParamKind::Value: operands.emplace_back(f32(7)); break;
        case ParamKind::Coord: operands.emplace_back(std::vector<Expr>{i64(1)}); break;
        case ParamKind::Index:
        case ParamKind::Integer: operands.emplace_back(int64_t{77}); break;
        case ParamKind::Map: operands.emplace_back(IndexMap{k, Expr(k) - i64(1)}); break;
        case ParamKind::Flag: operands.emplace_back(!p.required() && !std::get<bool>(p.fallback)); break;
        case ParamKind::Text:
        case ParamKind::Axes: operands.emplace_back(std::string("q")); break;
        case ParamKind::Layout: operands.emplace_back(Layout({{4, 1, axes::tx()}})); break;
      }
    }
    const std::string text = print(tile_op(row.op, operands));
    EXPECT_TRUE(text.starts_with("T." + std::string(row.python) + "(")) << text;
    for (const TileParam& p : row.params) {  // nothing equals its default here, so nothing is left out
      const bool printed = text.find(std::string(p.name) + "=") != std::string::npos;
      EXPECT_TRUE(p.required() || printed) << text;
    }
  }
}

TEST(Print, NamesAreUniqueIdentifiers) {
  VarRef a = make_var("i"), b = make_var("i"), c = make_var("i_1"), d = make_var("T"), e = make_var("for"),
         f = make_var(""), g = make_var("2x"), h = make_var("a.b"), k = make_var("__k"), l = make_var("min");
  Expr sum = i64(0);
  for (const VarRef& v : {a, b, c, d, e, f, g, h, k, l, a}) sum = sum + Expr(v);
  EXPECT_EQ(print_expr(sum), "0 + i + i_1 + i_1_1 + T_1 + for_1 + v + v2x + a_b + _k + min_1 + i");
}

TEST(Print, ConstantsOfBindsAndStores) {
  BufferRef a = buffer("A", {i64(8)}), u = typed_buffer("U", "uint8"), h = typed_buffer("H", "float16");
  EXPECT_EQ(print(bind(make_var("v"), i64(3))), "v = T.index(3)\n");
  EXPECT_EQ(print(bind(make_var("v", kFloat32), f32(3))), "v = T.float32(3.0)\n");
  EXPECT_EQ(print(store(a, {i64(2)}, i64(3))), "A[2] = 3.0\n");
  EXPECT_EQ(print(store(u, {i64(2)}, i64(3))), "U[2] = 3\n");
  EXPECT_EQ(print(store(h, {i64(0)}, load(a, {i64(1)}))), "H[0] = T.cast(A[1], \"float16\")\n");
}

TEST(Print, NotesUnderline) {
  VarRef i = make_var("i");
  BufferRef a = buffer("A", {i64(8)}), b = buffer("B", {i64(8)});
  Expr index = Expr(i) + i64(1);
  Expr value = load(b, {index});
  Stmt s = store(a, {Expr(i)}, value * f32(2));
  Stmt loop = for_loop(LoopKind::Serial, i, i64(7), s);
  PrintOptions options;
  options.notes = {{value.get(), "reads 1..7"}, {index.get(), "the\nindex"}, {loop.get(), "the loop"}, {i.get(), "i"}};
  EXPECT_EQ(print(loop, options), R"(for i in T.serial(7):
# ^^^^^^^^^^^^^^^^^^^ the loop
    A[i] = B[i + 1] * 2.0
    # ^ i
    #        ^ i
    #        ^^^^^ the index
    #      ^^^^^^^^ reads 1..7
)");
  options.notes = {{s.get(), "writes"}};
  EXPECT_EQ(print(s, options), "A[i] = B[i + 1] * 2.0\n# ^^^^^^^^^^^^^^^^^^^ writes\n");
}

}  // namespace
}  // namespace helve
