// Sets of the shared buffers of a kernel, by number.
// Both analyses of lifetimes speak of the same few buffers, so that sets are bits and unions are cheap.
#pragma once

#include <cstddef>
#include <unordered_map>
#include <vector>

#include "helve/ir/tensor/buffer.h"

namespace helve::lifetimes {

/// The numbers of buffers, in the order of their allocations.
using Numbers = std::unordered_map<const Buffer*, size_t>;

class BufferSet {
 public:
  void add(size_t number) {
    if (holds_.size() <= number) holds_.resize(number + 1);
    holds_[number] = true;
  }
  void add(const BufferSet& others) {
    others.for_each([&](size_t number) { add(number); });
  }
  void remove(size_t number) {
    if (number < holds_.size()) holds_[number] = false;
  }
  void remove(const BufferSet& others) {
    others.for_each([&](size_t number) { remove(number); });
  }
  void clear() { holds_.clear(); }
  bool contains(size_t number) const { return number < holds_.size() && holds_[number]; }
  template <class F>
  void for_each(const F& f) const {
    for (size_t number = 0; number < holds_.size(); ++number) {
      if (holds_[number]) f(number);
    }
  }

 private:
  std::vector<bool> holds_;
};

/// Which buffers hold values, or are accessed, at once, so that they share no bytes: a symmetric relation.
class Interference {
 public:
  explicit Interference(size_t count) : rows_(count) {}
  void add(const BufferSet& one, const BufferSet& other) {
    one.for_each([&](size_t a) {
      other.for_each([&](size_t b) {
        rows_[a].add(b);
        rows_[b].add(a);
      });
    });
  }
  bool contain(size_t a, size_t b) const { return rows_[a].contains(b); }

 private:
  std::vector<BufferSet> rows_;
};

}  // namespace helve::lifetimes
