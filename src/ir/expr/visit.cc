// Traversal and rewriting by the declared fields of each node.
// Written once over the field lists; a node added to the table is traversed without a line here.
#include "helve/ir/expr/visit.h"

#include <type_traits>

#include "helve/support/cancel.h"

namespace helve {

namespace {

template <class T>
void children_of(const T& value, const std::function<void(const Expr&)>& f) {
  if constexpr (std::is_same_v<T, Expr>) {
    f(value);
  } else if constexpr (std::is_same_v<T, std::vector<Expr>>) {
    for (const Expr& e : value) f(e);
  }
}

/// Maps a field; true when it changed.
template <class T>
bool map_field(T& value, const std::function<Expr(const Expr&)>& f) {
  bool changed = false;
  if constexpr (std::is_same_v<T, Expr>) {
    Expr mapped = f(value);
    changed = mapped != value;
    value = mapped;
  } else if constexpr (std::is_same_v<T, std::vector<Expr>>) {
    for (Expr& e : value) changed |= map_field(e, f);
  }
  return changed;
}

}  // namespace

void for_each_child(const Expr& e, const std::function<void(const Expr&)>& f) {
  dispatch(e, [&](const auto& node) {
    using N = std::decay_t<decltype(node)>;
    for_each_field<N>([&](const auto& each) { children_of(node.*each.member, f); });
  });
}

void walk(const Expr& e, const std::function<void(const Expr&)>& f) {
  f(e);
  for_each_child(e, [&](const Expr& child) { walk(child, f); });
}

Expr map_children(const Expr& e, const std::function<Expr(const Expr&)>& f) {
  throw_if_cancelled();
  return dispatch(e, [&](const auto& node) -> Expr {
    using N = std::decay_t<decltype(node)>;
    if constexpr (std::tuple_size_v<decltype(N::fields())> == 0) {
      return e;
    } else {
      Ref<N> copy = make_ref<N>(node);
      bool changed = false;
      for_each_field<N>([&](const auto& each) { changed |= map_field((*copy).*each.member, f); });
      return changed ? Expr(copy) : e;
    }
  });
}

Expr rewrite(const Expr& e, const std::function<Expr(const Expr&)>& f) {
  return f(map_children(e, [&](const Expr& child) { return rewrite(child, f); }));
}

Expr substitute(const Expr& e, const Substitution& values) {
  return rewrite(e, [&](const Expr& node) -> Expr {
    const Var* var = as<Var>(node);
    if (!var) return node;
    auto it = values.find(var);
    return it == values.end() ? node : it->second;
  });
}

bool mentions(const Expr& e, const Var* var) {
  bool found = false;
  walk(e, [&](const Expr& node) { found |= node.get() == var; });
  return found;
}

bool has_load(const Expr& e) {
  bool found = false;
  walk(e, [&](const Expr& node) { found |= node->kind == ExprKind::Load || node->kind == ExprKind::TileLoad; });
  return found;
}

}  // namespace helve
