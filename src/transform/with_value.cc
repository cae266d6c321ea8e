// Substitution in the expressions of a statement.
// Expressions without the variable keep their form, so that a copy of code differs only where it must.
#include "with_value.h"

#include "helve/arith/simplify.h"
#include "helve/ir/tensor/visit.h"

namespace helve {

Stmt with_value(const Stmt& s, const Var* var, const Expr& value) {
  const auto put = [&](const Expr& e) { return mentions(e, var) ? simplify(substitute(e, {{var, value}})) : e; };
  return rewrite(s, [](const Stmt& inner) { return inner; }, put);
}

}  // namespace helve
