// The only declaration of a node's fields.
// Equality, hashing, traversal, rewriting and the Python properties are derived from it, so none can forget a field.
#pragma once

#include <tuple>

namespace helve {

/// A field of node `N`: its name and member. `defines` marks variables or buffers that the node defines.
template <class N, class M>
struct Field {
  const char* name;
  M N::* member;
  bool defines = false;
};

template <class N, class M>
constexpr Field<N, M> field(const char* name, M N::* member) {
  return {name, member, false};
}

template <class N, class M>
constexpr Field<N, M> definition(const char* name, M N::* member) {
  return {name, member, true};
}

/// Calls `f(field)` for each declared field of N, in order.
template <class N, class F>
constexpr void for_each_field(F&& f) {
  std::apply([&](const auto&... each) { (f(each), ...); }, N::fields());
}

}  // namespace helve
