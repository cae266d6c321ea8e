// Substitution in the expressions of a statement.
// Expressions without the variable keep their form, so that a copy of code differs only where it must. Code that the
// value does not reach may fault for certain now, and is removed: it would not verify.
#include "with_value.h"

#include "certain_faults.h"
#include "helve/arith/simplify.h"
#include "helve/ir/tensor/visit.h"

namespace helve {

Stmt with_value(const Stmt& s, const Var* var, const Expr& value) {
  const auto put = [&](const Expr& e) {
    return mentions(e, var) ? simplify(without_faults(simplify(substitute(e, {{var, value}})))) : e;
  };
  return rewrite(s, [](const Stmt& inner) { return without_fault(inner, nullptr); }, put);
}

}  // namespace helve
