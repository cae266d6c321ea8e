// Printing and parsing of layouts.
// One grammar (in the header) for both directions, so that text is a faithful form of the value.
#include "helve/layout/notation.h"

#include <fmt/format.h>

#include <limits>

#include "helve/support/text.h"
#include "integers.h"

namespace helve {

namespace {

std::string placed(int64_t value, Axis axis) {
  return axis == axes::m() ? fmt::format("{}", value) : fmt::format("{}@{}", value, axis.name());
}

std::string iters_text(const Iters& iters) {
  auto extent = [](const Iter& iter) { return fmt::format("{}", iter.extent); };
  auto stride = [](const Iter& iter) { return placed(iter.stride, iter.axis); };
  if (iters.size() == 1) return fmt::format("[{} : {}]", extent(iters[0]), stride(iters[0]));
  return fmt::format("[({}) : ({})]", join(iters, ", ", extent), join(iters, ", ", stride));
}

}  // namespace

std::string to_string(const Iter& iter) { return fmt::format("{}:{}", iter.extent, placed(iter.stride, iter.axis)); }

std::string to_string(const Point& point) {
  std::string text;
  for (const auto& [axis, value] : point) {
    if (value == 0) continue;
    if (!text.empty()) text += " + ";
    text += placed(value, axis);
  }
  return text.empty() ? "0" : text;
}

std::string to_string(const Swizzle& swizzle) {
  return fmt::format("Swizzle({}, {}, {})", swizzle.bits, swizzle.base, swizzle.shift);
}

std::string replica_text(const Iters& replica) { return "R" + iters_text(replica); }

std::string to_string(const Layout& layout) {
  std::string text = "S" + iters_text(layout.shard());
  if (!layout.replica().empty()) text += " + " + replica_text(layout.replica());
  for (const auto& [axis, value] : layout.offset()) text += " + " + placed(value, axis);
  if (!layout.swizzle().identity()) text += " ^ " + to_string(layout.swizzle());
  return text;
}

namespace {

/// Recursive descent over the grammar of the header.
class LayoutParser {
 public:
  explicit LayoutParser(std::string_view text) : text_(text) {}

  Layout parse() {
    expect("S");
    Iters shard = iters();
    Iters replica;
    Point offset;
    Swizzle swizzle;
    while (true) {
      if (accept('+')) {
        if (accept('R')) {
          for (const Iter& iter : iters()) replica.push_back(iter);
        } else {
          add_offset(offset, 1);
        }
      } else if (accept('-')) {
        add_offset(offset, -1);
      } else {
        break;
      }
    }
    if (accept('^')) swizzle = swizzle_numbers();
    skip_blanks();
    if (position_ != text_.size()) fail("expected '+', '-', '^' or the end");
    return Layout(std::move(shard), std::move(replica), std::move(offset), swizzle);
  }

 private:
  [[noreturn]] void fail(const std::string& reason) const {
    throw_layout_error(
        Code::LayoutSyntax,
        {{"text", std::string(text_)}, {"column", static_cast<int64_t>(position_ + 1)}, {"reason", reason}});
  }

  void skip_blanks() {
    constexpr std::string_view kBlanks = " \t\n";
    while (position_ < text_.size() && kBlanks.find(text_[position_]) != std::string_view::npos) ++position_;
  }

  bool accept(char c) {
    skip_blanks();
    if (position_ >= text_.size() || text_[position_] != c) return false;
    ++position_;
    return true;
  }

  void expect(std::string_view token) {
    skip_blanks();
    if (text_.substr(position_, token.size()) != token) fail(fmt::format("expected '{}'", token));
    position_ += token.size();
  }

  int64_t integer() {
    bool negative = accept('-');
    skip_blanks();
    size_t begin = position_;
    layout_detail::Wide value = 0;
    for (; position_ < text_.size() && text_[position_] >= '0' && text_[position_] <= '9'; ++position_) {
      value = value * 10 + (text_[position_] - '0');
      if (value > layout_detail::Wide{1} << 63) too_large(begin);
    }
    if (position_ == begin) fail("expected an integer");
    if (negative) value = -value;
    if (value > std::numeric_limits<int64_t>::max()) too_large(begin);
    return static_cast<int64_t>(value);
  }

  [[noreturn]] void too_large(size_t begin) {
    position_ = begin;
    fail("the number does not fit in 64 bits");
  }

  Axis optional_axis() {
    if (!accept('@')) return axes::m();
    skip_blanks();
    size_t begin = position_;
    auto in_name = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    };
    while (position_ < text_.size() && in_name(text_[position_])) ++position_;
    std::string name(text_.substr(begin, position_ - begin));
    if (name.empty()) fail("expected the name of an axis");
    if (std::optional<Axis> axis = Axis::find(name)) return *axis;
    throw_layout_error(Code::LayoutUnknownAxis,
                       {{"text", std::string(text_)}, {"column", static_cast<int64_t>(begin + 1)}, {"name", name}});
  }

  void add_offset(Point& offset, int sign) {
    int64_t value = integer();
    Axis axis = optional_axis();
    using layout_detail::Wide;
    offset[axis] = layout_detail::narrow(Wide{offset[axis]} + Wide{value} * sign, "an offset");
  }

  /// A tuple of items or one item without parentheses.
  template <class Item>
  auto tuple(Item&& item) {
    std::vector<decltype(item())> items;
    if (!accept('(')) {
      items.push_back(item());
      return items;
    }
    while (!accept(')')) {
      items.push_back(item());
      if (accept(',')) continue;
      expect(")");
      break;
    }
    return items;
  }

  Iters iters() {
    expect("[");
    std::vector<int64_t> extents = tuple([&] { return integer(); });
    expect(":");
    skip_blanks();
    size_t begin = position_;
    auto strides = tuple([&] {
      int64_t stride = integer();
      return std::pair(stride, optional_axis());
    });
    if (strides.size() != extents.size()) {
      position_ = begin;
      fail(fmt::format("expected {} strides, {} are given", extents.size(), strides.size()));
    }
    expect("]");
    Iters result;
    for (size_t k = 0; k < extents.size(); ++k) result.push_back({extents[k], strides[k].first, strides[k].second});
    return result;
  }

  int small_integer() {
    skip_blanks();
    size_t begin = position_;
    int64_t value = integer();
    if (value >= -64 && value <= 64) return static_cast<int>(value);
    position_ = begin;
    fail("a swizzle's numbers are between -64 and 64");
  }

  Swizzle swizzle_numbers() {
    expect("Swizzle");
    expect("(");
    Swizzle swizzle;
    swizzle.bits = small_integer();
    expect(",");
    swizzle.base = small_integer();
    expect(",");
    swizzle.shift = small_integer();
    expect(")");
    return swizzle;
  }

  std::string_view text_;
  size_t position_ = 0;
};

}  // namespace

Layout parse_layout(std::string_view text) { return LayoutParser(text).parse(); }

}  // namespace helve
