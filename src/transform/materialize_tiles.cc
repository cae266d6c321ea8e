// Tiled buffers become plain ones with a dimension for each level of the tiling.
// Input: element accesses X[i, j] of tiled buffers. Output: no buffer has a tile.
// Before:  X = T.alloc_shared_tiles((128, 128), "float32"); X[i, j]
// After:   X = T.alloc_shared((4, 4, 32, 32), "float32");   X[i // 32, j // 32, i % 32, j % 32]
// The plain buffer covers the domain (the shape rounded up to tiles); the map from logical elements to its elements is
// injective.
#include "helve/ir/tensor/visit.h"
#include "helve/support/diagnostic.h"
#include "helve/transform/passes.h"

namespace helve {

namespace {

/// Block dimensions first, then the tile's own; untiled dimensions (tile extent 1) appear once.
BufferRef plain_buffer(const Buffer& b) {
  std::vector<Expr> shape;
  for (size_t d = 0; d < b.rank(); ++d) {
    const int64_t* extent = int_value(b.shape[d]);
    HELVE_CHECK(extent, "a tiled buffer of dynamic shape");
    shape.push_back(int_imm((*extent + b.tile[d] - 1) / b.tile[d]));
  }
  for (int64_t t : b.tile) {
    if (t != 1) shape.push_back(int_imm(t));
  }
  return make_buffer(b.name, b.dtype, b.scope, std::move(shape), {}, {}, b.span);
}

std::vector<Expr> plain_indices(const Buffer& b, const std::vector<Expr>& indices) {
  std::vector<Expr> out;
  for (size_t d = 0; d < indices.size(); ++d) {
    out.push_back(b.tile[d] == 1 ? indices[d] : floor_div(indices[d], int_imm(b.tile[d])));
  }
  for (size_t d = 0; d < indices.size(); ++d) {
    if (b.tile[d] != 1) out.push_back(floor_mod(indices[d], int_imm(b.tile[d])));
  }
  return out;
}

}  // namespace

FunctionRef materialize_tiles(const FunctionRef& f, const PassOptions&) {
  BufferMap plain;
  walk(f->body, [&](const Stmt& s) {
    const Alloc* a = as<Alloc>(s);
    if (a && is_tiled(*a->buffer)) plain.emplace(a->buffer.get(), plain_buffer(*a->buffer));
  });
  if (plain.empty()) return f;
  auto on_expr = [&](const Expr& e) {
    return rewrite(e, [&](const Expr& node) -> Expr {
      const Load* l = as<Load>(node);
      if (!l) return node;
      auto it = plain.find(&buffer_of(l->buffer));
      return it == plain.end() ? node : load(it->second, plain_indices(*it->first, l->indices), l->span);
    });
  };
  return with_body(f, rewrite(
                          f->body,
                          [&](const Stmt& s) -> Stmt {
                            if (const Alloc* a = as<Alloc>(s)) {
                              auto it = plain.find(a->buffer.get());
                              return it == plain.end() ? s : alloc(it->second, s->span);
                            }
                            const Store* n = as<Store>(s);
                            if (!n) return s;
                            auto it = plain.find(n->buffer.get());
                            if (it == plain.end()) return s;
                            return store(it->second, plain_indices(*it->first, n->indices), n->value, s->span, n->mode);
                          },
                          on_expr));
}

}  // namespace helve
