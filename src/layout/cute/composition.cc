// Composition: R(c) = A(B(c)), exactly when a layout R of B's shape has these values.
// A, coalesced, is A(x) = d_0 x + sum_i delta_i floor(x / P_i) over its borders P_1 | P_2 | ..., delta_i other than 0.
// A mode of B is cut where its values stop being even (such a cut is forced, or there is no layout), and a sum of modes
// has the sum of their values exactly when the carries across the borders cancel; without any carry they do.
#include "composition.h"

#include <fmt/format.h>

#include "helve/layout/cute/algebra.h"
#include "structure.h"

namespace helve::cute {

Outer::Outer(const Modes& modes) : modes_(coalesce_endless(modes)) {
  int64_t border = 1;
  for (size_t i = 0; i + 1 < modes_.size(); ++i) {
    border *= modes_[i].extent;
    borders_.push_back({border, modes_[i + 1].stride - Wide{modes_[i].extent} * modes_[i].stride});
  }
}

Wide Outer::at(int64_t index) const {
  Wide sum = 0;
  const Mode* mode = modes_.begin();
  for (const Mode* last = modes_.end() - 1; mode != last; ++mode) {
    sum += Wide{floor_modulo(index, mode->extent)} * mode->stride;
    index = floor_divide(index, mode->extent);
  }
  return sum + Wide{index} * mode->stride;
}

int64_t Outer::first_uneven(int64_t extent, int64_t stride, Steps& steps) const {
  int64_t first = extent;
  Wide change = 0;
  for (const Border& border : borders_) {
    int64_t rest = floor_modulo(stride, border.at);
    if (rest == 0) continue;
    int64_t carry = ceil_divide(border.at, rest);  // the first multiple of rest past the border
    if (carry > first) continue;
    if (carry < first) change = 0;
    first = carry;
    change += border.jump;
  }
  if (first >= extent) return extent;
  if (change != 0) return first;
  // Carries at one place cancel there; look on.
  Wide step = at(stride);
  for (int64_t x = first; x < extent; ++x) {
    steps.count();
    if (at(x * stride) != x * step) return x;
  }
  return extent;
}

int64_t Outer::idle_stride(int64_t stride) const {
  Wide rest = stride < 0 ? -Wide{stride} : Wide{stride};
  for (size_t i = 0; i + 1 < modes_.size(); ++i) rest = (rest + modes_[i].extent - 1) / modes_[i].extent;
  Wide value = (stride < 0 ? -rest : rest) * modes_.back().stride;
  return value == static_cast<int64_t>(value) ? static_cast<int64_t>(value) : 0;
}

bool Outer::carries(const Pieces& pieces) const {
  for (const Border& border : borders_) {
    Wide sum = 0;
    for (const Piece& piece : pieces) sum += Wide{piece.extent - 1} * floor_modulo(piece.stride, border.at);
    if (sum >= border.at) return true;
  }
  return false;
}

namespace {

class Composer {
 public:
  /// `a` may be null: then the modes name the left operand.
  Composer(const Modes& modes, const Layout* a, const Layout& b)
      : modes_(modes), a_(a), b_(b), outer_(modes), steps_("composition") {}

  Layout run() {
    ModeTree result;
    result.leaves.reserve(b_.modes().size());
    size_t leaf = 0;
    for (uint16_t token : b_.tree().profile) {
      if (token == kLeaf) {
        append_leaf(result, leaf++);
      } else {
        result.profile.push_back(token);
      }
    }
    if (pieces_.size() > 1 && outer_.carries(pieces_)) check_sums();
    return Layout(std::move(result));
  }

 private:
  void append_leaf(ModeTree& result, size_t leaf) {
    auto [extent, stride] = b_.modes()[leaf];
    if (extent == 1) {
      result.append_leaf({1, outer_.idle_stride(stride)});
      return;
    }
    size_t first = result.leaves.size();
    int64_t step = 1;
    while (true) {
      int64_t even = outer_.first_uneven(extent, stride, steps_);
      if (extent % even != 0) refuse_cut(leaf, step, even, stride);
      int64_t value = narrow(outer_.at(stride), "the stride of a composition");
      pieces_.push_back({even, stride, value, leaf, step});
      result.leaves.push_back({even, value});
      extent /= even;
      if (extent == 1) break;
      stride *= even;
      step *= even;
    }
    size_t count = result.leaves.size() - first;
    if (count > 1) result.profile.push_back(static_cast<uint16_t>(count));
    for (size_t k = 0; k < count; ++k) result.profile.push_back(kLeaf);
  }

  [[noreturn]] void refuse(const IntTuple& coordinate, Wide value, Wide expected) const {
    throw_layout_error(Code::CuteComposition, {{"left", to_string(a_ ? *a_ : flat_layout(modes_))},
                                               {"right", to_string(b_)},
                                               {"shape", to_string(b_.shape())},
                                               {"coordinate", to_string(coordinate)},
                                               {"value", narrow(value, "an offset")},
                                               {"expected", narrow(expected, "an offset")}});
  }

  /// A layout whose values are even below coordinate `even` of a leaf, a number that does not divide the extent, is
  /// even there as well.
  [[noreturn]] void refuse_cut(size_t leaf, int64_t step, int64_t even, int64_t stride) const {
    IntTuple coordinate = b_.shape();
    for (int64_t& digit : coordinate.leaves) digit = 0;
    coordinate.leaves[leaf] = step * even;
    refuse(coordinate, outer_.at(stride * even), outer_.at(stride) * even);
  }

