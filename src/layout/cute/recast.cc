// Layouts of the same memory in other units.
// A unit of n elements is a digit below the layout's own; what does not fall on it is refused, not rounded.
#include <fmt/format.h>

#include "flat.h"
#include "helve/layout/cute/algebra.h"
#include "recast.h"

namespace helve::cute {

namespace {

void check_factor(const char* operation, int64_t n) {
  if (n < 1) throw_layout_error(Code::BelowOne, {{"operation", operation}, {"value", n}});
}

[[noreturn]] void refuse_recast(const char* operation, const Layout& layout, int64_t n, std::string reason) {
  throw_layout_error(
      Code::CuteRecast,
      {{"operation", operation}, {"layout", to_string(layout)}, {"factor", n}, {"reason", std::move(reason)}});
}

}  // namespace

Layout upcast(const Layout& layout, int64_t n) {
  check_factor("upcast", n);
  ModeTree tree = layout.tree();
  Wide inside = 0;  // the largest offset within a unit
  for (Mode& mode : tree.leaves) {
    auto [extent, stride] = mode;
    if (stride % n == 0) {
      mode.stride = stride / n;
      continue;
    }
    if (extent == 1) {
      mode.stride = stride / n + (stride > 0 ? 1 : 0);  // rounded up
      continue;
    }
    int64_t steps = stride > 0 && n % stride == 0 ? n / stride : 0;  // to the next unit
    if (steps == 0 || (extent % steps != 0 && steps % extent != 0)) {
      refuse_recast("upcast", layout, n, fmt::format("mode {}:{} cuts units", extent, stride));
    }
    inside += Wide{std::min(extent, steps) - 1} * stride;
    mode = {extent % steps == 0 ? extent / steps : 1, 1};
  }
  if (inside >= n) refuse_recast("upcast", layout, n, "several modes together leave a unit");
  return Layout(std::move(tree));
}

Layout downcast(const Layout& layout, int64_t n) {
  check_factor("downcast", n);
  ModeTree tree = layout.tree();
  Mode* unit = nullptr;
  for (Mode& mode : tree.leaves) {
    if (mode.stride != 1 && mode.stride != -1) continue;
    if (unit != nullptr && unit->extent > 1 && mode.extent > 1) {
      throw_layout_error(Code::CuteSeveralUnits, {{"layout", to_string(layout)}});
    }
    if (unit == nullptr || mode.extent > 1) unit = &mode;
  }
  if (unit == nullptr) refuse_recast("downcast", layout, n, "no mode has stride 1");
  for (Mode& mode : tree.leaves) {
    if (&mode == unit) {
      mode.extent = checked_multiply(mode.extent, n, "the size of a layout");
    } else {
      mode.stride = checked_multiply(mode.stride, n, "a stride");
    }
  }
  return Layout(std::move(tree));
}

Layout recast(const Layout& layout, int64_t old_bits, int64_t new_bits) {
  return recast_units(layout, old_bits, new_bits);
}

}  // namespace helve::cute
