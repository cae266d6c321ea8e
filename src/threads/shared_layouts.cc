// Layouts of shared memory without bank conflicts.
// The closed-form rule comes first: it is fast and proved for every column. If it does not apply, swizzles are
// searched.
#include "helve/threads/shared_layouts.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "helve/ir/tensor/visit.h"
#include "helve/layout/banks.h"
#include "warp_accesses.h"

namespace helve {

namespace {

constexpr int64_t kMaxElements = 1 << 15;  // of a tile for which all swizzles are tried

/// Row-major with `padding` elements between rows, then the swizzle.
Layout rows_of(const std::vector<int64_t>& shape, int64_t padding, const Swizzle& swizzle) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t d = shape.size() - 1; d-- > 0;) {
    strides[d] = strides[d + 1] * shape[d + 1] + (d + 2 == shape.size() ? padding : 0);
  }
  Iters iters;
  for (size_t d = 0; d < shape.size(); ++d) iters.push_back({shape[d], strides[d], axes::m()});
  return Layout(iters, {}, {}, swizzle);
}

int64_t depth_of(const Layout& layout, const std::vector<BankAccess>& accesses, int64_t bytes) {
  int64_t depth = 1;
  for (const BankAccess& access : accesses) depth = std::max(depth, bank_conflicts(layout, access, bytes).depth());
  return depth;
}

struct Choice {
  Layout layout;
  int64_t depth;
  SwizzleVerdict verdict;
};

/// The best layout that keeps `width` elements contiguous; row-major if none is better.
Choice best_layout(const std::vector<int64_t>& shape, const std::vector<BankAccess>& accesses, int64_t bytes,
                   int64_t width) {
  const auto judged = [&](int64_t padding, const Swizzle& swizzle, SwizzleVerdict verdict) {
    const Layout layout = rows_of(shape, padding, swizzle);
    return Choice{layout, depth_of(layout, accesses, bytes), verdict};
  };
  const Choice plain = judged(0, {}, SwizzleVerdict::Proved);
  int64_t rows = 1;
  for (size_t d = 0; d + 1 < shape.size(); ++d) rows *= shape[d];
  if (plain.depth == 1 || shape.back() % width != 0) return plain;
  if (width * bytes >= kBankBytes && width * bytes <= kBanks * kBankBytes) {
    const int64_t slots = kBanks * kBankBytes / (width * bytes);
    const Choice closed = judged(0, column_swizzle(shape.back() / width, slots, width), SwizzleVerdict::Proved);
    if (closed.depth == 1) return closed;
  }
  if (rows * shape.back() > kMaxElements) return plain;
  const SwizzleChoice found = search_swizzle(rows, shape.back(), bytes, width, accesses);
  const Choice swizzled = judged(0, found.swizzle, SwizzleVerdict::Searched);
  const Choice padded = judged(found.padding, {}, SwizzleVerdict::Padding);
  const Choice& best = padded.depth < swizzled.depth ? padded : swizzled;
  return best.depth < plain.depth ? best : plain;
}

/// The accesses element by element: each lane of a vector is an access of its own.
std::vector<BankAccess> single_elements(const std::vector<BankAccess>& accesses) {
  std::vector<BankAccess> out;
  for (const BankAccess& access : accesses) {
    for (int64_t lane = 0; lane < access.width; ++lane) {
      BankAccess& one = out.emplace_back(BankAccess{access.first, 1});
      for (int64_t& first : one.first) first += first == BankAccess::kInactive ? 0 : lane;
    }
  }
  return out;
}

std::string ways(int64_t depth) {
  return depth == 1 ? "no bank conflicts" : fmt::format("{}-way bank conflicts", depth);
}

SharedLayout chosen(const BufferRef& buffer, int64_t before, const Choice& best) {
  return {buffer, best.layout,
          fmt::format("{} row by row, {} so ({})", ways(before), ways(best.depth), to_string(best.verdict))};
}

/// The layout of memory that a tensor map copies to or from, which supports only one form of swizzle.
std::optional<SharedLayout> choose_of_map(const BufferRef& buffer, const MemoryAccesses& accesses, int64_t before) {
  const Layout layout = rows_of(*constant_shape(buffer->shape), 0, *accesses.boxes);
  const int64_t depth = depth_of(layout, accesses.warps, buffer->dtype.bytes());
  if (depth >= before) return std::nullopt;
  return chosen(buffer, before, {layout, depth, SwizzleVerdict::Searched});
}

std::optional<SharedLayout> choose(const BufferRef& buffer, const MemoryAccesses& accesses) {
  const std::vector<int64_t> shape = *constant_shape(buffer->shape);
  const int64_t bytes = buffer->dtype.bytes();
  if (shape.size() < 2 || shape.back() < 2 || buffer->layout || accesses.rows) return std::nullopt;
  const int64_t before = depth_of(rows_of(shape, 0, {}), accesses.warps, bytes);
  if (accesses.boxes) return choose_of_map(buffer, accesses, before);
  Choice best = best_layout(shape, accesses.warps, bytes, accesses.together);
  // A vector of n elements takes as many phases as n single accesses, so keeping it is not worth a conflict.
  if (best.depth > 1 && accesses.together > 1 && !accesses.whole) {
    Choice single = best_layout(shape, single_elements(accesses.warps), bytes, 1);
    if (single.depth < best.depth) best = std::move(single);
  }
  if (best.depth >= before) return std::nullopt;
  return chosen(buffer, before, best);
}

}  // namespace

std::vector<SharedLayout> choose_shared_layouts(const Kernel& kernel, const Machine& machine) {
  WarpAccesses accesses = warp_accesses(kernel, machine);
  std::vector<SharedLayout> out;
  walk(kernel.body, [&](const Stmt& s) {
    const Alloc* a = as<Alloc>(s);
    auto found = a ? accesses.find(a->buffer.get()) : accesses.end();
    if (found == accesses.end()) return;
    if (std::optional<SharedLayout> layout = choose(a->buffer, found->second)) {
      out.push_back(std::move(*layout));
    }
    accesses.erase(found);
  });
  return out;
}

}  // namespace helve
