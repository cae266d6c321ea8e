// Primitives that say where the elements of a buffer lie in memory: set_layout, pad, swizzle.
// A layout (Buffer::layout) says where elements lie, not what they hold, so all statements stay as they are. What a
// layout may be is decided where every layout of a buffer is (ir/tensor/buffer_layout.h).
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "helve/ir/tensor/buffer_layout.h"
#include "helve/ir/tensor/visit.h"
#include "helve/layout/layout_error.h"
#include "helve/layout/notation.h"
#include "loop_form.h"

namespace helve {

namespace {

/// The allocation of the buffer that the first argument names.
struct Allocation {
  Cursor at;
  Stmt stmt;
  BufferRef buffer;

  /// Extents of its memory, at least 1 each; refused if they are no constants.
  std::vector<int64_t> shape(const Arguments& arguments) const {
    std::optional<std::vector<int64_t>> out = constant_shape(buffer->shape);
    if (!out) {
      arguments.refuse(fmt::format("the shape of '{}' is not constant", buffer->name), stmt,
                       "give the buffer constant extents");
    }
    for (int64_t& extent : *out) extent = std::max<int64_t>(extent, 1);
    return *std::move(out);
  }

  /// Its layout, row-major if it has none.
  Layout layout(const Arguments& arguments) const {
    if (buffer->layout) return *buffer->layout;
    const std::vector<int64_t> extents = shape(arguments);
    return layout_of_tiles(extents, std::vector<int64_t>(extents.size(), 1));
  }
};

Allocation allocation_of(const FunctionRef& f, const Arguments& arguments) {
  const Cursor at = allocation_named(f, arguments, 0);
  const Stmt s = required_at(f, at);
  return {at, s, as<Alloc>(s)->buffer};
}

/// The function in which the buffer has this layout.
Rewrite placed(const FunctionRef& f, const Allocation& allocation, const Layout& layout, const Arguments& arguments) {
  const BufferRef own = with_layout(allocation.buffer, layout, arguments.place);
  const Cursor around = allocation.at.parent();
  const Stmt after = redeclare_buffers(required_at(f, around), {{allocation.buffer.get(), own}});
  return {revise(f, around, after), {around, 1}, {around, 1}, {}, {}, {allocation.at}};
}

/// The numbers of "word(1, 2)", whole and not negative; nothing if the text is none.
std::optional<std::vector<int64_t>> numbers_of(std::string_view text, std::string_view word) {
  if (!text.starts_with(word)) return std::nullopt;
  text.remove_prefix(word.size());
  if (!text.starts_with('(') || !text.ends_with(')')) return std::nullopt;
  text = text.substr(1, text.size() - 2);
  std::vector<int64_t> out;
  for (bool more = true; more;) {
    const size_t comma = text.find(',');
    more = comma != std::string_view::npos;
    std::string_view part = text.substr(0, comma);
    if (more) text.remove_prefix(comma + 1);
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    constexpr size_t kDigits = 10;  // up to kLargestFactor
    if (part.empty() || part.size() > kDigits) return std::nullopt;
    int64_t value = 0;
    for (const char c : part) {
      if (c < '0' || c > '9') return std::nullopt;
      value = value * 10 + (c - '0');
    }
    out.push_back(value);
  }
  return out;
}

Layout tiles_of(const Allocation& allocation, const std::vector<int64_t>& last, const Arguments& arguments) {
  const std::vector<int64_t> shape = allocation.shape(arguments);
  if (last.size() > shape.size()) {
    arguments.refuse(fmt::format("a tile has {} extents, '{}' has {} dimensions", last.size(), allocation.buffer->name,
                                 shape.size()),
                     allocation.stmt, "give the extents of the last dimensions of a tile");
  }
  const auto [least, most] = std::minmax_element(last.begin(), last.end());
  if (*least < 1 || *most > kLargestFactor) {
    arguments.refuse_value(1, fmt::format("'{}'", arguments.text(1)),
                           fmt::format("an extent is not in [1, {}]", kLargestFactor),
                           "give a whole number of that range");
  }
  std::vector<int64_t> tile(shape.size() - last.size(), 1);
  tile.insert(tile.end(), last.begin(), last.end());
  constexpr double kMostElements = 0x1p40;
  double elements = 1;
  for (size_t d = 0; d < shape.size(); ++d) elements *= static_cast<double>(shape[d]) + static_cast<double>(tile[d]);
  if (elements > kMostElements) {
    arguments.refuse_value(1, fmt::format("'{}'", arguments.text(1)), "no memory is so large", "give smaller tiles");
  }
  return layout_of_tiles(shape, tile);
}

Layout ordered(const Allocation& allocation, const std::vector<int64_t>& order, const Arguments& arguments) {
  const std::vector<int64_t> shape = allocation.shape(arguments);
  std::vector<int64_t> all(shape.size());
  std::iota(all.begin(), all.end(), 0);
  if (!std::is_permutation(order.begin(), order.end(), all.begin(), all.end())) {
    arguments.refuse(fmt::format("'{}' does not name the dimensions of '{}', 0 to {}", arguments.text(1),
                                 allocation.buffer->name, static_cast<int64_t>(shape.size()) - 1),
                     allocation.stmt, "name each dimension once, the one whose elements lie farthest apart first");
  }
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t k = order.size(); k-- > 0;) {
    strides[static_cast<size_t>(order[k])] = stride;
    stride *= shape[static_cast<size_t>(order[k])];
  }
  Iters shard;
  for (size_t d = 0; d < shape.size(); ++d) shard.push_back({shape[d], strides[d], axes::m()});
  return Layout(std::move(shard));
}

Layout given_layout(const Allocation& allocation, const Arguments& arguments) {
  const std::string& text = arguments.text(1);
  if (const auto tile = numbers_of(text, "tile")) return tiles_of(allocation, *tile, arguments);
  if (const auto order = numbers_of(text, "order")) return ordered(allocation, *order, arguments);
  try {
    return parse_layout(text);
  } catch (const LayoutError& fault) {
    arguments.refuse_value(1, fmt::format("'{}'", text), fault.diagnostic().message(),
                           "give a layout such as S[(8, 16) : (1, 8)], tile(8, 16) or order(1, 0)");
  }
}

}  // namespace

