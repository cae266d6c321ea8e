// A list that its copies share.
// What is known grows along a path and is kept for each place on it: a copy costs nothing, and appending to the newest
// copy costs what appending costs.
#pragma once

#include <cstddef>
#include <deque>
#include <iterator>
#include <memory>
#include <utility>

namespace helve {

/// A value: no copy sees what another one appends or replaces, and elements stay where they are while any copy lives
/// that has them, also in the middle of a loop over it. Copies belong to one thread.
template <class T>
class SharedList {
 public:
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T& operator[](size_t i) const { return (*items_)[i]; }

  /// A forward iterator, which appending leaves valid.
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

  std::shared_ptr<std::deque<T>> items_;  ///< what stands beyond `size_` was appended to a copy
  size_t size_ = 0;
};

}  // namespace helve
