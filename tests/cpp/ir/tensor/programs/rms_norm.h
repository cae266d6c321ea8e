// The RMSNorm of a mesh as IR.
// The standard program: it has sharded tensors, tile loops, a persistent loop and a collective, and its extents may
// divide nothing.
#pragma once

#include "ir/tensor/programs/build_ir.h"

namespace helve::testing {

/// B[m, n] = A[m, n] / sqrt(mean over n of A[m, n]^2 + 1e-6) for float32 tensors (M, N), cut over a rows x cols mesh
/// (dimension 0 over x, 1 over y) and moved in tiles of (blk_m, blk_k). Parameters: A, B.
inline FunctionRef rms_norm_splitk(int64_t M, int64_t N, int64_t blk_m, int64_t blk_k, int64_t rows, int64_t cols) {
  const MeshShape mesh = mesh_xy(rows, cols);
  const BufferRef a = param("A", kFloat32, {M, N});
  const BufferRef b = param("B", kFloat32, {M, N});
  const std::vector<std::pair<std::string, int64_t>> sharding = {{"x", 0}, {"y", 1}};
  const MeshTensor place_a{a, sharding, {blk_m, blk_k}, {}};
  const MeshTensor place_b{b, sharding, {blk_m, blk_k}, {}};
  const std::vector<Expr> block = sharded_shape(mesh, place_a);

  const BufferRef a_tile = shared("A_tile", kFloat32, {blk_m, blk_k}, {32, 32});
  const BufferRef acc = shared("acc", kFloat32, {blk_m, blk_k}, {32, 32});
  const BufferRef part = shared("part", kFloat32, {blk_m}, {32});
  const BufferRef parts = shared("parts", kFloat32, {blk_m, cols}, {32, 32});
  const VarRef bx = make_var("bx");
  const Expr count_k = ceil_div(block[1], idx(blk_k));

  const auto move = [&](BufferRef src, BufferRef dst, const VarRef& bk) {
    return tile_op(TileOpcode::MeshTensorCopy,
                   {whole_region(std::move(src)), whole_region(std::move(dst)), std::vector<Expr>{bx, bk}, f32(0)});
  };
  const auto reduce_sum = [](BufferRef src, BufferRef dst) {
    return tile_op(TileOpcode::ReduceSum,
                   {whole_region(std::move(src)), whole_region(std::move(dst)), int64_t{1}, true});
  };
  const auto square_tiles = [&] {
    const VarRef i = make_var("i"), j = make_var("j");
    const Expr x = tile_load(a_tile, {i, j});
    return for_tiles(a_tile, {i, j}, true, tile_store(acc, {i, j}, tile_load(acc, {i, j}) + x * x));
  };
  const auto scale_tiles = [&] {
    const VarRef i = make_var("i"), j = make_var("j");
    return for_tiles(a_tile, {i, j}, true,
                     tile_store(a_tile, {i, j}, tile_load(a_tile, {i, j}) * tile_load(part, {i})));
  };
  const auto inverse_root = [&] {
    const VarRef i = make_var("i");
    const Expr mean = apply(Op::Div, {tile_load(part, {i}), f32(static_cast<double>(N))});
    return for_tiles(part, {i}, true, tile_store(part, {i}, apply(Op::Rsqrt, {mean + f32(1e-6)})));
  };

  const VarRef k1 = make_var("bk"), k2 = make_var("bk");
  const Stmt iteration = seq({
      tile_op(TileOpcode::Fill, {whole_region(acc), f32(0)}),
      serial(k1, count_k, {move(a, a_tile, k1), square_tiles()}),
      reduce_sum(acc, part),
      tile_op(TileOpcode::CommAllGather, {whole_region(part), whole_region(parts), std::string("y"), int64_t{-1}}),
      reduce_sum(parts, part),
      inverse_root(),
      serial(k2, count_k, {move(a, a_tile, k2), scale_tiles(), move(a_tile, b, k2)}),
  });
  const Stmt body = seq({alloc(a_tile), alloc(acc), alloc(part), alloc(parts),
                         for_loop(LoopKind::Persistent, bx, ceil_div(block[0], idx(blk_m)), iteration)});
  const Stmt launch = kernel({make_var("rid"), make_var("cid")}, {idx(rows), idx(cols)}, 128, body);
  return mesh_function("main", mesh, {place_a, place_b}, {a, b}, launch);
}

}  // namespace helve::testing
