// A vector of plain values with room for N inside the object.
// Layouts are short: most operations of the algebra allocate nothing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <type_traits>

namespace helve::cute {

template <class T, size_t N>
class InlineVector {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  InlineVector() = default;
  InlineVector(std::initializer_list<T> values) { append(values.begin(), values.end()); }
  InlineVector(size_t count, const T& value) { append(count, value); }
  InlineVector(const InlineVector& other) { append(other.begin(), other.end()); }
  InlineVector(InlineVector&& other) noexcept { take(other); }
  ~InlineVector() {
    if (data_ != inside()) delete[] data_;
  }
  InlineVector& operator=(const InlineVector& other) {
    if (this != &other) {
      size_ = 0;
      append(other.begin(), other.end());
    }
    return *this;
  }
  InlineVector& operator=(InlineVector&& other) noexcept {
    if (this != &other) {
      if (data_ != inside()) delete[] data_;
      data_ = inside();
      take(other);
    }
    return *this;
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T& back() { return data_[size_ - 1]; }
  const T& back() const { return data_[size_ - 1]; }

  void push_back(T value) {
    if (size_ == capacity_) reserve(2 * size_t{capacity_});
    data_[size_++] = value;
  }
  void append(const T* first, const T* last) {
    size_t count = static_cast<size_t>(last - first);
    reserve(size_ + count);
    std::copy(first, last, data_ + size_);
    size_ += static_cast<uint32_t>(count);
  }
  void append(size_t count, T value) {
    reserve(size_ + count);
    std::fill_n(data_ + size_, count, value);
    size_ += static_cast<uint32_t>(count);
  }
  void pop_back() { --size_; }
  void clear() { size_ = 0; }
  void reserve(size_t count) {
    if (count > capacity_) grow(count);
  }

  friend bool operator==(const InlineVector& a, const InlineVector& b) {
    return a.size_ == b.size_ && std::equal(a.begin(), a.end(), b.begin());
  }

 private:
  T* inside() { return reinterpret_cast<T*>(inline_); }

  void grow(size_t count) {
    count = std::max(count, 2 * size_t{capacity_});
    T* grown = new T[count];
    std::copy(data_, data_ + size_, grown);
    if (data_ != inside()) delete[] data_;
    data_ = grown;
    capacity_ = static_cast<uint32_t>(count);
  }
  /// Takes the values of another; this one's own storage is already given back.
  void take(InlineVector& other) {
    size_ = other.size_;
    if (other.data_ == other.inside()) {
      capacity_ = N;
      std::copy(other.data_, other.data_ + size_, data_);
    } else {
      data_ = other.data_;
      capacity_ = other.capacity_;
      other.data_ = other.inside();
      other.capacity_ = N;
    }
    other.size_ = 0;
  }

  T* data_ = inside();
  uint32_t size_ = 0;
  uint32_t capacity_ = N;
  alignas(T) std::byte inline_[N * sizeof(T)];
};

}  // namespace helve::cute
