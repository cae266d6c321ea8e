// Accesses in tile loops.
// Dimension d of an operand's tile follows dimension d of the loop's tile; a tile that ends in extents of 1, or has
// fewer dimensions, is broadcast along the rest.
#include <fmt/format.h>

#include "helve/ir/expr/text.h"
#include "helve/ir/tensor/visit.h"
#include "helve/support/text.h"
#include "verify_rules.h"

namespace helve::verify_rules {

namespace {

/// Does the operand's tile follow the loop's tile, the rest broadcast?
bool follows(const std::vector<int64_t>& tile, const std::vector<int64_t>& loop) {
  if (tile.empty() || tile.size() > loop.size()) return false;
  size_t d = 0;
  while (d < tile.size() && tile[d] == loop[d]) ++d;
  while (d < tile.size() && tile[d] == 1) ++d;
  return d == tile.size();
}

[[noreturn]] void no_match(const ForTiles& loop, const Buffer& buffer, const Span& span) {
  std::vector<Note> notes = {declaration_note(buffer)};
  if (!buffer.tile.empty())
    notes.push_back({{}, fmt::format("the tile of '{}' is {}", buffer.name, shape_text(buffer.tile))});
  notes.push_back({loop.span, fmt::format("the loop goes over the tiles of '{}'", loop.buffer->name)});
  throw UserError(Code::NoMatchingTile, span, {{"buffer", buffer.name}, {"tile", shape_text(loop.buffer->tile)}},
                  std::move(notes));
}

bool mentions_loop(const ForTiles& loop, const Expr& e) {
  for (const VarRef& var : loop.vars) {
    if (mentions(e, var.get())) return true;
  }
  return false;
}

/// Affine in the loop's variables with constant factors; anything that does not vary with them is a constant here.
bool is_affine(const ForTiles& loop, const Expr& e) {
  if (!mentions_loop(loop, e) || e->kind == ExprKind::Var) return true;
  const Apply* node = as<Apply>(e);
  if (!node) return false;
  switch (node->op) {
    case Op::Add:
    case Op::Sub: return is_affine(loop, node->args[0]) && is_affine(loop, node->args[1]);
    case Op::Neg: return is_affine(loop, node->args[0]);
    case Op::Mul:
      return (int_value(node->args[0]) && is_affine(loop, node->args[1])) ||
             (int_value(node->args[1]) && is_affine(loop, node->args[0]));
    default: return false;
  }
}

[[noreturn]] void wrong_index(const ForTiles& loop, const Buffer& buffer, const Span& span) {
  throw UserError(Code::TileStoreIndex, span, {{"buffer", buffer.name}},
                  {{loop.span, fmt::format("the loop goes over the tiles of '{}'", loop.buffer->name)}});
}

/// Constant tile numbers lie below the number of tiles.
void check_tile_numbers(const Buffer& buffer, const std::vector<Expr>& indices, const Span& outer) {
  for (size_t d = 0; d < indices.size(); ++d) {
    const int64_t* index = int_value(indices[d]);
    const int64_t* extent = int_value(buffer.shape[d]);
    if (!index || !extent) continue;
    const int64_t tiles = (*extent + buffer.tile[d] - 1) / buffer.tile[d];
    if (*index < tiles) continue;
    throw UserError(Code::OutOfBounds, span_of(indices[d], outer),
                    {{"index", *index}, {"dim", static_cast<int64_t>(d)}, {"buffer", buffer.name}, {"extent", tiles}},
                    {{{}, fmt::format("'{}' has {} tiles along dimension {}", buffer.name, tiles, d)}});
  }
}

}  // namespace

void verify_tile_load(const ForTiles& loop, const TileLoad& load, const Span& outer, bool runs) {
  const Buffer& buffer = buffer_of(load.buffer);
  const Span span = load.span.known() ? load.span : outer;
  check_index_types(buffer, load.indices, span);
  if (!follows(buffer.tile, loop.buffer->tile)) no_match(loop, buffer, span);
  for (const Expr& index : load.indices) {
    if (!is_affine(loop, index)) wrong_index(loop, buffer, span_of(index, span));
  }
  if (!runs) return;
  check_indices(buffer, load.indices, span);
  check_tile_numbers(buffer, load.indices, span);
}

void verify_tile_store(const ForTiles& loop, const TileStore& store, bool runs) {
  const Buffer& buffer = *store.buffer;
  if (runs) check_indices(buffer, store.indices, store.span);
  check_index_types(buffer, store.indices, store.span);
  if (!follows(buffer.tile, loop.buffer->tile)) no_match(loop, buffer, store.span);
  for (const VarRef& var : loop.vars) {
    bool varies = false;
    for (const Expr& index : store.indices) varies |= mentions(index, var.get());
    if (varies) continue;
    throw UserError(Code::ImplicitReduction, store.span, {{"buffer", buffer.name}, {"variable", var->name}},
                    {{loop.span, fmt::format("'{}' is a variable of this loop", var->name)}});
  }
  bool exact = store.indices.size() == loop.vars.size();
  for (size_t d = 0; exact && d < loop.vars.size(); ++d) exact = store.indices[d] == loop.vars[d];
  if (!exact) wrong_index(loop, buffer, store.span);
  if (buffer.tile != loop.buffer->tile) {
    throw UserError(
        Code::MixedRankStore, store.span,
        {{"tile", shape_text(loop.buffer->tile)}, {"buffer", buffer.name}, {"target", shape_text(buffer.tile)}},
        {declaration_note(buffer)});
  }
}

}  // namespace helve::verify_rules
