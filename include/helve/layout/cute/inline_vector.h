// A vector of plain values with room for N inside the object.
// Layouts are short: most operations of the algebra allocate nothing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <type_traits>

namespace helve::cute {

template <class T, size_t N>
class InlineVector {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  InlineVector() = default;
  InlineVector(std::initializer_list<T> values) { append(values.begin(), values.end()); }
  InlineVector(size_t count, const T& value) {
    reserve(count);
    std::fill_n(data(), count, value);
    size_ = count;
  }
  InlineVector(const InlineVector& other) { append(other.begin(), other.end()); }
  InlineVector(InlineVector&& other) noexcept { take(other); }
  InlineVector& operator=(const InlineVector& other) {
    if (this != &other) {
      size_ = 0;
      append(other.begin(), other.end());
    }
    return *this;
  }
  InlineVector& operator=(InlineVector&& other) noexcept {
    if (this != &other) take(other);
    return *this;
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return heap_ ? heap_.get() : inside(); }
  const T* data() const { return heap_ ? heap_.get() : inside(); }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
  T& operator[](size_t i) { return data()[i]; }
  const T& operator[](size_t i) const { return data()[i]; }
  T& back() { return data()[size_ - 1]; }
  const T& back() const { return data()[size_ - 1]; }

  void push_back(T value) {
    if (size_ == capacity_) reserve(2 * capacity_);
    data()[size_++] = value;
  }
  void append(const T* first, const T* last) {
    size_t count = static_cast<size_t>(last - first);
    if (count == 0) return;
    reserve(size_ + count);
    std::memcpy(static_cast<void*>(data() + size_), first, count * sizeof(T));
    size_ += count;
  }
  void pop_back() { --size_; }
  void clear() { size_ = 0; }
  void reserve(size_t count) {
    if (count <= capacity_) return;
    count = std::max(count, 2 * capacity_);
    std::unique_ptr<T[]> grown(new T[count]);
    if (size_ != 0) std::memcpy(static_cast<void*>(grown.get()), data(), size_ * sizeof(T));
    heap_ = std::move(grown);
    capacity_ = count;
  }

  friend bool operator==(const InlineVector& a, const InlineVector& b) {
    return a.size_ == b.size_ && std::equal(a.begin(), a.end(), b.begin());
  }

 private:
  T* inside() { return reinterpret_cast<T*>(inline_); }
  const T* inside() const { return reinterpret_cast<const T*>(inline_); }
  void take(InlineVector& other) {
    heap_ = std::move(other.heap_);
    size_ = other.size_;
    capacity_ = heap_ ? other.capacity_ : N;
    if (!heap_ && size_ != 0) std::memcpy(inline_, other.inline_, size_ * sizeof(T));
    other.size_ = 0;
    other.capacity_ = N;
  }

  size_t size_ = 0;
  size_t capacity_ = N;
  std::unique_ptr<T[]> heap_;
  alignas(T) std::byte inline_[N * sizeof(T)];
};

}  // namespace helve::cute
