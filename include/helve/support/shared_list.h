// A list that shares its elements with its copies.
// Facts grow along a path and are kept for each place on it: copying is free, and appending to the newest copy costs
// one append.
#pragma once

#include <cstddef>
#include <deque>
#include <iterator>
#include <memory>
#include <utility>

namespace helve {

/// A value: no copy sees what another one appends or replaces, and elements keep their addresses while any copy that
/// has them lives, also during a loop over it. Copies belong to one thread.
template <class T>
class SharedList {
 public:
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T& operator[](size_t i) const { return (*items_)[i]; }

  /// A forward iterator that stays valid while elements are appended.
  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using pointer = const T*;
    using reference = const T&;

    Iterator() = default;
    Iterator(const SharedList& list, size_t at) : list_(&list), at_(at) {}
    reference operator*() const { return (*list_)[at_]; }
    Iterator& operator++() { return ++at_, *this; }
    Iterator operator++(int) { return {*list_, at_++}; }
    bool operator==(const Iterator&) const = default;

   private:
    const SharedList* list_ = nullptr;
    size_t at_ = 0;
  };
  Iterator begin() const { return {*this, 0}; }
  Iterator end() const { return {*this, size_}; }

  void append(T item) {
    if (!items_ || items_->size() != size_) own();
    items_->push_back(std::move(item));
    ++size_;
  }
  void replace(size_t i, T item) {
    if (items_.use_count() != 1) own();
    (*items_)[i] = std::move(item);
  }

 private:
  void own() {
    auto items = std::make_shared<std::deque<T>>();
    for (const T& each : *this) items->push_back(each);
    items_ = std::move(items);
  }

  std::shared_ptr<std::deque<T>> items_;  ///< elements beyond `size_` belong to other copies
  size_t size_ = 0;
};

}  // namespace helve
