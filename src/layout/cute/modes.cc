// Modes taken apart, put together and put in order.
// None changes what a mode does; slicing alone evaluates, at the entries that it fixes.
#include "checked.h"
#include "helve/layout/cute/layout.h"
#include "structure.h"

namespace helve::cute {

namespace {

void check_range(const char* operation, const Layout& layout, size_t begin, size_t end) {
  if (begin < end && end <= layout.rank()) return;
  throw_layout_error(Code::CuteModeBounds, {{"operation", operation},
                                            {"begin", static_cast<int64_t>(begin)},
                                            {"end", static_cast<int64_t>(end)},
                                            {"layout", to_string(layout)},
                                            {"rank", static_cast<int64_t>(layout.rank())}});
}

}  // namespace

Layout Layout::mode(size_t i) const {
  check_range("mode", *this, i, i + 1);
  return Layout(ModeTree::at(root().entry(i)));
}

Layout Layout::mode(const std::vector<size_t>& path) const {
  Layout at = *this;
  for (size_t i : path) at = at.mode(i);
  return at;
}

Layout make_layout(const Layout* first, const Layout* last) {
  if (first == last) throw_layout_error(Code::CuteNothingLeft, {{"operation", "make_layout"}});
  ModeTree tree = ModeTree::tuple_of(static_cast<size_t>(last - first));
  for (; first != last; ++first) tree.append(first->root());
  return Layout(std::move(tree));
}

Layout flatten(const Layout& layout) {
  return layout.is_leaf() ? layout : Layout(ModeTree::flat(layout.modes().begin(), layout.modes().end()));
}

Layout unflatten(const Layout& layout, const IntTuple& profile) {
  if (profile.leaves.size() != layout.modes().size()) {
    refuse_profile("unflatten", profile.root(), layout.shape().root());
  }
  ModeTree tree;
  tree.leaves = layout.modes();
  tree.profile = profile.profile;
  return Layout(std::move(tree));
}

Layout group(const Layout& layout, size_t begin, size_t end) {
  check_range("group", layout, begin, end);
  ModeTree tree = ModeTree::tuple_of(layout.rank() - (end - begin) + 1);
  ModeCursor entry = layout.root().front();
  for (size_t i = 0; i < layout.rank(); ++i, entry = entry.next()) {
    if (i == begin) tree.profile.push_back(static_cast<uint16_t>(end - begin));
    tree.append(entry);
  }
  return Layout(std::move(tree));
}

Layout take(const Layout& layout, size_t begin, size_t end) {
  check_range("take", layout, begin, end);
  ModeTree tree = ModeTree::tuple_of(end - begin);
  ModeCursor entry = layout.root().entry(begin);
  for (size_t i = begin; i < end; ++i, entry = entry.next()) tree.append(entry);
  return Layout(std::move(tree));
}

Layout select(const Layout& layout, const std::vector<size_t>& modes) {
  if (modes.empty()) throw_layout_error(Code::CuteNothingLeft, {{"operation", "select"}});
  ModeTree tree = ModeTree::tuple_of(modes.size());
  for (size_t i : modes) {
    check_range("select", layout, i, i + 1);
    tree.append(layout.root().entry(i));
  }
  return Layout(std::move(tree));
}

namespace {

Layout padded(const char* operation, const Layout& layout, size_t rank, const Layout& mode, bool at_end) {
  if (rank < layout.rank()) check_range(operation, layout, 0, layout.rank() + 1);
  if (rank == layout.rank()) return layout;
  ModeTree tree = ModeTree::tuple_of(rank);
  size_t missing = rank - layout.rank();
  for (size_t i = 0; i < (at_end ? 0 : missing); ++i) tree.append(mode.root());
  ModeCursor entry = layout.root().front();
  for (size_t i = 0; i < layout.rank(); ++i, entry = entry.next()) tree.append(entry);
  for (size_t i = 0; i < (at_end ? missing : 0); ++i) tree.append(mode.root());
  return Layout(std::move(tree));
}

}  // namespace

Layout append(const Layout& layout, size_t rank, const Layout& mode) {
  return padded("append", layout, rank, mode, true);
}

Layout prepend(const Layout& layout, size_t rank, const Layout& mode) {
  return padded("prepend", layout, rank, mode, false);
}

Layout replace(const Layout& layout, size_t i, const Layout& mode) {
  check_range("replace", layout, i, i + 1);
  if (layout.is_leaf()) return mode;
  ModeTree tree = ModeTree::tuple_of(layout.rank());
  ModeCursor entry = layout.root().front();
  for (size_t k = 0; k < layout.rank(); ++k, entry = entry.next()) tree.append(k == i ? mode.root() : entry);
  return Layout(std::move(tree));
}

Layout slice(const IntTuple& coordinate, const Layout& layout) { return slice_and_offset(coordinate, layout).first; }

Layout dice(const IntTuple& coordinate, const Layout& layout) {
  return Layout(sliced("dice", coordinate, layout.tree(), layout.shape(), false));
}

std::pair<Layout, int64_t> slice_and_offset(const IntTuple& coordinate, const Layout& layout) {
  const IntTuple shape = layout.shape();
  Layout kept(sliced("slice", coordinate, layout.tree(), shape, true));
  return {std::move(kept), crd2idx(coordinate, shape, layout.stride())};
}

}  // namespace helve::cute
