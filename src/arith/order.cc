// The order and the identity of expressions.
// Terms are sorted by structure and names, never by address, so that the same program always gives the same text.
#include <bit>
#include <type_traits>

#include "helve/arith/sum.h"

namespace helve {

namespace {

template <class T>
int compare_values(const T& a, const T& b) {
  return a < b ? -1 : b < a ? 1 : 0;
}

int compare_field(const Expr& a, const Expr& b) { return compare_structure(a, b); }
int compare_field(const StorageRef& a, const StorageRef& b) { return compare_values(a->name, b->name); }
int compare_field(double a, double b) { return compare_values(std::bit_cast<uint64_t>(a), std::bit_cast<uint64_t>(b)); }
int compare_field(int64_t a, int64_t b) { return compare_values(a, b); }
int compare_field(Op a, Op b) { return compare_values(a, b); }
int compare_field(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
    if (int c = compare_structure(a[i], b[i]); c != 0) return c;
  }
  return compare_values(a.size(), b.size());
}

bool same_field(const Expr& a, const Expr& b) { return same_expr(a, b); }
bool same_field(const StorageRef& a, const StorageRef& b) { return a == b; }
bool same_field(double a, double b) { return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b); }
bool same_field(int64_t a, int64_t b) { return a == b; }
bool same_field(Op a, Op b) { return a == b; }
bool same_field(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!same_expr(a[i], b[i])) return false;
  }
  return true;
}

/// Variables before what is built from them, constants last.
int rank_of(const Expr& e) {
  switch (e->kind) {
    case ExprKind::Var: return 0;
    case ExprKind::IntImm:
    case ExprKind::FloatImm: return 2;
    default: return 1;
  }
}

}  // namespace

int compare_structure(const Expr& a, const Expr& b) {
  if (a == b) return 0;
  if (int c = compare_values(rank_of(a), rank_of(b)); c != 0) return c;
  if (int c = compare_values(a->kind, b->kind); c != 0) return c;
  if (const Var* var = as<Var>(a)) {
    if (int c = compare_values(var->name, as<Var>(b)->name); c != 0) return c;
  }
  int order = dispatch(a, [&](const auto& node) {
    using N = std::decay_t<decltype(node)>;
    int c = 0;
    for_each_field<N>([&](const auto& each) {
      if (c == 0) c = compare_field(node.*each.member, static_cast<const N&>(*b).*each.member);
    });
    return c;
  });
  if (order != 0) return order;
  if (int c = compare_values(a->dtype.code, b->dtype.code); c != 0) return c;
  return compare_values(a->dtype.bits, b->dtype.bits);
}

bool same_expr(const Expr& a, const Expr& b) {
  if (a == b) return true;
  if (a->kind != b->kind || a->dtype != b->dtype || a->kind == ExprKind::Var) return false;
  return dispatch(a, [&](const auto& node) {
    using N = std::decay_t<decltype(node)>;
    bool same = true;
    for_each_field<N>([&](const auto& each) {
      same = same && same_field(node.*each.member, static_cast<const N&>(*b).*each.member);
    });
    return same;
  });
}

}  // namespace helve
