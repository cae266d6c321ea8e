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

namespace {

void walk_new(const Expr& e, const std::function<void(const Expr&)>& f, Seen& seen) {
  if (!seen.is_new(e)) return;
  f(e);
  for_each_child(e, [&](const Expr& child) { walk_new(child, f, seen); });
}

Expr rewrite_once(const Expr& e, const std::function<Expr(const Expr&)>& f, Memo<Expr>& known) {
  return known.of(e,
                  [&] { return f(map_children(e, [&](const Expr& child) { return rewrite_once(child, f, known); })); });
}

}  // namespace

void walk(const Expr& e, const std::function<void(const Expr&)>& f) {
  Seen seen;
  walk_new(e, f, seen);
}

Expr map_children(const Expr& e, const std::function<Expr(const Expr&)>& f) {
  throw_if_cancelled();
  return dispatch(e, [&](const auto& node) -> Expr {
    using N = std::decay_t<decltype(node)>;
    if constexpr (std::tuple_size_v<decltype(N::fields())> == 0) {
      return e;
    } else {
      const Ref<N> copy = copy_with(node, [&](N& out) {
        bool changed = false;
        for_each_field<N>([&](const auto& each) { changed |= map_field(out.*each.member, f); });
        return changed;
      });
      return copy ? Expr(copy) : e;
    }
  });
}

Expr rewrite(const Expr& e, const std::function<Expr(const Expr&)>& f) {
  Memo<Expr> known;
  return rewrite_once(e, f, known);
}

namespace {

void flatten(const Expr& e, Op op, Seen& seen, std::vector<Expr>& out) {
  const Apply* node = as_op(e, op);
  if (!node) {
    out.push_back(e);
  } else if (seen.is_new(e)) {
    for (const Expr& arg : node->args) flatten(arg, op, seen, out);
  }
}

}  // namespace

std::vector<Expr> operands_of_chain(const Expr& e, Op op) {
  std::vector<Expr> out;
  Seen seen;
  flatten(e, op, seen, out);
  return out;
}

Expr substitute(const Expr& e, const Substitution& values) {
  return rewrite(e, [&](const Expr& node) -> Expr {
    const Var* var = as<Var>(node);
    if (!var) return node;
    auto it = values.find(var);
    return it == values.end() ? node : it->second;
  });
}

bool add_value(Substitution& values, const VarRef& var, const Expr& value) {
  values.erase(var.get());
  Expr meant = values.empty() ? value : substitute(value, values);
  if (meant->occurrences() > kLargestValue) return false;
  values.emplace(var.get(), std::move(meant));
  return true;
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
