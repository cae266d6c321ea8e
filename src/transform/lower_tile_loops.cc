// Tile loops become loops over elements.
// Input: tile statements X[i, j] = f(Y[i, j], v[i]). Output: no ForTiles, TileLoad or TileStore.
// Before:  for i, j in T.foreach_tiles(X, parallel=True): X[i, j] = X[i, j] * v[i]
// After:   for i in T.Parallel(...): for r in T.Parallel(min(32, M - i*32)):
//              for j in T.Parallel(...): for c in T.Parallel(min(32, N - j*32)):
//                  X[i*32 + r, j*32 + c] = X[i*32 + r, j*32 + c] * v[i*32 + r]
// A tile statement reads all operands before it stores. It may read other tiles of its target only by other tile
// numbers, so the order of elements within a statement is free.
#include "helve/arith/simplify.h"
#include "helve/arith/sum.h"
#include "helve/ir/tensor/visit.h"
#include "helve/transform/passes.h"

namespace helve {

namespace {

/// The element of a tile: tile number times tile extent plus the position inside. Dimension d of the buffer follows
/// dimension d of the loop; a tile extent of 1 and missing trailing dimensions broadcast.
std::vector<Expr> element_indices(const Buffer& buffer, const std::vector<Expr>& tile_indices,
                                  const std::vector<Expr>& inside) {
  std::vector<Expr> out;
  for (size_t d = 0; d < buffer.rank(); ++d) {
    const int64_t tile = buffer.tile[d];
    out.push_back(tile == 1 ? tile_indices[d] : tile_indices[d] * int_imm(tile) + inside[d]);
  }
  return out;
}

/// A tile statement as a store of elements, and the loops over positions inside of the tile: none for dimensions of
/// extent 1.
struct ElementLoops {
  Stmt store;
  std::vector<VarRef> vars;  ///< one per dimension, null without a loop
  std::vector<Expr> extents;
};

ElementLoops element_loops(const TileStore& s) {
  const Buffer& target = *s.buffer;
  ElementLoops out;
  std::vector<Expr> inside;
  static constexpr const char* kNames[] = {"r", "c"};
  size_t named = 0;
  for (size_t d = 0; d < target.rank(); ++d) {
    if (target.tile[d] == 1) {
      out.vars.emplace_back();
      inside.push_back(int_imm(0));
      out.extents.push_back(int_imm(1));
      continue;
    }
    const Expr tile = int_imm(target.tile[d]);
    out.vars.push_back(make_var(kNames[std::min<size_t>(named++, 1)]));
    inside.push_back(Expr(out.vars.back()));
    out.extents.push_back(min(tile, target.shape[d] - s.indices[d] * tile));
  }
  Expr value = rewrite(s.value, [&](const Expr& e) -> Expr {
    const TileLoad* l = as<TileLoad>(e);
    if (!l) return e;
    return load(l->buffer, element_indices(buffer_of(l->buffer), l->indices, inside), l->span);
  });
  out.store = store(s.buffer, element_indices(target, s.indices, inside), value, s.span);
  return out;
}

Stmt parallel_loop(const VarRef& var, const Expr& extent, const Stmt& body) {
  return var ? for_loop(LoopKind::Parallel, var, extent, body, body->span) : body;
}

Expr tile_count(const ForTiles& loop, size_t d) {
  return ceil_div(loop.buffer->shape[d], int_imm(loop.buffer->tile[d]));
}

/// A tile statement of a parallel loop as one loop over all elements of its target.
Stmt over_elements(const ForTiles& loop, const TileStore& s) {
  ElementLoops loops = element_loops(s);
  Substitution places;
  std::vector<VarRef> vars;
  for (size_t d = 0; d < loop.vars.size(); ++d) {
    const Expr tile = int_imm(loop.buffer->tile[d]);
    vars.push_back(make_var(loop.vars[d]->name));
    places.emplace(loop.vars[d].get(), floor_div(Expr(vars[d]), tile));
    if (loops.vars[d]) places.emplace(loops.vars[d].get(), floor_mod(Expr(vars[d]), tile));
  }
  Facts facts;
  for (size_t d = 0; d < vars.size(); ++d) facts.bind_loop(vars[d], int_imm(0), loop.buffer->shape[d]);
  const Stmt store = helve::rewrite(
      substitute(loops.store, places), [](const Stmt& inner) { return inner; },
      [&](const Expr& e) { return simplify(e, facts); });
  return for_loop(LoopKind::Parallel, vars, std::vector<Expr>(vars.size(), int_imm(0)), loop.buffer->shape, store, 1,
                  loop.span);
}

/// Does the statement store to the same tile of the loop's buffer, or of one with the same tiles, in every iteration?
bool covers(const ForTiles& loop, const TileStore& s) {
  if (s.buffer->tile != loop.buffer->tile || s.indices.size() != loop.vars.size()) return false;
  for (size_t d = 0; d < s.indices.size(); ++d) {
    if (s.indices[d].get() != loop.vars[d].get()) return false;
    if (!same_expr(s.buffer->shape[d], loop.buffer->shape[d])) return false;
  }
  return true;
}

/// Independent iterations may run statement by statement; null if one of the statements is not a plain tile statement.
Stmt over_elements(const ForTiles& loop) {
  std::vector<Stmt> out;
  const Seq* several = as<Seq>(loop.body);
  for (const Stmt& s : several ? several->stmts : std::vector<Stmt>{loop.body}) {
    const TileStore* n = as<TileStore>(s);
    if (!n || !covers(loop, *n)) return {};
    out.push_back(over_elements(loop, *n));
  }
  return seq(std::move(out), loop.span);
}

Stmt lower_loops(const Stmt& s, bool walk_tiles) {
  if (const TileStore* n = as<TileStore>(s)) {
    ElementLoops loops = element_loops(*n);
    Stmt out = loops.store;
    for (size_t d = loops.vars.size(); d-- > 0;) out = parallel_loop(loops.vars[d], loops.extents[d], out);
    return out;
  }
  const ForTiles* loop = as<ForTiles>(s);
  if (!loop) {
    return map_parts(
        s, [](const Expr& e) { return e; }, [&](const Stmt& part) { return lower_loops(part, walk_tiles); });
  }
  if (!walk_tiles && loop->parallel) {
    if (Stmt all = over_elements(*loop)) return all;
  }
  const TileStore* only = as<TileStore>(loop->body);
  if (only && loop->parallel) {
    // All orders are equivalent, so the two loops of a dimension are adjacent and whole rows are traversed.
    ElementLoops loops = element_loops(*only);
    Stmt out = loops.store;
    for (size_t d = loop->vars.size(); d-- > 0;) {
      out = parallel_loop(loop->vars[d], tile_count(*loop, d), parallel_loop(loops.vars[d], loops.extents[d], out));
    }
    return out;
  }
  Stmt out = lower_loops(loop->body, walk_tiles);
  for (size_t d = loop->vars.size(); d-- > 0;) {
    out = for_loop(loop->parallel ? LoopKind::Parallel : LoopKind::Serial, loop->vars[d], tile_count(*loop, d), out,
                   loop->span);
  }
  return out;
}

}  // namespace

FunctionRef lower_tile_loops(const FunctionRef& f, const PassOptions& options) {
  return with_body(f, lower_loops(f->body, options.walk_tiles));
}

}  // namespace helve
