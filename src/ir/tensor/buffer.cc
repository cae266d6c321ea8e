// Declaration of buffers and regions.
// What a buffer may be is decided where it is made, so that no later room meets a malformed one.
#include "helve/ir/tensor/buffer.h"

#include <fmt/format.h>

#include <algorithm>

#include "helve/ir/expr/equal.h"
#include "helve/ir/expr/text.h"
#include "helve/support/diagnostic.h"
#include "helve/support/text.h"

namespace helve {

std::string_view to_string(MemoryScope scope) {
  switch (scope) {
    case MemoryScope::Param: return "param";
    case MemoryScope::Global: return "global";
    case MemoryScope::Shared: return "shared";
    case MemoryScope::Fragment: return "fragment";
    case MemoryScope::Local: return "local";
  }
  __builtin_unreachable();
}

std::string_view to_string(ArrayPlace place) {
  switch (place) {
    case ArrayPlace::Registers: return "registers";
    case ArrayPlace::Packed: return "packed";
    case ArrayPlace::Memory: return "memory";
    case ArrayPlace::Stack: return "stack";
  }
  __builtin_unreachable();
}

BufferRef at_place(const BufferRef& buffer, ArrayPlace place) {
  const bool of_a_thread = buffer->scope == MemoryScope::Fragment || buffer->scope == MemoryScope::Local;
  const bool of_a_block = place == ArrayPlace::Registers || place == ArrayPlace::Stack;
  HELVE_CHECK(of_a_thread || (buffer->scope == MemoryScope::Shared && of_a_block), "the buffer has no such place");
  Ref<Buffer> out = make_ref<Buffer>(*buffer);
  out->place = place;
  return BufferRef(out);
}

namespace {

void check_index(const Expr& e, const char* what, const std::string& name, Span span) {
  if (e->dtype.is_index()) return;
  throw UserError(
      Code::WrongType, e->span.known() ? e->span : span,
      {{"what", fmt::format("{} of '{}'", what, name)}, {"given", to_string(e->dtype)}, {"expected", "an index"}});
}

void check_extent(const Expr& extent, const std::string& name, Span span) {
  check_index(extent, "an extent", name, span);
  if (const int64_t* v = int_value(extent); v && *v < 0) {
    throw UserError(Code::NegativeExtent, extent->span.known() ? extent->span : span, {{"extent", *v}});
  }
}

}  // namespace

BufferRef make_buffer(std::string name, DType dtype, MemoryScope scope, std::vector<Expr> shape,
                      std::vector<int64_t> tile, std::vector<Expr> strides, Span span) {
  for (const Expr& extent : shape) check_extent(extent, name, span);
  for (const Expr& stride : strides) check_index(stride, "a stride", name, span);
  const std::string shape_words = shape_text(shape);
  if (!tile.empty() && tile.size() != shape.size()) {
    throw UserError(
        Code::ShapeMismatch, span,
        {{"what", fmt::format("tile_size of '{}'", name)}, {"left", shape_text(tile)}, {"right", shape_words}});
  }
  for (int64_t t : tile) {
    if (t < 1) throw UserError(Code::NegativeExtent, span, {{"extent", t}}, {}, {"a tile extent is 1 or more"});
  }
  if (!strides.empty() && strides.size() != shape.size()) {
    throw UserError(
        Code::ShapeMismatch, span,
        {{"what", fmt::format("strides of '{}'", name)}, {"left", shape_text(strides)}, {"right", shape_words}});
  }
  Ref<Buffer> b = make_ref<Buffer>();
  b->name = std::move(name);
  b->dtype = dtype;
  b->span = span;
  b->scope = scope;
  b->shape = std::move(shape);
  b->tile = std::move(tile);
  b->strides = std::move(strides);
  return BufferRef(b);
}

BufferRef as_sorted(const BufferRef& buffer) {
  if (buffer->rank() != 1 || !buffer->dtype.is_data_int() || buffer->dtype.is_packed()) {
    throw UserError(
        Code::BadArgument, buffer->span,
        {{"function", std::string("T.Tensor")},
         {"value", std::string("True")},
         {"parameter", std::string("sorted")},
         {"reason", fmt::format("'{}' is {} of rank {}", buffer->name, to_string(buffer->dtype), buffer->rank())},
         {"remedy", std::string("declare what is one row of integers as sorted")}});
  }
  Ref<Buffer> out = make_ref<Buffer>(*buffer);
  out->sorted = true;
  return BufferRef(out);
}

BufferRef declare_again(const Buffer& b) { return BufferRef(make_ref<Buffer>(b)); }

std::vector<Expr> Region::shape() const {
  std::vector<Expr> out;
  for (const Range& r : ranges) {
    if (!r.point) out.push_back(r.extent);
  }
  return out;
}

bool Region::covers(size_t d) const {
  const Range& range = ranges[d];
  const int64_t* begin = int_value(range.begin);
  return !range.point && begin && *begin == 0 && structural_equal(range.extent, buffer->shape[d]);
}

bool Region::whole() const {
  for (size_t d = 0; d < ranges.size(); ++d) {
    if (!covers(d)) return false;
  }
  return true;
}

Region whole_region(BufferRef buffer) {
  Region region;
  for (const Expr& extent : buffer->shape) region.ranges.push_back({int_imm(0), extent, false});
  region.buffer = std::move(buffer);
  return region;
}

std::optional<std::vector<int64_t>> constant_shape(const std::vector<Expr>& shape) {
  std::vector<int64_t> out;
  for (const Expr& extent : shape) {
    const int64_t* v = int_value(extent);
    if (!v) return std::nullopt;
    out.push_back(*v);
  }
  return out;
}

Note declaration_note(const Buffer& buffer) {
  return {buffer.span, fmt::format("'{}' has shape {}", buffer.name, shape_text(buffer.shape))};
}

std::string range_remedy(int64_t dim, int64_t extent) {
  if (extent == 0) return fmt::format("dimension {} has no elements", dim);
  return fmt::format("indices of dimension {} go from 0 to {}", dim, extent - 1);
}

std::vector<int64_t> default_tile(size_t rank) {
  constexpr size_t kTiledDimensions = 2;
  constexpr int64_t kTileExtent = 32;
  std::vector<int64_t> tile(rank, 1);
  std::fill(tile.end() - static_cast<std::ptrdiff_t>(std::min(rank, kTiledDimensions)), tile.end(), kTileExtent);
  return tile;
}

std::string shape_text(const std::vector<Expr>& shape) {
  return fmt::format("({}{})", join(shape, ", ", [](const Expr& e) { return to_text(e); }),
                     shape.size() == 1 ? "," : "");
}

}  // namespace helve
