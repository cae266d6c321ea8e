// What the layout of a buffer may be.
// Every later room divides loops and forms addresses by it without a question, so all doubts end here.
#include "helve/ir/tensor/buffer_layout.h"

#include <fmt/format.h>

#include <algorithm>

#include "helve/layout/fuse_axes.h"
#include "helve/layout/notation.h"
#include "helve/layout/warp.h"
#include "helve/support/diagnostic.h"
#include "helve/support/text.h"

namespace helve {

namespace {

/// The extents that iters cover, taken from the last dimension on, each time the fewest that are enough; nothing if
/// they are not enough, or too many. A layout of as many elements as the shape has the shape, whatever its iters.
std::optional<std::vector<int64_t>> covered(const Layout& layout, const std::vector<int64_t>& shape) {
  int64_t elements = 1;
  for (const int64_t extent : shape) {
    if (__builtin_mul_overflow(elements, extent, &elements)) return std::nullopt;
  }
  if (elements == layout.size()) return shape;
  const Iters& iters = layout.shard();
  std::vector<int64_t> out(shape.size(), 1);
  size_t left = iters.size();
  for (size_t d = shape.size(); d-- > 0;) {
    while (left > 0 && (out[d] < shape[d] || iters[left - 1].extent == 1)) out[d] *= iters[--left].extent;
    if (out[d] < shape[d]) return std::nullopt;
  }
  return left == 0 ? std::optional(out) : std::nullopt;
}

std::string_view described(MemoryScope scope) {
  switch (scope) {
    case MemoryScope::Param: return "a tensor parameter";
    case MemoryScope::Global: return "global memory";
    case MemoryScope::Local:
    case MemoryScope::Shared:
    case MemoryScope::Fragment: break;
  }
  HELVE_FAIL("a scope whose buffers have layouts");
}

class Check {
 public:
  Check(const Buffer& buffer, const Layout& layout, const Span& span) : buffer_(buffer), layout_(layout), span_(span) {}

  void run() {
    const bool fragment = buffer_.scope == MemoryScope::Fragment;
    if (!fragment && buffer_.scope != MemoryScope::Shared && buffer_.scope != MemoryScope::Local) {
      refuse(Code::BufferLayoutOf, {{"what", std::string(described(buffer_.scope))}});
    }
    const std::optional<std::vector<int64_t>> shape = constant_shape(buffer_.shape);
    if (!shape) form("the shape is not constant", "give the buffer constant extents");
    const std::vector<int64_t> domain = checked_domain(*shape, fragment);
    check_axes(fragment);
    if (!layout_.offset().empty()) form("it has an offset", "leave the offset out");
    check_strides(layout_.shard());
    check_strides(layout_.replica());
    if (fragment && !layout_.swizzle().identity()) form("registers have no swizzle", "leave the swizzle out");
    if (!fragment && !layout_.replica().empty()) {
      form("memory holds one copy of an element", "leave the replicas out");
    }
    check_overlap(domain);
    check_groups(domain);
    if (!fragment) return;
    check_threads();
    check_registers();
  }

 private:
  [[noreturn]] void refuse(Code code, DiagnosticArgs args) const {
    args.push_back({"buffer", buffer_.name});
    throw UserError(code, span_, std::move(args),
                    {{buffer_.span, fmt::format("'{}' has shape {}", buffer_.name, shape_text(buffer_.shape))}});
  }
  [[noreturn]] void form(const std::string& reason, const std::string& remedy) const {
    refuse(Code::BufferLayoutForm, {{"layout", to_string(layout_)}, {"reason", reason}, {"remedy", remedy}});
  }

  /// Memory may be larger than the shape; each register of a fragment holds an element.
  std::vector<int64_t> checked_domain(const std::vector<int64_t>& shape, bool fragment) const {
    std::optional<std::vector<int64_t>> domain = covered(layout_, shape);
    if (domain && (!fragment || *domain == shape)) return *std::move(domain);
    refuse(Code::BufferLayoutSize,
           {{"layout", to_string(layout_)}, {"given", layout_.size()}, {"shape", shape_text(buffer_.shape)}});
  }

