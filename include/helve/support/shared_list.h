// A list that its copies share.
// What is known grows along a path and is kept for each place on it: a copy costs nothing, and appending to the newest
// copy costs what appending costs.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace helve {

/// A value: no copy sees what another one appends or replaces. Copies belong to one thread.
template <class T>
class SharedList {
 public:
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T& operator[](size_t i) const { return (*items_)[i]; }
  const T* begin() const { return items_ ? items_->data() : nullptr; }
  const T* end() const { return begin() + size_; }

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
  void own() { items_ = std::make_shared<std::vector<T>>(begin(), end()); }

  std::shared_ptr<std::vector<T>> items_;  ///< what stands beyond `size_` was appended to a copy
  size_t size_ = 0;
};

}  // namespace helve
