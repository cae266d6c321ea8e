// A second copy of a statement, with definitions of its own.
// Definitions are collected first, by the declared fields of each node, then replaced together with all their uses.
#include "helve/ir/tensor/renamed.h"

#include <type_traits>

namespace helve {

namespace {

/// Calls `f` on each variable and buffer that the node defines.
template <class N, class F>
void for_each_definition(N& node, F&& f) {
  for_each_field<std::remove_const_t<N>>([&](const auto& each) {
    if (!each.defines) return;
    auto& value = node.*each.member;
    using M = std::remove_cvref_t<decltype(value)>;
    if constexpr (std::is_same_v<M, VarRef> || std::is_same_v<M, BufferRef>) {
      if (value) f(value);
    } else if constexpr (std::is_same_v<M, std::vector<VarRef>>) {
      for (auto& each_value : value) f(each_value);
    }
  });
}

struct Renamer {
  const Substitution& vars;
  const BufferMap& buffers;
  void operator()(VarRef& var) const { var = VarRef(as<Var>(vars.at(var.get()))); }
  void operator()(BufferRef& buffer) const { buffer = buffers.at(buffer.get()); }
};

}  // namespace

Definitions::Definitions(const Stmt& s) {
  walk(s, [&](const Stmt& inner) {
    dispatch(inner, [&](const auto& node) {
      for_each_definition(node, [&](const auto& defined) {
        if constexpr (std::is_same_v<std::remove_cvref_t<decltype(defined)>, VarRef>) {
          vars.push_back(defined);
        } else {
          buffers.push_back(defined);
        }
      });
    });
  });
}

Renewal renew(const Stmt& s, const Substitution& values) {
  return renew(s, values, [](const std::string& name) { return name; });
}

Renewal renew(const Stmt& s, const Substitution& values, const NewName& name) {
  const Definitions defined(s);
  Renewal out;
  Substitution vars = values;
  for (const VarRef& var : defined.vars) {
    out.vars.emplace_back(var, make_var(name(var->name), var->dtype, var->span));
    vars.insert_or_assign(var.get(), Expr(out.vars.back().second));
  }
  BufferMap buffers;
  for (const BufferRef& b : defined.buffers) {
    Ref<Buffer> own = make_ref<Buffer>(*b);
    own->name = name(b->name);
    buffers.emplace(b.get(), BufferRef(own));
  }
  out.stmt = rewrite(replace_buffers(substitute(s, vars), buffers), [&](const Stmt& inner) {
    return dispatch(inner, [&](const auto& node) -> Stmt {
      using N = std::decay_t<decltype(node)>;
      bool defines = false;
      for_each_field<N>([&](const auto& each) { defines |= each.defines; });
      if (!defines) return inner;
      return Stmt(copy_with(node, [&](N& copy) { for_each_definition(copy, Renamer{vars, buffers}); }));
    });
  });
  return out;
}

}  // namespace helve