/// set_layout("X", "order(1, 0)"): `X = alloc_shared((64, 32))` becomes `X = alloc_shared((64, 32), layout="S[(64, 32)
/// : (1, 64)]")`. "tile(8, 16)" stores the elements of each tile of 8 x 16 side by side.
Rewrite set_layout(const FunctionRef& f, const Arguments& arguments) {
  const Allocation allocation = allocation_of(f, arguments);
  return placed(f, allocation, given_layout(allocation, arguments), arguments);
}

/// pad("X", 1, 4): after the last element of dimension 1 there are 4 that nobody uses; `X = alloc_shared((64, 32))`
/// becomes `X = alloc_shared((64, 32), layout="S[(64, 32) : (36, 1)]")`.
Rewrite pad_rows(const FunctionRef& f, const Arguments& arguments) {
  const Allocation allocation = allocation_of(f, arguments);
  const std::string& name = allocation.buffer->name;
  const int64_t rank = static_cast<int64_t>(allocation.buffer->rank()), dim = arguments.integer(1);
  if (dim < 0 || dim >= rank) {
    arguments.refuse_value(1, std::to_string(dim), fmt::format("'{}' has {} dimensions", name, rank),
                           "dimensions count from 0");
  }
  const BufferRef own = with_layout(allocation.buffer, allocation.layout(arguments), arguments.place);
  const GroupedLayout grouped = own->layout->group(layout_domain(*own));
  const Iters digits = grouped.block(static_cast<size_t>(dim));
  if (digits.size() != 1) {
    arguments.refuse(fmt::format("dimension {} of '{}' is stored as {} digits", dim, name, digits.size()),
                     allocation.stmt, "give the layout with its padding to set_layout()");
  }
  const int64_t row = digits[0].extent * digits[0].stride;
  int64_t next = 0;  // the distance of two rows
  for (const Iter& iter : grouped.layout.shard()) {
    if (iter.stride >= row && (next == 0 || iter.stride < next)) next = iter.stride;
  }
  if (next == 0) {
    arguments.refuse(fmt::format("nothing lies behind dimension {} of '{}'", dim, name), allocation.stmt,
                     "pad a dimension inside of another one");
  }
  int64_t longer = 0;
  if (__builtin_mul_overflow(arguments.integer(2), digits[0].stride, &longer) ||
      __builtin_add_overflow(longer, next, &longer)) {
    arguments.refuse_value(2, std::to_string(arguments.integer(2)), "no memory is so large", "pad by less");
  }
  Iters shard;
  for (Iter iter : grouped.layout.shard()) {
    if (iter.stride >= next && iter.stride % next != 0) {
      arguments.refuse(fmt::format("the stride {} of '{}' is no multiple of its rows of {}", iter.stride, name, next),
                       allocation.stmt, "give the layout with its padding to set_layout()");
    }
    if (iter.stride >= next && __builtin_mul_overflow(iter.stride / next, longer, &iter.stride)) {
      arguments.refuse_value(2, std::to_string(arguments.integer(2)), "no memory is so large", "pad by less");
    }
    shard.push_back(iter);
  }
  return placed(f, allocation, Layout(std::move(shard), {}, {}, grouped.layout.swizzle()), arguments);
}

/// swizzle("X", 3, 2, 3): the layout of X, row-major if it has none, with ^ Swizzle(3, 2, 3).
Rewrite swizzle_buffer(const FunctionRef& f, const Arguments& arguments) {
  const Allocation allocation = allocation_of(f, arguments);
  const BufferRef& buffer = allocation.buffer;
  if (buffer->scope != MemoryScope::Shared) {
    arguments.refuse(fmt::format("'{}' is {} memory", buffer->name, to_string(buffer->scope)), allocation.stmt,
                     "only memory of scope \"shared\" has banks");
  }
  constexpr int64_t kMostBits = 30;
  for (const size_t i : {1, 2, 3}) {
    const int64_t value = arguments.integer(i), least = i == 3 ? -kMostBits : i == 1 ? 1 : 0;
    if (value < least || value > kMostBits) {
      arguments.refuse_value(i, std::to_string(value), fmt::format("it is not in [{}, {}]", least, kMostBits),
                             "give a whole number of that range");
    }
  }
  if (std::abs(arguments.integer(3)) < arguments.integer(1)) {
    arguments.refuse_value(3, std::to_string(arguments.integer(3)),
                           fmt::format("the {} bits would be their own source", arguments.integer(1)),
                           "shift by at least as many bits as are changed");
  }
  const Swizzle swizzle{static_cast<int>(arguments.integer(1)), static_cast<int>(arguments.integer(2)),
                        static_cast<int>(arguments.integer(3))};
  const Layout layout = allocation.layout(arguments);
  const int64_t span = Layout(layout.shard()).span(axes::m());
  if (span % swizzle.period() != 0) {
    arguments.refuse(fmt::format("the {} addresses of '{}' are no multiple of {}, the period of {}", span, buffer->name,
                                 swizzle.period(), to_string(swizzle)),
                     allocation.stmt, "choose fewer bits, or a layout with room for whole periods");
  }
  return placed(f, allocation, Layout(layout.shard(), {}, {}, swizzle), arguments);
}

}  // namespace helve