  /// A(sum of pieces) = sum of A(piece) for all digits, or a refusal: with the colexicographically first digits where
  /// not, or with the largest ones when the first are far. One border alone always shows at the largest digits.
  void check_sums() {
    Digits largest;
    for (const Piece& piece : pieces_) largest.push_back(piece.extent - 1);
    bool refuted = difference(largest) != 0;
    int64_t left = kNearDigits;
    Digits digits(pieces_.size(), 0);
    while (advance(digits)) {
      if (difference(digits) != 0) refuse_sum(digits);
      if (refuted && --left == 0) refuse_sum(largest);
      if (!refuted) steps_.count();
    }
  }

  using Digits = InlineVector<int64_t, 8>;
  static constexpr int64_t kNearDigits = 4096;

  bool advance(Digits& digits) const {
    for (size_t k = 0; k < digits.size(); ++k) {
      if (digits[k] < pieces_[k].extent - 1) {
        ++digits[k];
        return true;
      }
      digits[k] = 0;
    }
    return false;
  }

  std::pair<Wide, Wide> value_and_expected(const Digits& digits) const {
    int64_t index = 0;
    Wide expected = 0;
    for (size_t k = 0; k < digits.size(); ++k) {
      index += digits[k] * pieces_[k].stride;
      expected += Wide{digits[k]} * pieces_[k].value;
    }
    return {outer_.at(index), expected};
  }

  Wide difference(const Digits& digits) const {
    auto [value, expected] = value_and_expected(digits);
    return value - expected;
  }

  [[noreturn]] void refuse_sum(const Digits& digits) const {
    IntTuple coordinate = b_.shape();
    for (int64_t& digit : coordinate.leaves) digit = 0;
    for (size_t k = 0; k < digits.size(); ++k) coordinate.leaves[pieces_[k].leaf] += digits[k] * pieces_[k].step;
    auto [value, expected] = value_and_expected(digits);
    refuse(coordinate, value, expected);
  }

  const Modes& modes_;
  const Layout* a_;
  const Layout& b_;
  Outer outer_;
  Pieces pieces_;
  Steps steps_;
};

}  // namespace

void Steps::refuse() const {
  throw_layout_error(
      Code::LayoutBudget,
      {{"operation", operation_}, {"layout", "operands whose carries cancel"}, {"limit", kLayoutStepLimit}});
}

Layout composition(const Layout& a, const Layout& b) { return Composer(a.modes(), &a, b).run(); }

Layout compose(const Modes& a, const Layout& b) { return Composer(a, nullptr, b).run(); }

Layout composition(const Layout& a, const Tiler& b) {
  return by_mode("composition", a, b, [](const Layout& x, const Layout& y) { return composition(x, y); });
}

// -- tilers -----------------------------------------------------------------------------------------------------------

namespace {

Tiler tiler_at(IntCursor at) {
  if (at.is_leaf()) return *at.leaves == kAll ? Tiler() : Tiler(Layout(*at.leaves, 1));
  TilerTuple modes;
  size_t rank = at.rank();
  at = at.front();
  for (size_t i = 0; i < rank; ++i, at = at.next()) modes.push_back(tiler_at(at));
  return Tiler(std::move(modes));
}

}  // namespace

Tiler::Tiler(const IntTuple& tuple) : Tiler(tiler_at(tuple.root())) {}

std::string to_string(const Tiler& tiler) {
  if (const auto* layout = std::get_if<Layout>(&tiler.value)) return to_string(*layout);
  const auto* modes = std::get_if<TilerTuple>(&tiler.value);
  if (modes == nullptr) return "_";
  std::string text = "<";
  for (const Tiler& mode : *modes) text += (text.size() > 1 ? "," : "") + to_string(mode);
  return text + ">";
}

void check_tiler(const char* operation, const Layout& layout, const TilerTuple& modes) {
  if (modes.empty()) throw_layout_error(Code::CuteNothingLeft, {{"operation", operation}});
  if (modes.size() <= layout.rank()) return;
  throw_layout_error(Code::CuteRank, {{"operation", operation},
                                      {"operand", "tiler " + to_string(Tiler(modes))},
                                      {"given", static_cast<int64_t>(modes.size())},
                                      {"needed", fmt::format("{} has {}", to_string(layout), layout.rank())}});
}

Layout by_mode(const char* operation, const Layout& a, const Tiler& tiler, Binary apply) {
  if (const auto* layout = std::get_if<Layout>(&tiler.value)) return apply(a, *layout);
  const auto* modes = std::get_if<TilerTuple>(&tiler.value);
  if (modes == nullptr) return a;
  check_tiler(operation, a, *modes);
  ModeTree result = ModeTree::tuple_of(a.rank());
  ModeCursor entry = a.root().front();
  for (size_t i = 0; i < a.rank(); ++i, entry = entry.next()) {
    if (i < modes->size()) {
      result.append(by_mode(operation, Layout(ModeTree::at(entry)), (*modes)[i], apply).root());
    } else {
      result.append(entry);
    }
  }
  return Layout(std::move(result));
}

}  // namespace helve::cute
