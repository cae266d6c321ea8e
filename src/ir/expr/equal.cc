// Structural equality and hash of expressions.
// Two trees are equal when their fields are; the map of definitions makes bound variables equal by position.
#include "helve/ir/expr/equal.h"

#include <bit>

#include "helve/ir/expr/visit.h"

namespace helve {

void Equality::define(const Object* a, const Object* b) {
  same_.clear();  // it may depend on what a and b were
  forward_[a] = b;
  backward_[b] = a;
}

void Equality::prepend(const std::string& step) {
  if (path_.empty()) {
    path_ = step;
  } else {
    path_ = path_.front() == '[' ? step + path_ : step + "." + path_;
  }
}

bool Equality::equal(double a, double b) { return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b); }

bool Equality::equal_declaration(const Storage& a, const Storage& b) {
  return a.dtype == b.dtype && a.rank() == b.rank();
}

bool Equality::equal(const StorageRef& a, const StorageRef& b) {
  if (!a || !b) return !a && !b;
  auto f = forward_.find(a.get());
  auto g = backward_.find(b.get());
  if (f == forward_.end() && g == backward_.end()) return a == b;
  if (f == forward_.end() || g == backward_.end() || f->second != b.get() || g->second != a.get()) return false;
  auto [it, fresh] = compared_.emplace(a.get(), true);
  if (fresh) it->second = equal_declaration(*a, *b);
  return it->second;
}

bool Equality::equal(const Expr& a, const Expr& b) {
  if (!a || !b) return !a && !b;
  if (a->kind != b->kind || a->dtype != b->dtype) return false;
  const bool large = is_large(a);
  if (large && same_.contains({a.get(), b.get()})) return true;
  if (a->kind == ExprKind::Var) {
    auto f = forward_.find(a.get());
    auto g = backward_.find(b.get());
    if (f == forward_.end() && g == backward_.end()) return a == b;
    return f != forward_.end() && g != backward_.end() && f->second == b.get() && g->second == a.get();
  }
  return dispatch(a, [&](const auto& node) {
    using N = std::decay_t<decltype(node)>;
    const bool same = equal_fields(*this, node, static_cast<const N&>(*b));
    if (same && large) same_.insert({a.get(), b.get()});
    return same;
  });
}

bool structural_equal(const Expr& a, const Expr& b) { return a == b || Equality().equal(a, b); }

namespace {

uint64_t hash_of(const Expr& e, Memo<uint64_t>& known);

struct Hasher {
  Memo<uint64_t>& known;
  uint64_t hash = 0;

  void add(uint64_t value) { hash = hash_mix(hash, value); }
  void add_field(const Expr& e) { add(hash_of(e, known)); }
  void add_field(const StorageRef& s) { add(reinterpret_cast<uintptr_t>(s.get())); }
  void add_field(double d) { add(std::bit_cast<uint64_t>(d)); }
  void add_field(int64_t i) { add(static_cast<uint64_t>(i)); }
  void add_field(Op op) { add(static_cast<uint64_t>(op)); }
  template <class T>
  void add_field(const std::vector<T>& items) {
    add(items.size());
    for (const T& item : items) add_field(item);
  }
};

uint64_t hash_of_node(const Expr& e, Memo<uint64_t>& known) {
  Hasher h{known};
  h.add(static_cast<uint64_t>(e->kind));
  h.add(static_cast<uint64_t>(e->dtype.code) << 8 | e->dtype.bits);
  if (e->kind == ExprKind::Var) {
    h.add(reinterpret_cast<uintptr_t>(e.get()));
    return h.hash;
  }
  dispatch(e, [&](const auto& node) {
    using N = std::decay_t<decltype(node)>;
    for_each_field<N>([&](const auto& each) { h.add_field(node.*each.member); });
  });
  return h.hash;
}

uint64_t hash_of(const Expr& e, Memo<uint64_t>& known) {
  return known.of(e, [&] { return hash_of_node(e, known); });
}

}  // namespace

uint64_t structural_hash(const Expr& e) {
  Memo<uint64_t> known;
  return hash_of(e, known);
}

}  // namespace helve
