// Intrusive reference counting for immutable nodes.
// Nodes are shared by passes, threads and Python; a count inside the object makes a reference one pointer wide.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <type_traits>
#include <utility>

namespace helve {

/// Base of every reference-counted object. Objects are immutable once shared, except for the count.
class Object {
 public:
  Object() = default;
  Object(const Object&) noexcept {}
  Object& operator=(const Object&) = delete;
  virtual ~Object() = default;

  void retain() const noexcept { count_.fetch_add(1, std::memory_order_relaxed); }
  void release() const noexcept {
    if (count_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

 private:
  mutable std::atomic<int> count_{0};
};

/// A counted pointer to a `T` derived from Object. Comparison is identity; structural equality is a function.
template <class T>
class Ref {
 public:
  using element_type = T;

  Ref() = default;
  Ref(std::nullptr_t) {}  // NOLINT: a null reference converts like a null pointer
  explicit Ref(T* p) : p_(p) {
    if (p_) p_->retain();
  }
  Ref(const Ref& o) : Ref(o.p_) {}
  Ref(Ref&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  template <class U>
    requires std::is_convertible_v<U*, T*>
  Ref(const Ref<U>& o) : Ref(static_cast<T*>(o.get())) {}  // NOLINT: upcasts are implicit, as for raw pointers
  ~Ref() {
    if (p_) p_->release();
  }
  Ref& operator=(Ref o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }

  T* get() const { return p_; }
  T* operator->() const { return p_; }
  T& operator*() const { return *p_; }
  explicit operator bool() const { return p_ != nullptr; }

  friend bool operator==(const Ref& a, const Ref& b) { return a.p_ == b.p_; }
  friend auto operator<=>(const Ref& a, const Ref& b) { return a.p_ <=> b.p_; }

 private:
  T* p_ = nullptr;
};

template <class T, class... Args>
Ref<T> make_ref(Args&&... args) {
  return Ref<T>(new T(std::forward<Args>(args)...));
}

}  // namespace helve

template <class T>
struct std::hash<helve::Ref<T>> {
  size_t operator()(const helve::Ref<T>& r) const noexcept { return std::hash<T*>()(r.get()); }
};
