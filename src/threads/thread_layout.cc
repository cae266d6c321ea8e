// The place of a loop's iterations, or of a fragment's elements, in a block of threads.
// Projections keep the thread digits of omitted dimensions as replicas, so that every thread still has its part.
#include "helve/threads/thread_layout.h"

#include <algorithm>
#include <bit>

#include "helve/support/diagnostic.h"

namespace helve {

namespace {

int64_t ceil_quotient(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t power_of_two_above(int64_t n) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(n, 1))));
}

/// How many of `threads` are given to `items`: as many as are needed, such that the quotient is whole.
int64_t threads_for(int64_t items, int64_t threads) {
  if (items >= threads) return threads;
  int64_t taken = power_of_two_above(items);
  while (threads % taken != 0) taken /= 2;
  return taken;
}

/// Registers without gaps, in the order of their strides.
void close_gaps(std::vector<Iter*> registers) {
  std::stable_sort(registers.begin(), registers.end(),
                   [](const Iter* a, const Iter* b) { return a->stride < b->stride; });
  int64_t next = 1;
  for (Iter* iter : registers) {
    iter->stride = next;
    next *= iter->extent;
  }
}

}  // namespace

ThreadLayout::ThreadLayout(const Layout& layout, std::vector<int64_t> domain)
    : grouped_(layout.group(domain)), domain_(std::move(domain)) {}

ThreadLayout ThreadLayout::project(const std::vector<int>& dims) const {
  Iters shard;
  Separators separators = {0};
  std::vector<int64_t> domain;
  for (int d : dims) {
    const Iters iters = d < 0 ? Iters{} : block(static_cast<size_t>(d));
    shard.append(iters.begin(), iters.end());
    separators.push_back(shard.size());
    domain.push_back(d < 0 ? 1 : domain_[static_cast<size_t>(d)]);
  }
  std::vector<Iter*> registers;
  for (Iter& iter : shard) {
    if (iter.axis == axes::reg()) registers.push_back(&iter);
  }
  close_gaps(registers);
  Iters replica = layout().replica();
  for (size_t d = 0; d < rank(); ++d) {
    if (std::find(dims.begin(), dims.end(), static_cast<int>(d)) != dims.end()) continue;
    for (const Iter& iter : block(d)) {
      if (iter.axis == axes::tx()) replica.push_back(iter);
    }
  }
  return ThreadLayout(GroupedLayout{Layout(std::move(shard), std::move(replica)), std::move(separators)},
                      std::move(domain));
}

bool ThreadLayout::divides_only(const std::vector<int>& dims) const {
  for (size_t d = 0; d < rank(); ++d) {
    if (std::find(dims.begin(), dims.end(), static_cast<int>(d)) != dims.end()) continue;
    const Iters iters = block(d);
    const auto on_threads = [](const Iter& iter) { return iter.axis == axes::tx() && iter.extent > 1; };
    if (std::any_of(iters.begin(), iters.end(), on_threads)) return false;
  }
  return true;
}

bool ThreadLayout::divides_alike(size_t d, const ThreadLayout& other, size_t e) const {
  const Iters a = block(d);
  const Iters b = other.block(e);
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Iter& x, const Iter& y) {
    return x.extent == y.extent && x.axis == y.axis && (x.axis == axes::reg() || x.stride == y.stride);
  });
}

ThreadLayout spread(const std::vector<int64_t>& shape, int64_t threads, int64_t vector) {
  const size_t rank = shape.size();
  struct Part {
    int64_t repeats;
    int64_t threads;
    int64_t stride;
    int64_t run;
  };
  std::vector<Part> parts(rank);
  std::vector<int64_t> domain(rank);
  int64_t used = 1;
  for (size_t d = rank; d-- > 0;) {
    const int64_t run = d + 1 == rank ? vector : 1;
    const int64_t items = std::max<int64_t>(1, ceil_quotient(shape[d], run));
    const int64_t taken = threads_for(items, threads / used);
    parts[d] = {ceil_quotient(items, taken), taken, used, run};
    domain[d] = parts[d].repeats * taken * run;
    used *= taken;
  }
  Iters shard;
  int64_t registers = 1;
  for (const Part& part : parts) registers *= part.repeats * part.run;
  const auto on_registers = [&](int64_t extent) {
    registers /= extent;
    shard.push_back({extent, registers, axes::reg()});
  };
  for (const Part& part : parts) {
    on_registers(part.repeats);
    shard.push_back({part.threads, part.stride, axes::tx()});
    on_registers(part.run);
  }
  Iters replica;
  if (used < threads) replica.push_back({threads / used, used, axes::tx()});
  return ThreadLayout(Layout(std::move(shard), std::move(replica)), std::move(domain));
}

}  // namespace helve
