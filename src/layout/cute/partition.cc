// Parts of a layout: the tile at a place, the elements of a thread, the registers that hold them.
// Each is a division followed by a slice, so that the laws of both carry over.
#include <algorithm>

#include "flat.h"
#include "helve/layout/cute/algebra.h"

namespace helve::cute {

std::pair<Layout, int64_t> local_tile(const Layout& layout, const Tiler& tiler, const IntTuple& coordinate) {
  Layout divided = zipped_divide(layout, tiler);
  Layout tile = divided.mode(0);
  Layout rest = divided.mode(1);
  int64_t offset = crd2idx(coordinate, rest.shape(), rest.stride());
  if (!has_all(coordinate)) return {tile, offset};
  Layout kept = slice(coordinate, rest);
  ModeTree both = ModeTree::tuple_of(tile.rank() + kept.rank());
  for (const Layout* part : {&tile, &kept}) {
    ModeCursor entry = part->root().front();
    for (size_t i = 0; i < part->rank(); ++i, entry = entry.next()) both.append(entry);
  }
  return {Layout(std::move(both)), offset};
}

std::pair<Layout, int64_t> local_partition(const Layout& layout, const Layout& threads, int64_t thread) {
  IntTuple natural = idx2crd(IntTuple(thread), threads.shape(), threads.stride());
  Layout divided = zipped_divide(layout, Tiler(product_each(threads.shape())));
  IntTuple coordinate = natural;
  if (!natural.is_leaf()) {  // one index for each mode of the threads
    coordinate = IntTuple::tuple_of(natural.rank());
    IntTuple shape = threads.shape();
    IntCursor digits = natural.root().front();
    IntCursor extents = shape.root().front();
    for (size_t i = 0; i < natural.rank(); ++i, digits = digits.next(), extents = extents.next()) {
      coordinate.append_leaf(crd2idx(IntTuple::at(digits), IntTuple::at(extents)));
    }
  }
  return {divided.mode(1), divided.mode(0)(coordinate)};
}

Layout make_fragment_like(const Layout& layout) {
  if (layout.rank() == 1) return Layout(layout.shape());
  ModeTree tree = layout.tree();
  size_t first = static_cast<size_t>(layout.root().front().next().leaves - layout.modes().begin());
  int64_t current = 1;
  for (size_t k = 0; k < first; ++k) {
    Mode& mode = tree.leaves[k];
    if (mode.stride == 0) continue;
    mode.stride = current;
    current *= mode.extent;
  }
  InlineVector<size_t, 8> order;
  for (size_t k = first; k < tree.leaves.size(); ++k) order.push_back(k);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    Wide x = tree.leaves[a].stride;
    Wide y = tree.leaves[b].stride;
    return (x < 0 ? -x : x) < (y < 0 ? -y : y);
  });
  for (size_t k : order) {
    tree.leaves[k].stride = current;
    current *= tree.leaves[k].extent;
  }
  return Layout(std::move(tree));
}

}  // namespace helve::cute