  void check_axes(bool fragment) const {
    for (Axis axis : layout_.axes()) {
      if (fragment ? axis == axes::tx() || axis == axes::reg() : axis == axes::m()) continue;
      const char* remedy = fragment
                               ? "a fragment's layout is on threads of the block (tx, or laneid and warpid) and on reg"
                               : "the layout of memory is on m, the axis of a stride without '@'";
      refuse(Code::BufferLayoutAxis, {{"axis", axis.name()}, {"remedy", remedy}});
    }
  }

  void check_strides(const Iters& iters) const {
    for (const Iter& iter : iters) {
      if (iter.stride < 0) form(fmt::format("the stride of {} is negative", to_string(iter)), "count upwards");
    }
  }

  std::string element(int64_t index, const std::vector<int64_t>& shape) const {
    return fmt::format("({})", join(unflatten(index, shape), ", ", [](int64_t i) { return std::to_string(i); }));
  }

  void check_overlap(const std::vector<int64_t>& shape) const {
    const std::optional<Layout::Collision> shared = layout_.find_collision();
    if (!shared) return;
    refuse(Code::BufferLayoutOverlap, {{"first", element(shared->first, shape)},
                                       {"second", element(shared->second, shape)},
                                       {"place", to_string(shared->point)}});
  }

  void check_groups(const std::vector<int64_t>& shape) const {
    try {
      layout_.group(shape);
    } catch (const LayoutError&) {
      form(fmt::format("its iters do not divide the dimensions of {}", shape_text(buffer_.shape)),
           "let the extents of some iters multiply to each dimension");
    }
  }

  std::vector<Iter> digits_on(Axis axis) const {
    std::vector<Iter> digits;
    for (const Iters* part : {&layout_.shard(), &layout_.replica()}) {
      for (const Iter& iter : *part) {
        if (iter.axis == axis && iter.extent > 1) digits.push_back(iter);
      }
    }
    std::sort(digits.begin(), digits.end(), [](const Iter& a, const Iter& b) { return a.stride < b.stride; });
    return digits;
  }

  /// Threads are the digits of one number, and those inside a warp are powers of two.
  void check_threads() const {
    int64_t threads = 1;
    for (const Iter& digit : digits_on(axes::tx())) {
      if (digit.stride != threads) {
        const bool copies = digit.stride > threads && digit.stride % threads == 0;
        form(digit.stride > threads ? fmt::format("thread {} holds no element, thread {} does", threads, digit.stride)
                                    : "its threads are not digits of the thread's number",
             copies ? fmt::format("give it copies: + R[{} : {}@tx]", digit.stride / threads, threads)
                    : "let the threads of each iter begin where those of another one end");
      }
      const int64_t lanes = threads < kWarp ? std::min(digit.extent, kWarp / threads) : 1;
      if (threads < kWarp && (kWarp % threads != 0 || digit.extent % lanes != 0 || (lanes & (lanes - 1)) != 0)) {
        form(fmt::format("{} does not divide the 32 lanes of a warp", to_string(digit)),
             "divide the lanes of a warp by powers of two");
      }
      threads *= digit.extent;
    }
  }

  /// Registers are the digits of one number too: none is left out.
  void check_registers() const {
    for (const Iter& iter : layout_.replica()) {
      if (iter.axis == axes::reg()) form("a thread holds an element twice", "leave out the replicas on reg");
    }
    int64_t registers = 1;
    for (const Iter& digit : digits_on(axes::reg())) {
      if (digit.stride != registers) {
        form(fmt::format("its registers leave out number {}", registers), "count the registers without gaps");
      }
      registers *= digit.extent;
    }
  }

