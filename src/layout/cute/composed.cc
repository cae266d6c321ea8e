// Composed layouts: evaluation, composition, inverses, units.
// Whether a composed layout is a layout after all is answered by its values.
#include "helve/layout/cute/composed.h"

#include <fmt/format.h>

#include <bit>

#include "checked.h"
#include "flat.h"
#include "recast.h"
#include "swizzle_bits.h"
#include "table.h"
#include "unsupported.h"

namespace helve::cute {

namespace {

void check_size(const char* operation, const ComposedLayout& layout) {
  if (layout.size() <= kLayoutStepLimit) return;
  throw_layout_error(Code::LayoutBudget,
                     {{"operation", operation}, {"layout", to_string(layout)}, {"limit", kLayoutStepLimit}});
}

}  // namespace

ComposedLayout::ComposedLayout(Layout inner, std::vector<Stage> stages)
    : inner_(std::move(inner)), stages_(std::move(stages)) {
  HELVE_CHECK(!stages_.empty(), "a composed layout without a stage");
}

ComposedLayout ComposedLayout::then(Stage stage) const {
  std::vector<Stage> stages = stages_;
  stages.push_back(std::move(stage));
  return ComposedLayout(inner_, std::move(stages));
}

int64_t ComposedLayout::through(int64_t value) const {
  for (const Stage& stage : stages_) {
    value = checked_add(value, stage.offset, "an offset");
    if (const auto* swizzle = std::get_if<Swizzle>(&stage.map)) {
      value = swizzle->apply(value);
    } else {
      value = std::get<Layout>(stage.map)(value);
    }
  }
  return value;
}

int64_t ComposedLayout::cosize() const {
  check_size("cosize", *this);
  int64_t largest = 0;
  for (int64_t i = 0; i < size(); ++i) largest = std::max(largest, (*this)(i));
  return checked_add(largest, 1, "the cosize of a layout");
}

std::string to_string(const ComposedLayout& layout) {
  std::string text = to_string(layout.inner());
  for (const Stage& stage : layout.stages()) {
    std::string map = std::visit([](const auto& m) { return to_string(m); }, stage.map);
    text = fmt::format("{} o {} o {}", map, stage.offset, text);
  }
  return text;
}

std::string print_layout(const ComposedLayout& layout) {
  IntTuple coordinate = IntTuple::tuple_of(2);
  coordinate.append_leaf(0);
  coordinate.append_leaf(0);
  return table_text(to_string(layout), layout.inner().shape(), 1, [&](int64_t m, int64_t n) {
    coordinate.leaves[0] = m;
    coordinate.leaves[1] = n;
    return layout(coordinate);
  });
}

ComposedLayout slice(const IntTuple& coordinate, const ComposedLayout& layout) {
  auto [kept, offset] = slice_and_offset(coordinate, layout.inner());
  std::vector<Stage> stages = layout.stages();
  stages[0].offset = checked_add(stages[0].offset, offset, "an offset");
  return ComposedLayout(std::move(kept), std::move(stages));
}

ComposedLayout composition(const Swizzle& swizzle, const Layout& layout) {
  return ComposedLayout(layout, {{0, swizzle}});
}

ComposedLayout composition(const Swizzle& swizzle, const ComposedLayout& layout) { return layout.then({0, swizzle}); }

ComposedLayout composition(const Layout& a, const ComposedLayout& layout) { return layout.then({0, a}); }

ComposedLayout composition(const ComposedLayout& layout, const Tiler& b) {
  return layout.with_inner(composition(layout.inner(), b));
}

namespace {

/// The bit that A makes of bit `from`; -1 when it makes no single bit.
int bit_image(const Layout& a, int from) {
  int64_t value = a(int64_t{1} << from);
  return value > 0 && std::has_single_bit(static_cast<uint64_t>(value)) ? std::countr_zero(static_cast<uint64_t>(value))
                                                                        : -1;
}

}  // namespace

ComposedLayout composition(const Layout& a, const Swizzle& swizzle) {
  std::string shown = to_string(a) + " o " + to_string(swizzle);
  int bits = 0;  // those that an index of A can have
  while (bits < swizzle.bits && int64_t{1} << (read_base(swizzle) + bits) < a.size()) ++bits;
  if (bits == 0) return composition(make_swizzle(0, swizzle.base, swizzle.shift), a);
  int read = bit_image(a, read_base(swizzle));
  int written = bit_image(a, written_base(swizzle));
  for (int i = 0; i < bits; ++i) {
    int r = bit_image(a, read_base(swizzle) + i);
    int w = bit_image(a, written_base(swizzle) + i);
    if (r < 0 || w < 0 || r != read + i || w != written + i || std::abs(r - w) < bits) {
      refuse_unsupported("composition", shown, "the swizzled bits do not go to runs of bits", kKeepStages);
    }
  }
  ComposedLayout result = composition(make_swizzle(bits, std::min(read, written), read - written), a);
  check_size("composition", result);
  for (int64_t i = 0; i < a.size(); ++i) {
    if (int64_t value = a(swizzle.apply(i)); value != result(i)) {
      refuse_unsupported("composition", shown,
                         fmt::format("at index {} it is {}, {} of the left operand is {}", i, value,
                                     to_string(std::get<Swizzle>(result.stages()[0].map)), result(i)),
                         kKeepStages);
    }
  }
  return result;
}

namespace {

/// Digits with the values f(0), f(1), ..., f(extent - 1); none when there are none.
template <class Value>
std::optional<Modes> fit(int64_t extent, Value&& f) {
  Modes modes;
  for (int64_t step = 1; extent > 1;) {
    int64_t stride = f(step);
    int64_t even = 1;
    while (even < extent && f(even * step) == even * stride) ++even;
    if (extent % even != 0) return std::nullopt;
    modes.push_back({even, stride});
    extent /= even;
    step *= even;
  }
  if (modes.empty()) modes.push_back({1, 0});
  return modes;
}

}  // namespace

std::optional<std::pair<Layout, int64_t>> affine(const ComposedLayout& layout) {
  check_size("affine", layout);
  int64_t origin = layout(0);
  ModeTree tree;
  int64_t prefix = 1;
  size_t leaf = 0;
  for (uint16_t token : layout.inner().tree().profile) {
    if (token != kLeaf) {
      tree.profile.push_back(token);
      continue;
    }
    int64_t extent = layout.inner().modes()[leaf++].extent;
    auto modes = fit(extent, [&](int64_t x) { return layout(x * prefix) - origin; });
    if (!modes) return std::nullopt;
    if (modes->size() > 1) tree.profile.push_back(static_cast<uint16_t>(modes->size()));
    for (const Mode& mode : *modes) tree.append_leaf(mode);
    prefix *= extent;
  }
  Layout result(std::move(tree));
  for (int64_t i = 0; i < layout.size(); ++i) {
    if (layout(i) != result(i) + origin) return std::nullopt;
  }
  return std::pair(result, origin);
}

namespace {

const Swizzle& single_swizzle(const char* operation, const ComposedLayout& layout) {
  const Stage& stage = layout.stages()[0];
  const auto* swizzle = std::get_if<Swizzle>(&stage.map);
  if (layout.stages().size() != 1 || swizzle == nullptr || stage.offset != 0) {
    refuse_unsupported(operation, to_string(layout), "it is not one swizzle of a layout without an offset",
                       "invert the stages one by one");
  }
  return *swizzle;
}

}  // namespace

ComposedLayout right_inverse(const ComposedLayout& layout) {
  const Swizzle& swizzle = single_swizzle("right_inverse", layout);
  Layout inverse = right_inverse(layout.inner());
  // Blocks of 2^base move together; the domain ends before the first that leaves the inverse's.
  int64_t block = int64_t{1} << swizzle.base;
  int64_t period = size(swizzle);
  int64_t domain = swizzle.identity() ? inverse.size() : inverse.size() / period * period;
  for (; domain < inverse.size(); domain += block) {
    if (domain % period / block > kLayoutStepLimit) break;
    if (swizzle.apply(domain) + block > inverse.size()) break;
  }
  domain = std::min(domain, inverse.size());
  if (domain == 0) domain = std::min(block, inverse.size());
  return ComposedLayout(Layout(domain, 1), {{0, swizzle}, {0, inverse}});
}

ComposedLayout left_inverse(const ComposedLayout& layout) {
  const Swizzle& swizzle = single_swizzle("left_inverse", layout);
  return ComposedLayout(Layout(layout.cosize(), 1), {{0, swizzle}, {0, left_inverse(layout.inner())}});
}

Layout max_common_layout(const ComposedLayout& a, const Layout& b) {
  const Swizzle& swizzle = single_swizzle("max_common_layout", a);
  Layout shared = max_common_layout(a.inner(), b);
  int64_t together = int64_t{1} << swizzle.base;
  if (swizzle.identity() || shared.size() <= together) return shared;
  // Whole modes below the limit, then as much of the next as fits.
  Modes kept;
  for (const Mode& mode : shared.modes()) {
    Mode part{std::min(mode.extent, together), mode.stride};
    append_coalesced(kept, &part, &part + 1);
    together /= part.extent;
    if (part.extent != mode.extent) break;
  }
  return flat_layout(kept);
}

namespace {

template <class Change>
ComposedLayout change_units(const ComposedLayout& layout, Change&& change) {
  std::vector<Stage> stages = layout.stages();
  for (Stage& stage : stages) {
    const auto* swizzle = std::get_if<Swizzle>(&stage.map);
    if (swizzle == nullptr) {
      refuse_unsupported("a change of units", to_string(layout), "a stage is a layout",
                         "change the units before composing");
    }
    stage = change(stage.offset, *swizzle);
  }
  return ComposedLayout(layout.inner(), std::move(stages));
}

}  // namespace

ComposedLayout upcast(const ComposedLayout& layout, int64_t n) {
  ComposedLayout result = change_units(layout, [&](int64_t offset, const Swizzle& swizzle) {
    Stage stage{0, upcast(swizzle, n)};
    if (offset % n != 0) {
      throw_layout_error(Code::CuteRecast, {{"operation", "upcast"},
                                            {"layout", to_string(layout)},
                                            {"factor", n},
                                            {"reason", fmt::format("offset {} is inside a unit", offset)}});
    }
    stage.offset = offset / n;
    return stage;
  });
  return result.with_inner(upcast(layout.inner(), n));
}

ComposedLayout downcast(const ComposedLayout& layout, int64_t n) {
  ComposedLayout result = change_units(layout, [&](int64_t offset, const Swizzle& swizzle) {
    return Stage{checked_multiply(offset, n, "an offset"), downcast(swizzle, n)};
  });
  return result.with_inner(downcast(layout.inner(), n));
}

ComposedLayout recast(const ComposedLayout& layout, int64_t old_bits, int64_t new_bits) {
  return recast_units(layout, old_bits, new_bits);
}

}  // namespace helve::cute
