// A second copy of a statement, with definitions of its own.
// Definitions are collected first, then replaced together with all their uses.
#include "renewed.h"

#include <algorithm>

#include "helve/ir/tensor/visit.h"

namespace helve {

Definitions::Definitions(const Stmt& s) {
  walk(s, [&](const Stmt& inner) {
    if (const For* n = as<For>(inner)) vars.insert(vars.end(), n->vars.begin(), n->vars.end());
    if (const Kernel* n = as<Kernel>(inner)) vars.insert(vars.end(), n->vars.begin(), n->vars.end());
    if (const Bind* n = as<Bind>(inner)) vars.push_back(n->var);
    if (const Alloc* n = as<Alloc>(inner)) buffers.push_back(n->buffer);
  });
}

Stmt renewed(const Stmt& s) {
  const Definitions defined(s);
  Substitution vars;
  for (const VarRef& var : defined.vars) vars.emplace(var.get(), Expr(make_var(var->name, var->dtype)));
  BufferMap buffers;
  for (const BufferRef& b : defined.buffers) {
    buffers.emplace(b.get(), declare_again(*b));
  }
  const auto own = [&](const VarRef& var) { return VarRef(as<Var>(vars.at(var.get()))); };
  const auto all_own = [&](std::vector<VarRef>& of) { std::transform(of.begin(), of.end(), of.begin(), own); };
  return rewrite(replace_buffers(substitute(s, vars), buffers), [&](const Stmt& inner) -> Stmt {
    if (const For* n = as<For>(inner)) return Stmt(copy_with(*n, [&](For& copy) { all_own(copy.vars); }));
    if (const Kernel* n = as<Kernel>(inner)) return Stmt(copy_with(*n, [&](Kernel& copy) { all_own(copy.vars); }));
    if (const Bind* n = as<Bind>(inner)) return bind(own(n->var), n->value, inner->span);
    if (const Alloc* n = as<Alloc>(inner)) return alloc(buffers.at(n->buffer.get()), inner->span);
    return inner;
  });
}

}  // namespace helve