  const Buffer& buffer_;
  const Layout& layout_;
  const Span& span_;
};

}  // namespace

BufferRef with_layout(const BufferRef& buffer, const Layout& layout, const Span& span) {
  const bool fragment = buffer->scope == MemoryScope::Fragment;
  Check(*buffer, fragment ? fuse_axes(layout, axes::tx()) : layout, span).run();
  Ref<Buffer> out = make_ref<Buffer>(*buffer);
  out->layout = layout;
  return BufferRef(out);
}

Layout thread_layout_of(const Buffer& fragment) { return fuse_axes(*fragment.layout, axes::tx()); }

std::vector<int64_t> layout_domain(const Buffer& buffer) {
  const std::optional<std::vector<int64_t>> shape = constant_shape(buffer.shape);
  HELVE_CHECK(buffer.layout && shape, "'" + buffer.name + "' has no layout");
  std::optional<std::vector<int64_t>> domain = covered(*buffer.layout, *shape);
  HELVE_CHECK(domain, "the layout of '" + buffer.name + "' does not cover it");
  return *std::move(domain);
}

Layout layout_of_tiles(const std::vector<int64_t>& shape, const std::vector<int64_t>& tile) {
  const auto inside = [&](size_t d) { return shape[d] > 1 ? tile[d] : 1; };
  const auto blocks = [&](size_t d) { return std::max<int64_t>((shape[d] + inside(d) - 1) / inside(d), 1); };
  int64_t stride = 1, tile_stride = 1;
  for (size_t d = 0; d < shape.size(); ++d) stride *= inside(d);
  std::vector<Iter> digits;  // the last dimension first
  for (size_t d = shape.size(); d-- > 0;) {
    digits.push_back({inside(d), tile_stride, axes::m()});
    digits.push_back({blocks(d), stride, axes::m()});
    tile_stride *= inside(d);
    stride *= blocks(d);
  }
  std::erase_if(digits, [](const Iter& digit) { return digit.extent == 1; });
  Iters shard;
  for (auto digit = digits.rbegin(); digit != digits.rend(); ++digit) shard.push_back(*digit);
  return Layout(std::move(shard));
}

int64_t memory_elements(const Buffer& buffer) {
  if (buffer.layout) return buffer.layout->span(axes::m());
  const std::optional<std::vector<int64_t>> shape = constant_shape(buffer.shape);
  HELVE_CHECK(shape, "shared memory '" + buffer.name + "' has a dynamic shape");
  int64_t count = 1;
  for (const int64_t extent : *shape) count *= extent;
  return std::max<int64_t>(count, 1);
}

bool keeps_runs(const Buffer& buffer, int64_t length) {
  const std::optional<std::vector<int64_t>> shape = constant_shape(buffer.shape);
  if (!shape || shape->empty()) return false;
  if (!buffer.layout) return shape->back() % length == 0;
  const Layout& layout = *buffer.layout;
  if (!layout.swizzle().identity() && (int64_t{1} << layout.swizzle().base) < length) return false;
  const GroupedLayout grouped = layout.group(layout_domain(buffer));
  const Iters last = grouped.block(shape->size() - 1);
  for (size_t d = 0; d < shape->size(); ++d) {
    const Iters iters = grouped.block(d);
    for (size_t k = 0; k < iters.size(); ++k) {
      const bool run = d + 1 == shape->size() && k + 1 == iters.size();
      if (run ? iters[k].stride != 1 || iters[k].extent % length != 0 : iters[k].stride % length != 0) return false;
    }
  }
  return !last.empty();
}

BufferRef in_stages(const Buffer& buffer, int64_t count) {
  Ref<Buffer> out = make_ref<Buffer>(buffer);
  out->shape.insert(out->shape.begin(), int_imm(count));
  if (buffer.layout) {
    const Layout& layout = *buffer.layout;
    const int64_t period = layout.swizzle().period();
    const int64_t stride = (memory_elements(buffer) + period - 1) / period * period;
    Iters shard = {{count, stride, axes::m()}};
    shard.append(layout.shard().begin(), layout.shard().end());
    out->layout = Layout(std::move(shard), {}, {}, layout.swizzle());
  }
  return BufferRef(out);
}

}  // namespace helve
