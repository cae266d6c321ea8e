// A list that its copies share.
// What is known grows along a path and is kept for each place on it: a copy costs nothing, and appending to the newest
// copy costs what appending costs.
#pragma once

#include <cstddef>
#include <deque>
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

  class Iterator {
   public:
    Iterator(const SharedList& list, size_t at) : list_(list), at_(at) {}
    const T& operator*() const { return list_[at_]; }
    Iterator& operator++() { return ++at_, *this; }
    bool operator!=(const Iterator& other) const { return at_ != other.at_; }

   private:
    const SharedList& list_;
    size_t at_;
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
