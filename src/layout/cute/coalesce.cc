// Shorter layouts with the same values: coalescing and filtering.
// Every other operation begins with one of these, so they are single passes over the leaves.
#include "flat.h"
#include "helve/layout/cute/algebra.h"

namespace helve::cute {

namespace {

using Unary = Layout (*)(const Layout&);

/// `operation` on the parts of `layout` that stand at the leaves of `profile`; the rest stays.
void apply_below(ModeTree& result, const char* name, Unary operation, ModeCursor at, IntCursor profile) {
  if (profile.is_leaf()) {
    result.append(operation(Layout(ModeTree::at(at))).tree());
    return;
  }
  if (profile.rank() > at.rank()) {
    Layout part(ModeTree::at(at));
    throw_layout_error(Code::CuteRank, {{"operation", name},
                                        {"operand", "profile " + to_string(profile)},
                                        {"given", static_cast<int64_t>(profile.rank())},
                                        {"needed", to_string(part) + " has " + std::to_string(at.rank())}});
  }
  size_t rank = at.rank();
  size_t given = profile.rank();
  result.profile.push_back(static_cast<uint16_t>(rank));
  at = at.front();
  profile = profile.front();
  for (size_t i = 0; i < rank; ++i, at = at.next()) {
    if (i < given) {
      apply_below(result, name, operation, at, profile);
      profile = profile.next();
    } else {
      result.append(at);
    }
  }
}

Layout by_profile(const char* name, Unary operation, const Layout& layout, const IntTuple& profile) {
  ModeTree result;
  apply_below(result, name, operation, layout.root(), profile.root());
  return Layout(std::move(result));
}

}  // namespace

Layout coalesce(const Layout& layout) {
  Modes modes;
  append_coalesced(modes, layout.modes().begin(), layout.modes().end());
  return flat_layout(modes);
}

Layout coalesce(const Layout& layout, const IntTuple& profile) {
  return by_profile("coalesce", coalesce, layout, profile);
}

Layout filter_zeros(const Layout& layout) {
  ModeTree tree = layout.tree();
  for (Mode& mode : tree.leaves) {
    if (mode.stride == 0) mode.extent = 1;
  }
  return Layout(std::move(tree));
}

Layout filter(const Layout& layout) {
  Modes kept;
  for (const Mode& mode : layout.modes()) {
    if (mode.stride != 0) append_coalesced(kept, &mode, &mode + 1);
  }
  return flat_layout(kept);
}

Layout filter(const Layout& layout, const IntTuple& profile) { return by_profile("filter", filter, layout, profile); }

Layout nullspace(const Layout& layout) {
  Modes modes;
  int64_t prefix = 1;
  for (const Mode& mode : layout.modes()) {
    if (mode.stride == 0 && mode.extent > 1) modes.push_back({mode.extent, prefix});
    prefix *= mode.extent;
  }
  return flat_layout(modes);
}

}  // namespace helve::cute
