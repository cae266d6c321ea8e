// The order and the identity of expressions.
// Terms are sorted by structure and names, never by address, so that the same program always gives the same text.
#include <bit>
#include <set>
#include <type_traits>
#include <utility>

#include "helve/arith/sum.h"
#include "helve/ir/expr/visit.h"

namespace helve {

namespace {

template <class T>
int compare_values(const T& a, const T& b) {
  return a < b ? -1 : b < a ? 1 : 0;
}

/// Pairs of large expressions that were found the same: what two expressions share is compared once.
using Pairs = std::set<std::pair<const ExprNode*, const ExprNode*>>;

int compare(const Expr& a, const Expr& b, Pairs& same);
bool same_nodes(const Expr& a, const Expr& b, Pairs& same);

int compare_field(const Expr& a, const Expr& b, Pairs& same) { return compare(a, b, same); }
int compare_field(const StorageRef& a, const StorageRef& b, Pairs&) { return compare_values(a->name, b->name); }
int compare_field(double a, double b, Pairs&) {
  return compare_values(std::bit_cast<uint64_t>(a), std::bit_cast<uint64_t>(b));
}
int compare_field(int64_t a, int64_t b, Pairs&) { return compare_values(a, b); }
int compare_field(Op a, Op b, Pairs&) { return compare_values(a, b); }
int compare_field(const std::vector<Expr>& a, const std::vector<Expr>& b, Pairs& same) {
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
    if (int c = compare(a[i], b[i], same); c != 0) return c;
  }
  return compare_values(a.size(), b.size());
}

bool same_field(const Expr& a, const Expr& b, Pairs& same) { return same_nodes(a, b, same); }
bool same_field(const StorageRef& a, const StorageRef& b, Pairs&) { return a == b; }
bool same_field(double a, double b, Pairs&) { return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b); }
bool same_field(int64_t a, int64_t b, Pairs&) { return a == b; }
bool same_field(Op a, Op b, Pairs&) { return a == b; }
bool same_field(const std::vector<Expr>& a, const std::vector<Expr>& b, Pairs& same) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!same_nodes(a[i], b[i], same)) return false;
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

int compare(const Expr& a, const Expr& b, Pairs& same) {
  if (a == b) return 0;
  if (int c = compare_values(rank_of(a), rank_of(b)); c != 0) return c;
  if (int c = compare_values(a->kind, b->kind); c != 0) return c;
  if (const Var* var = as<Var>(a)) {
    if (int c = compare_values(var->name, as<Var>(b)->name); c != 0) return c;
  }
  const bool large = is_large(a);
  if (large && same.contains({a.get(), b.get()})) return 0;
  int order = dispatch(a, [&](const auto& node) {
    using N = std::decay_t<decltype(node)>;
    int c = 0;
    for_each_field<N>([&](const auto& each) {
      if (c == 0) c = compare_field(node.*each.member, static_cast<const N&>(*b).*each.member, same);
    });
    return c;
  });
  if (order == 0) order = compare_values(a->dtype.code, b->dtype.code);
  if (order == 0) order = compare_values(a->dtype.bits, b->dtype.bits);
  if (large && order == 0) same.insert({a.get(), b.get()});
  return order;
}

bool same_nodes(const Expr& a, const Expr& b, Pairs& same) {
  if (a == b) return true;
  if (a->kind != b->kind || a->dtype != b->dtype || a->kind == ExprKind::Var) return false;
  if (a->occurrences() != b->occurrences() || a->depth() != b->depth()) return false;
  const bool large = is_large(a);
  if (large && same.contains({a.get(), b.get()})) return true;
  const bool equal = dispatch(a, [&](const auto& node) {
    using N = std::decay_t<decltype(node)>;
    bool all = true;
    for_each_field<N>([&](const auto& each) {
      all = all && same_field(node.*each.member, static_cast<const N&>(*b).*each.member, same);
    });
    return all;
  });
  if (large && equal) same.insert({a.get(), b.get()});
  return equal;
}

}  // namespace

int compare_structure(const Expr& a, const Expr& b) {
  Pairs same;
  return compare(a, b, same);
}

bool same_expr(const Expr& a, const Expr& b) {
  Pairs same;
  return same_nodes(a, b, same);
}

}  // namespace helve
