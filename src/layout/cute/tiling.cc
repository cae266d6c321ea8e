// Division and products, and the arrangements of their modes.
// Each is a composition with a complement; the rest of the file regroups (tile, rest) pairs.
#include <fmt/format.h>

#include <limits>

#include "complement.h"
#include "composition.h"
#include "helve/layout/cute/algebra.h"

namespace helve::cute {

namespace {

Layout paired(const Layout& first, const Layout& second) {
  ModeTree tree = ModeTree::tuple_of(2);
  tree.append(first.tree());
  tree.append(second.tree());
  return Layout(std::move(tree));
}

}  // namespace

Layout logical_divide(const Layout& a, const Layout& tile) {
  Gaps gaps = find_gaps("logical_divide", tile);
  if (!gaps.filled) {
    throw_layout_error(Code::CuteNesting, {{"operation", "logical_divide"},
                                           {"layout", to_string(a)},
                                           {"reason", "the tile " + to_string(tile) + " has gaps that no tile fills"}});
  }
  return composition(a, paired(tile, gaps.up_to(a.size())));
}

Layout logical_product(const Layout& a, const Layout& b) {
  Gaps gaps = find_gaps("logical_product", a);
  Wide bound = std::min(Wide{a.size()} * b.cosize(), Wide{std::numeric_limits<int64_t>::max()});
  Layout rest = gaps.up_to(static_cast<int64_t>(bound));
  if (rest.size() >= b.cosize()) return paired(a, composition(rest, b));
  return paired(a, compose(gaps.endless(), b));  // a block with gaps needs more copies than its size tells
}

Layout logical_divide(const Layout& a, const Tiler& tiler) {
  return by_mode("logical_divide", a, tiler, [](const Layout& x, const Layout& y) { return logical_divide(x, y); });
}

Layout logical_product(const Layout& a, const Tiler& tiler) {
  return by_mode("logical_product", a, tiler, [](const Layout& x, const Layout& y) { return logical_product(x, y); });
}

namespace {

struct Split {
  Layout tile;
  Layout rest;
};

/// The tiles of all modes together, and the rests, followed by the modes beyond the tiler.
Split split(const char* operation, const Layout& a, const Tiler& tiler, Binary apply) {
  if (const auto* layout = std::get_if<Layout>(&tiler.value)) {
    Layout both = apply(a, *layout);
    return {both.mode(0), both.mode(1)};
  }
  const auto* modes = std::get_if<TilerTuple>(&tiler.value);
  if (modes == nullptr) return {Layout(), a};
  check_tiler(operation, a, *modes);
  std::vector<Layout> tiles;
  std::vector<Layout> rests;
  for (size_t i = 0; i < a.rank(); ++i) {
    if (i >= modes->size()) {
      rests.push_back(a.mode(i));
      continue;
    }
    Split part = split(operation, a.mode(i), (*modes)[i], apply);
    tiles.push_back(std::move(part.tile));
    rests.push_back(std::move(part.rest));
  }
  return {make_layout(tiles), make_layout(rests)};
}

Split divided(const char* operation, const Layout& a, const Tiler& tiler) {
  return split(operation, a, tiler, [](const Layout& x, const Layout& y) { return logical_divide(x, y); });
}

Split multiplied(const char* operation, const Layout& a, const Tiler& tiler) {
  return split(operation, a, tiler, [](const Layout& x, const Layout& y) { return logical_product(x, y); });
}

/// The entries of both, or the first whole and the entries of the second.
Layout unpacked(const Split& parts, bool tile_too) {
  ModeTree tree = ModeTree::tuple_of((tile_too ? parts.tile.rank() : 1) + parts.rest.rank());
  auto append_entries = [&](const Layout& layout) {
    ModeCursor entry = layout.root().front();
    for (size_t i = 0; i < layout.rank(); ++i, entry = entry.next()) tree.append(entry);
  };
  if (tile_too) {
    append_entries(parts.tile);
  } else {
    tree.append(parts.tile.root());
  }
  append_entries(parts.rest);
  return Layout(std::move(tree));
}

Layout paired(const Split& parts) { return paired(parts.tile, parts.rest); }

/// Mode i is (first[i], second[i]).
Layout zipped(const Layout& first, const Layout& second) {
  ModeTree tree = ModeTree::tuple_of(first.rank());
  ModeCursor x = first.root().front();
  ModeCursor y = second.root().front();
  for (size_t i = 0; i < first.rank(); ++i, x = x.next(), y = y.next()) {
    tree.profile.push_back(2);
    tree.append(x);
    tree.append(y);
  }
  return Layout(std::move(tree));
}

Split ranked_product(const Layout& a, const Layout& b) {
  size_t rank = std::max(a.rank(), b.rank());
  Layout both = logical_product(append(a, rank), append(b, rank));
  return {both.mode(0), both.mode(1)};
}

}  // namespace

Layout zipped_divide(const Layout& a, const Tiler& tiler) { return paired(divided("zipped_divide", a, tiler)); }
Layout tiled_divide(const Layout& a, const Tiler& tiler) { return unpacked(divided("tiled_divide", a, tiler), false); }
Layout flat_divide(const Layout& a, const Tiler& tiler) { return unpacked(divided("flat_divide", a, tiler), true); }

Layout zipped_product(const Layout& a, const Tiler& tiler) { return paired(multiplied("zipped_product", a, tiler)); }
Layout tiled_product(const Layout& a, const Tiler& tiler) {
  return unpacked(multiplied("tiled_product", a, tiler), false);
}
Layout flat_product(const Layout& a, const Tiler& tiler) {
  return unpacked(multiplied("flat_product", a, tiler), true);
}

Layout blocked_product(const Layout& a, const Layout& b) {
  Split parts = ranked_product(a, b);
  return zipped(parts.tile, parts.rest);
}

Layout raked_product(const Layout& a, const Layout& b) {
  Split parts = ranked_product(a, b);
  return zipped(parts.rest, parts.tile);
}

Layout tile_to_shape(const Layout& block, const IntTuple& shape, const std::optional<IntTuple>& order) {
  if (block.rank() > shape.rank()) {
    throw_layout_error(Code::CuteRank, {{"operation", "tile_to_shape"},
                                        {"operand", "block " + to_string(block)},
                                        {"given", static_cast<int64_t>(block.rank())},
                                        {"needed", fmt::format("shape {} has {}", to_string(shape), shape.rank())}});
  }
  Layout padded = append(block, shape.rank());
  IntTuple extents = product_each(padded.shape());
  IntTuple counts = product_each(shape);
  for (size_t i = 0; i < counts.leaves.size(); ++i) {
    int64_t extent = extents.leaves[i];
    int64_t target = counts.leaves[i];
    if (target < 1) throw_layout_error(Code::CuteExtent, {{"shape", to_string(shape)}, {"extent", target}});
    if (target % extent != 0) {
      throw_layout_error(Code::CuteTileToShape,
                         {{"extent", extent}, {"target", target}, {"mode", static_cast<int64_t>(i)}});
    }
    counts.leaves[i] = target / extent;
  }
  return blocked_product(padded, order ? make_ordered_layout(counts, *order) : Layout(counts));
}

std::pair<IntTuple, Layout> make_tv_layout(const Layout& threads, const Layout& values) {
  Layout tile = raked_product(threads, values);
  Layout inverse = right_inverse(tile);
  if (inverse.size() != tile.size()) {
    throw_layout_error(Code::CuteNotCompact, {{"operation", "make_tv_layout"},
                                              {"layout", to_string(tile)},
                                              {"offset", inverse.size()},
                                              {"size", tile.size()}});
  }
  Layout domain = make_layout({Layout(threads.size(), 1), Layout(values.size(), threads.size())});
  return {product_each(tile.shape()), composition(inverse, domain)};
}

}  // namespace helve::cute
