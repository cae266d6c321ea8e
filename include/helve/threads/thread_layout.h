// The place of a loop's iterations, or of a fragment's elements, in a block of threads.
// One Axe layout on the axes `tx` and `reg` serves both: it divides a loop and numbers registers.
#pragma once

#include <cstdint>
#include <vector>

#include "helve/layout/layout.h"

namespace helve {

/// A layout on `tx` and `reg`, grouped into one block of iters for each dimension of `domain`. Elements past a shape
/// that is smaller than the domain are padding. Threads that differ only along a replica hold the same elements.
class ThreadLayout {
 public:
  /// Throws ShapeError and DivisibilityError if the layout cannot be grouped that way.
  ThreadLayout(const Layout& layout, std::vector<int64_t> domain);

  const Layout& layout() const { return grouped_.layout; }
  const std::vector<int64_t>& domain() const { return domain_; }
  size_t rank() const { return domain_.size(); }
  /// The iters of dimension d, slowest first.
  Iters block(size_t d) const { return grouped_.block(d); }
  /// Registers of one thread.
  int64_t registers() const { return layout().span(axes::reg()); }

  /// The layout of the dimensions `dims` (in the order of the result; -1: one of extent 1): threads along an omitted
  /// dimension hold replicas, its registers are dropped. Digits are unchanged.
  ThreadLayout project(const std::vector<int>& dims) const;

  /// Are the threads divided along the dimensions `dims` alone (-1: none)? Then a thread that holds an element of the
  /// projection executes all iterations of the other dimensions for it.
  bool divides_only(const std::vector<int>& dims) const;

  /// Do the two divide dimension d of this and dimension e of `other` alike: the same iters, up to register numbers?
  bool divides_alike(size_t d, const ThreadLayout& other, size_t e) const;

 private:
  ThreadLayout(GroupedLayout grouped, std::vector<int64_t> domain)
      : grouped_(std::move(grouped)), domain_(std::move(domain)) {}

  GroupedLayout grouped_;
  std::vector<int64_t> domain_;
};

/// `shape` over `threads` threads, for contiguous accesses along the last dimension: each thread gets runs of `vector`
/// elements, neighbouring threads get neighbouring runs, and remaining threads go to the preceding dimensions. Threads
/// that are not needed hold replicas. `vector` divides the last extent.
ThreadLayout spread(const std::vector<int64_t>& shape, int64_t threads, int64_t vector);

}  // namespace helve
