// Composition of a layout with one whose values are its coordinates: R(c) = a(b(c)). a(c_0, c_1, ...) is the sum of
// a_i(c_i) over its modes a_i. Where each stride of b goes along one entry, the summands depend on leaves of their own,
// so that R exists exactly where every a_i o b_i does. Else the entries become digits of one number, far enough apart
// that they never carry, and R is the composition of two ordinary layouts.
#include <algorithm>

#include "checked.h"
#include "helve/layout/cute/coordinates.h"
#include "structure.h"
#include "unsupported.h"

namespace helve::cute {

namespace {

/// The entry along which each leaf's stride goes, 0 for a stride of 0; nothing where one goes along several.
std::optional<std::vector<size_t>> entries_of_leaves(const std::vector<Layout>& entries) {
  std::vector<size_t> along;
  for (size_t leaf = 0; leaf < entries[0].modes().size(); ++leaf) {
    size_t entry = 0;
    int count = 0;
    for (size_t i = 0; i < entries.size(); ++i) {
      if (entries[i].modes()[leaf].stride == 0) continue;
      entry = i;
      ++count;
    }
    if (count > 1) return std::nullopt;
    along.push_back(entry);
  }
  return along;
}

Layout compose_apart(const std::vector<Layout>& modes, const std::vector<Layout>& entries,
                     const std::vector<size_t>& along) {
  // Refuses leaves of one entry that carry together.
  for (size_t i = 0; i < modes.size(); ++i) (void)composition(modes[i], entries[i]);
  ModeTree result;
  size_t leaf = 0;
  for (uint16_t token : entries[0].tree().profile) {
    if (token != kLeaf) {
      result.profile.push_back(token);
      continue;
    }
    const size_t i = along[leaf];
    const Mode& step = entries[i].modes()[leaf++];
    result.append(composition(modes[i], Layout(step.extent, step.stride)).root());
  }
  return Layout(std::move(result));
}

Layout compose_as_numbers(const std::vector<Layout>& modes, const std::vector<Layout>& entries,
                          const CoordinateLayout& b) {
  Modes outer;
  ModeTree inner = entries[0].tree();
  for (Mode& mode : inner.leaves) mode.stride = 0;
  Wide weight = 1;
  for (size_t i = 0; i < modes.size(); ++i) {
    for (size_t leaf = 0; leaf < inner.leaves.size(); ++leaf) {
      const Mode& step = entries[i].modes()[leaf];
      if (step.stride < 0 && step.extent > 1) {
        refuse_unsupported("composition", to_string(b), "a stride along several entries goes down",
                           "reverse that mode, or take the entries one by one");
      }
      inner.leaves[leaf].stride = narrow(inner.leaves[leaf].stride + weight * step.stride, "a stride");
    }
    // The last leaf of a mode goes on as far as the entry reaches; coordinates of several entries are small.
    const int64_t reach = entries[i].cosize();
    Wide size = 1;
    for (size_t k = 0; k < modes[i].modes().size(); ++k) {
      Mode mode = modes[i].modes()[k];
      const bool last = k + 1 == modes[i].modes().size();
      if (last) mode.extent = std::max(mode.extent, static_cast<int64_t>(reach / size + 1));
      size *= mode.extent;
      outer.push_back(mode);
    }
    weight = narrow(weight * size, "the number of coordinates");
  }
  return composition(Layout(outer.begin(), outer.end()), Layout(std::move(inner)));
}

}  // namespace

Layout composition(const Layout& a, const CoordinateLayout& b) {
  std::vector<Layout> modes, entries;
  for (size_t i = 0; i < b.paths().size(); ++i) {
    modes.push_back(a.mode(b.paths()[i]));
    entries.push_back(b.entry(i));
  }
  if (const auto along = entries_of_leaves(entries)) return compose_apart(modes, entries, *along);
  return compose_as_numbers(modes, entries, b);
}

}  // namespace helve::cute
