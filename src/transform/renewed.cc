// A second copy of a statement, with definitions of its own.
// Definitions are found first, then all their uses and they themselves are replaced.
#include "renewed.h"

#include <algorithm>

#include "helve/ir/tensor/visit.h"

namespace helve {

Definitions::Definitions(const Stmt& s) {
  walk(s, [&](const Stmt& inner) {
    if (const For* n = as<For>(inner)) vars.insert(vars.end(), n->vars.begin(), n->vars.end());
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
  return rewrite(replace_buffers(substitute(s, vars), buffers), [&](const Stmt& inner) -> Stmt {
    if (const For* n = as<For>(inner)) {
      return Stmt(
          copy_with(*n, [&](For& copy) { std::transform(n->vars.begin(), n->vars.end(), copy.vars.begin(), own); }));
    }
    if (const Bind* n = as<Bind>(inner)) return bind(own(n->var), n->value, inner->span);
    if (const Alloc* n = as<Alloc>(inner)) return alloc(buffers.at(n->buffer.get()), inner->span);
    return inner;
  });
}

}  // namespace helve
