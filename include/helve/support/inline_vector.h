// A vector of plain values with room for N inside the object.
// Layouts are short: most operations of their algebra allocate nothing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <type_traits>
#include <vector>

namespace helve {

template <class T, size_t N>
class InlineVector {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  InlineVector() {}
  InlineVector(std::initializer_list<T> values) { append(values.begin(), values.end()); }
  InlineVector(size_t count, const T& value) { append(count, value); }
  InlineVector(const T* first, const T* last) { append(first, last); }
  InlineVector(const std::vector<T>& values) { append(values.data(), values.data() + values.size()); }
  InlineVector(const InlineVector& other) { append(other.begin(), other.end()); }
  InlineVector(InlineVector&& other) noexcept { take(other); }
  ~InlineVector() { release(); }
  InlineVector& operator=(const InlineVector& other) {
    if (this != &other) {
      size_ = 0;
      append(other.begin(), other.end());
    }
    return *this;
  }
  InlineVector& operator=(InlineVector&& other) noexcept {
    if (this != &other) {
      release();
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
  std::reverse_iterator<const T*> rbegin() const { return std::reverse_iterator<const T*>(end()); }
  std::reverse_iterator<const T*> rend() const { return std::reverse_iterator<const T*>(begin()); }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T& back() { return data_[size_ - 1]; }
  const T& back() const { return data_[size_ - 1]; }

  void push_back(const T& value) {
    if (size_ == capacity_) [[unlikely]] {
      const T kept = value;  // it may lie in the storage that is given back
      grow(size_t{size_} + 1);
      data_[size_++] = kept;
      return;
    }
    data_[size_++] = value;
  }
  void append(const T* first, const T* last) {
    const auto count = static_cast<size_t>(last - first);
    reserve(size_ + count);
    copy_elements(data_ + size_, first, count);
    size_ += static_cast<uint32_t>(count);
  }
  void append(size_t count, T value) {
    reserve(size_ + count);
    std::fill_n(data_ + size_, count, value);
    size_ += static_cast<uint32_t>(count);
  }
  void insert(const T* before, T value) {
    const auto at = static_cast<size_t>(before - data_);
    push_back(value);
    for (size_t k = size_ - 1; k > at; --k) data_[k] = data_[k - 1];
    data_[at] = value;
  }
  void erase(const T* at) {
    std::copy(const_cast<T*>(at) + 1, end(), const_cast<T*>(at));
    --size_;
  }
  /// Changes the size; new elements are not set.
  void resize_unset(size_t count) {
    reserve(count);
    size_ = static_cast<uint32_t>(count);
  }
  void pop_back() { --size_; }
  void clear() { size_ = 0; }
  void reserve(size_t count) {
    if (count > capacity_) [[unlikely]]
      grow(count);
  }

  friend bool operator==(const InlineVector& a, const InlineVector& b) {
    return a.size_ == b.size_ && std::equal(a.begin(), a.end(), b.begin());
  }
  friend bool operator==(const InlineVector& a, const std::vector<T>& b) {
    return a.size_ == b.size() && std::equal(a.begin(), a.end(), b.begin());
  }

  template <class Test>
  friend void erase_if(InlineVector& values, Test&& test) {
    values.size_ = static_cast<uint32_t>(std::remove_if(values.begin(), values.end(), test) - values.begin());
  }

 private:
  T* inside() { return reinterpret_cast<T*>(inline_); }
  const T* inside() const { return reinterpret_cast<const T*>(inline_); }
  void release() {
    if (data_ != inside()) [[unlikely]]
      delete[] data_;
  }

  [[gnu::noinline]] void grow(size_t count) {
    count = std::max(count, 2 * size_t{capacity_});
    T* grown = new T[count];
    std::copy(data_, data_ + size_, grown);
    release();
    data_ = grown;
    capacity_ = static_cast<uint32_t>(count);
  }
  /// Element by element: recently written elements are forwarded without waiting for memory, which wide moves of the
  /// whole storage would do.
  static void copy_elements(T* to, const T* from, size_t count) {
    for (size_t i = 0; i < count; ++i) to[i] = from[i];
  }
  /// Takes the values of another; this one's own storage is already released.
  void take(InlineVector& other) {
    size_ = other.size_;
    if (other.data_ == other.inside()) {
      capacity_ = N;
      copy_elements(data_, other.data_, size_);
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

}  // namespace helve
