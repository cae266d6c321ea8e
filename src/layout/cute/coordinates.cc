// Coordinates as numbers, and back.
// A value (c_0, c_1, ...) is the number c_0 + c_1 R + c_2 R^2 + ..., with R so large that sums of strides never carry:
// the numbers then add as the coordinates do.
#include "helve/layout/cute/coordinates.h"

#include <fmt/format.h>

#include "checked.h"
#include "helve/support/text.h"
#include "structure.h"
#include "unsupported.h"

namespace helve::cute {

Basis multiply(const Basis& a, int64_t factor) {
  Basis result;
  if (factor == 0) return result;
  for (const BasisTerm& term : a) result.push_back({term.path, checked_multiply(term.value, factor, "a stride")});
  return result;
}

Basis add(const Basis& a, const Basis& b) {
  Basis result = a;
  for (const BasisTerm& term : b) {
    auto at = std::lower_bound(result.begin(), result.end(), term,
                               [](const BasisTerm& x, const BasisTerm& y) { return x.path < y.path; });
    if (at == result.end() || at->path != term.path) {
      result.insert(at, term);
      continue;
    }
    at->value = checked_add(at->value, term.value, "a stride");
    if (at->value == 0) result.erase(at);
  }
  return result;
}

std::string to_string(const Basis& basis) {
  if (basis.empty()) return "0";
  return join(basis, "+", [](const BasisTerm& term) {
    std::string text = fmt::format("{}", term.value);
    for (size_t k = term.path.size(); k-- > 0;) text += fmt::format("@{}", term.path[k]);
    return text;
  });
}

namespace {

using Paths = std::vector<std::vector<size_t>>;

int64_t radix(size_t entries) { return int64_t{1} << (62 / entries); }

/// Appends the least structure that has the paths [first, last), which agree in their first `level` entries, and the
/// paths of its leaves. Throws when one path goes through another.
void append_structure(const Paths& paths, size_t first, size_t last, size_t level, Profile& profile, Paths& leaves,
                      std::vector<size_t>& at) {
  if (level == kMaxDepth) refuse_depth();
  if (first == last || paths[first].size() == level) {
    if (first != last && paths[last - 1].size() != level) {
      refuse_unsupported("CoordinateLayout", to_string(Basis{{paths[last - 1], 1}}),
                         "a stride goes along " + to_string(Basis{{paths[first], 1}}) + " as well",
                         "name entries that are not inside one another");
    }
    profile.push_back(kLeaf);
    leaves.push_back(at);
    return;
  }
  const size_t entries = paths[last - 1][level] + 1;
  check_entries(entries);
  profile.push_back(static_cast<uint16_t>(entries));
  for (size_t entry = 0, begin = first; entry < entries; ++entry) {
    size_t end = begin;
    while (end < last && paths[end][level] == entry) ++end;
    at.push_back(entry);
    append_structure(paths, begin, end, level + 1, profile, leaves, at);
    at.pop_back();
    begin = end;
  }
}

/// Entry k of a number: the digits to the base R that lie around 0, the last entry whatever is left.
std::vector<int64_t> entries_of(int64_t number, size_t count) {
  const int64_t base = radix(count);
  std::vector<int64_t> entries(count);
  for (size_t k = 0; k + 1 < count; ++k) {
    entries[k] = floor_modulo(number, base);
    if (entries[k] >= base / 2) entries[k] -= base;
    number = (number - entries[k]) / base;
  }
  entries[count - 1] = number;
  return entries;
}

}  // namespace

CoordinateLayout::CoordinateLayout(const IntTuple& shape, const std::vector<Basis>& strides) {
  if (strides.size() != shape.leaves.size()) {
    throw_layout_error(Code::ShapeRank,
                       {{"operation", "CoordinateLayout"},
                        {"left", fmt::format("shape {} of {} leaves", to_string(shape), shape.leaves.size())},
                        {"right", fmt::format("{} strides", strides.size())}});
  }
  Paths all;
  for (const Basis& stride : strides) {
    for (const BasisTerm& term : stride) all.push_back(term.path);
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  std::vector<size_t> at;
  append_structure(all, 0, all.size(), 0, codomain_, paths_, at);
  if (paths_.size() > 15) {
    throw_layout_error(
        Code::CuteLimit,
        {{"given", static_cast<int64_t>(paths_.size())}, {"what", "entries of a coordinate"}, {"limit", int64_t{15}}});
  }
  ModeTree tree;
  tree.profile = shape.profile;
  for (size_t k = 0; k < strides.size(); ++k) {
    Wide number = 0;
    for (const BasisTerm& term : strides[k]) {
      auto entry = std::find(paths_.begin(), paths_.end(), term.path) - paths_.begin();
      Wide weight = 1;
      for (; entry > 0; --entry) weight *= radix(paths_.size());
      number += weight * term.value;
    }
    tree.leaves.push_back({shape.leaves[k], narrow(number, "a stride")});
  }
  inner_ = Layout(std::move(tree));
  check_bounds(0);
}

CoordinateLayout CoordinateLayout::with_inner(Layout inner) const {
  CoordinateLayout result = *this;
  result.inner_ = std::move(inner);
  result.check_bounds(0);
  return result;
}

void CoordinateLayout::check_bounds(int64_t past) const {
  const int64_t limit = radix(paths_.size()) / 4;
  std::vector<Wide> reach(paths_.size(), 0);
  int64_t before = 1;
  for (size_t k = 0; k < inner_.modes().size(); ++k) {
    const Mode& mode = inner_.modes()[k];
    int64_t steps = mode.extent - 1;
    if (k + 1 == inner_.modes().size()) steps = std::max(steps, past / before);
    before *= mode.extent;
    const std::vector<int64_t> entries = entries_of(mode.stride, paths_.size());
    for (size_t i = 0; i < entries.size(); ++i) reach[i] += Wide{steps} * (entries[i] < 0 ? -entries[i] : entries[i]);
  }
  for (Wide each : reach) {
    if (each < limit) continue;
    refuse_unsupported("CoordinateLayout", to_string(*this),
                       fmt::format("of {} entries, each stays below {}", paths_.size(), limit),
                       "keep fewer entries or smaller extents");
  }
}

void CoordinateLayout::check_reach(const Tiler& tiler) const {
  if (const auto* layout = std::get_if<Layout>(&tiler.value)) {
    check_bounds(checked_add(layout->cosize(), size(), "the reach of a tiler"));
  } else if (const auto* modes = std::get_if<TilerTuple>(&tiler.value)) {
    for (size_t i = 0; i < std::min(modes->size(), rank()); ++i) mode(i).check_reach((*modes)[i]);
  }
}

IntTuple CoordinateLayout::value(int64_t number) const {
  IntTuple coordinate;
  coordinate.profile = codomain_;
  for (int64_t entry : entries_of(number, paths_.size())) coordinate.leaves.push_back(entry);
  return coordinate;
}

Layout CoordinateLayout::entry(size_t i) const {
  ModeTree tree = inner_.tree();
  for (Mode& mode : tree.leaves) mode.stride = entries_of(mode.stride, paths_.size())[i];
  return Layout(std::move(tree));
}

std::vector<Basis> CoordinateLayout::strides() const {
  std::vector<Basis> all;
  for (const Mode& mode : inner_.modes()) {
    Basis& stride = all.emplace_back();
    const std::vector<int64_t> entries = entries_of(mode.stride, paths_.size());
    for (size_t i = 0; i < entries.size(); ++i) {
      if (entries[i] != 0) stride.push_back({paths_[i], entries[i]});
    }
  }
  return all;
}

namespace {

void append_paths(IntCursor at, std::vector<size_t>& path, std::vector<Basis>& strides) {
  if (at.is_leaf()) {
    strides.push_back({{path, 1}});
    return;
  }
  const size_t rank = at.rank();
  at = at.front();
  for (size_t i = 0; i < rank; ++i, at = at.next()) {
    path.push_back(i);
    append_paths(at, path, strides);
    path.pop_back();
  }
}

void append_strides(std::string& text, IntCursor at, const std::vector<Basis>& strides, size_t& leaf) {
  if (at.is_leaf()) {
    text += to_string(strides[leaf++]);
    return;
  }
  const size_t rank = at.rank();
  at = at.front();
  for (size_t i = 0; i < rank; ++i, at = at.next()) {
    text += i == 0 ? '(' : ',';
    append_strides(text, at, strides, leaf);
  }
  text += rank == 1 ? ",)" : ")";
}

}  // namespace

CoordinateLayout make_identity_layout(const IntTuple& shape) {
  std::vector<size_t> path;
  std::vector<Basis> strides;
  append_paths(shape.root(), path, strides);
  return CoordinateLayout(shape, strides);
}

std::string to_string(const CoordinateLayout& layout) {
  const IntTuple shape = layout.shape();
  std::string text = to_string(shape) + ":";
  size_t leaf = 0;
  append_strides(text, shape.root(), layout.strides(), leaf);
  return text;
}

CoordinateLayout composition(const CoordinateLayout& layout, const Tiler& tiler) {
  layout.check_reach(tiler);
  return layout.with_inner(composition(layout.inner(), tiler));
}

CoordinateLayout slice(const IntTuple& coordinate, const CoordinateLayout& layout) {
  return layout.with_inner(slice(coordinate, layout.inner()));
}

std::pair<CoordinateLayout, IntTuple> slice_and_offset(const IntTuple& coordinate, const CoordinateLayout& layout) {
  return {slice(coordinate, layout), layout(coordinate)};
}

}  // namespace helve::cute
