// Tile loops become loops over elements.
// Input: tile statements X[i, j] = f(Y[i, j], v[i]). Output: no ForTiles, TileLoad or TileStore.
// Before:  for i, j in T.foreach_tiles(X, parallel=True): X[i, j] = X[i, j] * v[i]
// After:   for i, j in T.Parallel(...): for r, c in T.Parallel(min(32, M - i*32), min(32, N - j*32)):
//              X[i*32 + r, j*32 + c] = X[i*32 + r, j*32 + c] * v[i*32 + r]
// A tile statement reads all operands before it stores. It may read other tiles of its target only by other tile numbers, so element
// order inside one statement is free.
#include "helve/ir/tensor/visit.h"
#include "helve/transform/passes.h"

namespace helve {

namespace {

/// The element of a tile: tile number times tile extent plus the place inside, aligned at the loop's first tiled dimension.
std::vector<Expr> element_indices(const Buffer& buffer, const std::vector<Expr>& tile_indices,
                                  const std::vector<Expr>& inside, size_t loop_rank) {
  std::vector<Expr> out;
  // A buffer of lower rank is a column: it takes the leading tiled places and trailing ones broadcast.
  const size_t skip = buffer.rank() == loop_rank ? 0 : loop_rank - std::min(loop_rank, size_t{2});
  for (size_t d = 0; d < buffer.rank(); ++d) {
    const int64_t tile = buffer.tile[d];
    out.push_back(tile == 1 ? tile_indices[d] : tile_indices[d] * int_imm(tile) + inside[d + skip]);
  }
  return out;
}

Stmt element_loops(const TileStore& s) {
  const Buffer& target = *s.buffer;
  std::vector<VarRef> vars;
  std::vector<Expr> inside;
  std::vector<Expr> extents;
  static constexpr const char* kNames[] = {"r", "c"};
  for (size_t d = 0; d < target.rank(); ++d) {
    if (target.tile[d] == 1) {
      vars.emplace_back();
      inside.push_back(int_imm(0));
      extents.push_back(int_imm(1));
      continue;
    }
    const Expr tile = int_imm(target.tile[d]);
    vars.push_back(make_var(kNames[std::min<size_t>(vars.size(), 1)]));
    inside.push_back(Expr(vars.back()));
    extents.push_back(min(tile, target.shape[d] - s.indices[d] * tile));
  }
  Expr value = rewrite(s.value, [&](const Expr& e) -> Expr {
    const TileLoad* l = as<TileLoad>(e);
    if (!l) return e;
    return load(l->buffer, element_indices(buffer_of(l->buffer), l->indices, inside, target.rank()), l->span);
  });
  Stmt out = store(s.buffer, element_indices(target, s.indices, inside, target.rank()), value, s.span);
  for (size_t d = target.rank(); d-- > 0;) {
    if (vars[d]) out = for_loop(LoopKind::Parallel, vars[d], extents[d], out, s.span);
  }
  return out;
}

Stmt tile_numbers(const ForTiles& loop) {
  Stmt out = loop.body;
  for (size_t d = loop.vars.size(); d-- > 0;) {
    Expr count = ceil_div(loop.buffer->shape[d], int_imm(loop.buffer->tile[d]));
    out = for_loop(loop.parallel ? LoopKind::Parallel : LoopKind::Serial, loop.vars[d], count, out, loop.span);
  }
  return out;
}

}  // namespace

FunctionRef lower_tile_loops(const FunctionRef& f, const PassOptions&) {
  return with_body(f, rewrite(f->body, [](const Stmt& s) -> Stmt {
    if (const TileStore* n = as<TileStore>(s)) return element_loops(*n);
    if (const ForTiles* n = as<ForTiles>(s)) return tile_numbers(*n);
    return s;
  }));
}

}  // namespace helve
