// Tile loops and block loops as element loops and serial loops.
#include "helve/ir/tensor/buffer_layout.h"
#include "helve/layout/notation.h"
#include "run_pass.h"

namespace helve::testing {
namespace {

Stmt copy_whole(const BufferRef& src, const BufferRef& dst) {
  return tile_op(TileOpcode::Copy, {whole_region(src), whole_region(dst), f32(0)});
}

TEST(LowerTileLoops, WalksRowsThroughTheirTiles) {
  const BufferRef out = param("out", kFloat32, {7, 5});
  const BufferRef x = shared("X", kFloat32, {7, 5}, {4, 2}), v = shared("v", kFloat32, {7}, {4});
  const VarRef i = make_var("i"), j = make_var("j");
  const Stmt tiles = for_tiles(x, {i, j}, true, tile_store(x, {i, j}, tile_load(x, {i, j}) * tile_load(v, {i})));

  const VarRef a = make_var("a"), b = make_var("b"), r = make_var("r"), c = make_var("c");
  const Expr row = Expr(a) * idx(4) + Expr(r), column = Expr(b) * idx(2) + Expr(c);
  Stmt nest = store(x, {row, column}, load(x, {row, column}) * load(v, {row}));
  nest = for_loop(LoopKind::Parallel, c, min(idx(2), idx(5) - Expr(b) * idx(2)), nest);
  nest = for_loop(LoopKind::Parallel, b, ceil_div(idx(5), idx(2)), nest);
  nest = for_loop(LoopKind::Parallel, r, min(idx(4), idx(7) - Expr(a) * idx(4)), nest);
  nest = for_loop(LoopKind::Parallel, a, ceil_div(idx(7), idx(4)), nest);
  const auto around = [&](const Stmt& s) {
    return function("main", {out}, one_block({alloc(x), alloc(v), s, copy_whole(x, out)}));
  };
  expect_becomes(lower_tile_loops, around(tiles), around(nest));
  expect_untouched(lower_tile_loops, around(nest));
}

TEST(LowerTileLoops, AlignsOperandsByTheirLeadingDimensions) {
  const BufferRef out = param("out", kFloat32, {2, 5, 3});
  for (const std::vector<int64_t>& tile :
       std::vector<std::vector<int64_t>>{{1, 2, 2}, {2, 3, 2}, {1, 5, 3}, {1, 1, 1}}) {
    const BufferRef x = shared("X", kFloat32, {2, 5, 3}, tile);
    const BufferRef m = shared("m", kFloat32, {2, 5}, {tile[0], tile[1]}), v = shared("v", kFloat32, {2}, {tile[0]});
    const BufferRef column = shared("k", kFloat32, {2, 5, 1}, {tile[0], tile[1], 1});
    const VarRef p = make_var("p"), q = make_var("q"), i = make_var("i"), j = make_var("j"), k = make_var("k");
    const Expr at = cast(Expr(p) * idx(10) + Expr(q), kFloat32);
    const Stmt init =
        serial(p, idx(2),
               {store(v, {Expr(p)}, cast(Expr(p) * idx(1000), kFloat32)),
                serial(q, idx(5),
                       {store(m, {Expr(p), Expr(q)}, at), store(column, {Expr(p), Expr(q), idx(0)}, at * f32(100))})});
    const Expr value = tile_load(m, {i, j}) + tile_load(v, {i}) + tile_load(column, {i, j, idx(0)});
    const FunctionRef f =
        function("main", {out},
                 one_block({alloc(x), alloc(m), alloc(v), alloc(column), init,
                            for_tiles(x, {i, j, k}, true, tile_store(x, {i, j, k}, value)), copy_whole(x, out)}));
    expect_same_results(lower_tile_loops, f);
    expect_same_on_all_stages(f);
  }
}

TEST(LowerTileOps, FillsBecomeLoops) {
  const BufferRef out = param("out", kFloat32, {3, 4});
  const VarRef i = make_var("i"), j = make_var("j");
  const FunctionRef before =
      function("main", {out}, one_block({tile_op(TileOpcode::Fill, {whole_region(out), f32(2)})}));
  const FunctionRef after = function(
      "main", {out},
      one_block(
          {loop(LoopKind::Parallel, i, idx(3), {loop(LoopKind::Parallel, j, idx(4), {store(out, {i, j}, f32(2))})})}));
  expect_becomes(lower_tile_ops, before, after);
  expect_untouched(lower_tile_ops, after);
}

/// B = A through shared memory in blocks of 8, for A of `extent` elements, with `blocks` iterations.
FunctionRef staged_copy(const BufferRef& a, const BufferRef& b, std::vector<VarRef> dims, Expr blocks) {
  const BufferRef x = shared("X", kFloat32, {8}, {4});
  const VarRef t = make_var("t");
  const auto block = [&](const BufferRef& buffer) { return box(buffer, {{Expr(t) * idx(8), 8}}); };
  return dynamic_function(
      "main", std::move(dims), {a, b},
      one_block({alloc(x), loop(LoopKind::Serial, t, std::move(blocks),
                                {tile_op(TileOpcode::Copy, {block(a), whole_region(x), f32(-1)}),
                                 tile_op(TileOpcode::Copy, {whole_region(x), block(b), f32(0)})})}));
}

int64_t count_conditions(const FunctionRef& f) {
  int64_t conditions = 0;
  walk(f->body, [&](const Stmt& s) { conditions += s->kind == StmtKind::If; });
  return conditions;
}

TEST(LowerTileOps, FullTilesNeedNoTest) {
  const BufferRef a = param("A", kFloat32, {32}), b = param("B", kFloat32, {32});
  EXPECT_EQ(count_conditions(lower_tile_ops(staged_copy(a, b, {}, idx(4)), {})), 0);
  EXPECT_EQ(count_conditions(lower_tile_ops(staged_copy(a, b, {}, idx(5)), {})), 1)
      << "the fifth block lies past the end";
  for (int64_t blocks : {0, 4, 5, 6}) expect_same_on_all_stages(staged_copy(a, b, {}, idx(blocks)));
}

TEST(LowerTileOps, DynamicExtentsOnAllStages) {
  const VarRef n = make_var("n");
  const auto tensor = [&](const char* name) { return make_buffer(name, kFloat32, MemoryScope::Param, {Expr(n)}); };
  const FunctionRef f = staged_copy(tensor("A"), tensor("B"), {n}, ceil_div(Expr(n), idx(8)));
  for (int64_t extent : {0, 1, 7, 8, 9, 33}) expect_same_on_all_stages(f, {}, {{n.get(), extent}});
}

TEST(LowerBlockLoops, PipelinedIsSerial) {
  const BufferRef out = param("out", kFloat32, {9});
  const VarRef i = make_var("i"), n = make_var("n");
  const auto with = [&](LoopKind kind, int stages) {
    const VarRef t = make_var("t");
    return function("main", {out},
                    one_block({for_loop(kind, {t}, {idx(2)}, {idx(5)}, store(out, {Expr(t)}, f32(1)), stages)}));
  };
  expect_becomes(lower_block_loops, with(LoopKind::Pipelined, 3), with(LoopKind::Serial, 1));
  expect_untouched(lower_block_loops, with(LoopKind::Serial, 1));
}

/// out[i, j] counts the iterations of a persistent loop over begins + extents; who[...] is the block that ran them.
FunctionRef persistent(const std::vector<int64_t>& grid, const std::vector<int64_t>& begins,
                       const std::vector<int64_t>& counts) {
  const BufferRef out = param("out", kFloat32, {12, 12}), who = param("who", kFloat32, {12, 12});
  std::vector<VarRef> blocks, vars;
  Expr block = idx(0);
  for (int64_t extent : grid) {
    blocks.push_back(make_var("b"));
    block = block * idx(extent) + Expr(blocks.back());
  }
  std::vector<Expr> at;
  for (size_t d = 0; d < counts.size(); ++d) {
    vars.push_back(make_var("i"));
    at.push_back(Expr(vars.back()));
  }
  while (at.size() < 2) at.push_back(idx(0));
  const Stmt body = seq({store(out, at, load(out, at) + f32(1)), store(who, at, cast(block, kFloat32))});
  return function(
      "main", {out, who},
      kernel(blocks, extents(grid), 128, for_loop(LoopKind::Persistent, vars, extents(begins), extents(counts), body)));
}

TEST(LowerBlockLoops, DealsDomainsRoundRobin) {
  expect_prints(lower_block_loops, persistent({2, 3}, {1}, {7}), R"(
@T.prim_func
def main(out: T.Tensor((12, 12), "float32"), who: T.Tensor((12, 12), "float32")):
    with T.Kernel(2, 3) as (b, b_1):
        for turn in T.serial((T.max(0, T.index(1) * 7 - ((T.index(0) * 2 + b) * 3 + b_1)) + T.index(1) * 2 * 3 - 1) // (T.index(1) * 2 * 3)):
            i = 1 + ((T.index(0) * 2 + b) * 3 + b_1 + turn * (T.index(1) * 2 * 3))
            out[i, 0] = out[i, 0] + 1.0
            who[i, 0] = T.cast((T.index(0) * 2 + b) * 3 + b_1, "float32")
)");
}

TEST(LowerBlockLoops, EveryDomainOnEveryGrid) {
  for (const std::vector<int64_t>& grid : std::vector<std::vector<int64_t>>{{1}, {4}, {2, 3}, {0}, {3, 0}}) {
    for (int64_t n : {0, 1, 5, 9}) {
      expect_same_results(lower_block_loops, persistent(grid, {2}, {n}));
      for (int64_t k : {0, 1, 4}) expect_same_results(lower_block_loops, persistent(grid, {2, 1}, {n, k}));
    }
  }
}

TEST(LowerBlockLoops, NegativeExtentsHoldNothing) {
  const VarRef n = make_var("n"), k = make_var("k");
  const BufferRef out = param("out", kFloat32, {4}), a = make_buffer("A", kFloat32, MemoryScope::Param, {Expr(n)});
  const VarRef i = make_var("i"), j = make_var("j"), b = make_var("b");
  const Expr less_than_none = Expr(n) - idx(3);  // both extents are -1 for n = 2: their product is not
  const FunctionRef f =
      dynamic_function("main", {n}, {out, a},
                       kernel({b}, {idx(2)}, 128,
                              for_loop(LoopKind::Persistent, {i, j}, {idx(0), idx(0)}, {less_than_none, less_than_none},
                                       store(out, {Expr(i)}, f32(9)))));
  for (int64_t extent : {2, 3, 4, 6}) expect_same_results(lower_block_loops, f, {}, {{n.get(), extent}});
}

TEST(MaterializeLayouts, GivesEachLevelItsDimensions) {
  const BufferRef out = param("out", kFloat32, {7, 5});
  const BufferRef x = shared("X", kFloat32, {7, 5}, {4, 2}), row = shared("row", kFloat32, {2, 5}, {1, 4});
  const BufferRef plain_x = shared("X", kFloat32, {2, 3, 4, 2}), plain_row = shared("row", kFloat32, {2, 2, 4});
  const VarRef i = make_var("i"), j = make_var("j");
  const auto in_loop = [&](const Stmt& body) {
    return for_loop(LoopKind::Serial, i, idx(2), for_loop(LoopKind::Serial, j, idx(5), body));
  };
  const Stmt tiled = in_loop(seq({store(row, {i, j}, f32(2)), store(x, {Expr(i) + idx(3), j}, load(row, {i, j})),
                                  store(out, {i, j}, load(x, {Expr(i) + idx(3), j}))}));
  const auto place = [&](const Expr& p, const Expr& q) {
    return std::vector<Expr>{floor_div(p, idx(4)), floor_div(q, idx(2)), floor_mod(p, idx(4)), floor_mod(q, idx(2))};
  };
  const std::vector<Expr> in_row = {i, floor_div(Expr(j), idx(4)), floor_mod(Expr(j), idx(4))};
  const std::vector<Expr> in_x = place(Expr(i) + idx(3), Expr(j));
  const Stmt plain = in_loop(seq({store(plain_row, in_row, f32(2)), store(plain_x, in_x, load(plain_row, in_row)),
                                  store(out, {i, j}, load(plain_x, in_x))}));
  const FunctionRef before = function("main", {out}, one_block({alloc(x), alloc(row), tiled}));
  const FunctionRef after = function("main", {out}, one_block({alloc(plain_x), alloc(plain_row), plain}));
  expect_becomes(materialize_layouts, before, after);
  expect_untouched(materialize_layouts, after);
  expect_same_results(materialize_layouts, before);
}

TEST(MaterializeLayouts, GivesEachDigitItsDimension) {
  const VarRef i = make_var("i"), j = make_var("j");
  const Expr half = floor_div(Expr(j), idx(4)), rest = floor_mod(Expr(j), idx(4));
  struct Row {
    std::string layout;
    std::vector<int64_t> shape;
    std::vector<Expr> at;
  };
  for (const Row& row : std::vector<Row>{
           {"S[(6, 7) : (1, 6)]", {7, 6}, {j, i}},
           {"S[(6, 7) : (9, 1)]", {6, 9}, {i, j}},
           {"S[(6, 8) : (8, 1)] ^ Swizzle(2, 0, 2)", {6, 8}, {i, j}},
           {"S[(6, 2, 4) : (4, 24, 1)]", {2, 6, 4}, {half, i, rest}},
           {"S[(6, 2, 4) : (5, 60, 1)]", {2, 12, 5}, {half, i, rest}},
           {"S[(6, 7) : (1, 13)]", {7, 13}, {j, i}},
           {"S[(6, 7) : (15, 2)]", {88}, {Expr(i) * idx(15) + Expr(j) * idx(2)}},
       }) {
    const BufferRef out = param("out", kFloat32, {6, 7});
    const BufferRef x = with_layout(shared("X", kFloat32, {6, 7}), parse_layout(row.layout), {});
    const BufferRef plain = shared("X", kFloat32, row.shape);
    const auto block = [&](const BufferRef& memory, const std::vector<Expr>& at) {
      const Stmt body = seq({store(memory, at, f32(2)), store(out, {i, j}, load(memory, at))});
      const Stmt loops = for_loop(LoopKind::Serial, i, idx(6), for_loop(LoopKind::Serial, j, idx(7), body));
      return function("main", {out}, one_block({alloc(memory), loops}));
    };
    SCOPED_TRACE(row.layout);
    expect_becomes(materialize_layouts, block(x, {i, j}), block(plain, row.at));
    expect_same_results(materialize_layouts, block(x, {i, j}));
  }
}

}  // namespace
}  // namespace helve::testing
