// Axe layouts as CuTe layouts and back.
// Dimensions keep their order and digits inside one change theirs, so that both sides agree on coordinates; their flat
// indices differ.
#include "helve/layout/from_cute.h"

#include <algorithm>

#include "helve/layout/notation.h"
#include "integers.h"

namespace helve {

namespace {

/// The digits of one dimension in the other order. The only place where digits are reversed.
template <class Digits>
Digits reversed(Digits digits) {
  std::reverse(digits.begin(), digits.end());
  return digits;
}

Layout from_modes(const cute::Layout& layout, int64_t offset, const Swizzle& swizzle) {
  Iters shard;
  for (size_t d = 0; d < layout.rank(); ++d) {
    Iters digits;
    const cute::Layout top = layout.mode(d);
    for (const cute::Mode& mode : top.modes()) digits.push_back({mode.extent, mode.stride, axes::m()});
    for (const Iter& iter : reversed(digits)) shard.push_back(iter);
  }
  Point origin;
  if (offset != 0) origin[axes::m()] = offset;
  return Layout(std::move(shard), {}, std::move(origin), swizzle);
}

cute::Layout mode_of(const Iters& digits) {
  std::vector<cute::Layout> modes;
  for (const Iter& iter : reversed(digits)) modes.emplace_back(iter.extent, iter.stride);
  if (modes.empty()) return cute::Layout(1, 0);
  return modes.size() == 1 ? modes[0] : cute::make_layout(modes);
}

}  // namespace

Layout from_cute(const cute::Layout& layout) { return from_modes(layout, 0, Swizzle{}); }

Layout from_cute(const cute::ComposedLayout& layout) {
  const std::vector<cute::Stage>& stages = layout.stages();
  const Swizzle* swizzle = stages.size() == 1 ? std::get_if<Swizzle>(&stages[0].map) : nullptr;
  if (swizzle == nullptr) {
    throw_layout_error(
        Code::CuteConversion,
        {{"layout", cute::to_string(layout)}, {"kind", "Axe"}, {"reason", "only a swizzle may follow the layout"}});
  }
  return from_modes(layout.inner(), stages[0].offset, *swizzle);
}

std::variant<cute::Layout, cute::ComposedLayout> to_cute(const Layout& layout, const std::vector<int64_t>& shape) {
  auto refuse = [&](const std::string& reason) {
    throw_layout_error(Code::CuteConversion, {{"layout", to_string(layout)}, {"kind", "CuTe"}, {"reason", reason}});
  };
  GroupedLayout grouped = layout.group(shape);
  for (const Iter& iter : layout.replica()) {
    if (iter.extent > 1 && iter.stride != 0) refuse("it has replicas");
  }
  for (const auto& [axis, value] : layout.offset()) {
    if (axis != axes::m() && value != 0) refuse("it has an offset on axis " + axis.name());
  }
  int64_t offset = layout.offset(axes::m());
  if (offset != 0 && layout.swizzle().identity()) refuse("it has an offset");
  std::vector<cute::Layout> modes;
  for (size_t d = 0; d < grouped.rank(); ++d) {
    for (const Iter& iter : grouped.block(d)) {
      if (iter.axis != axes::m()) refuse("iter " + to_string(iter) + " is on another axis than m");
    }
    modes.push_back(mode_of(grouped.block(d)));
  }
  cute::Layout inner = modes.empty()                             ? cute::Layout(1, 0)
                       : modes.size() == 1 && modes[0].is_leaf() ? modes[0]
                                                                 : cute::make_layout(modes);
  if (layout.swizzle().identity()) return inner;
  return cute::ComposedLayout(std::move(inner), {{offset, layout.swizzle()}});
}

}  // namespace helve
