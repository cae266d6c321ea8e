// What an access updates, in terms of loads.
// `old = s[0]` and `s[0] = old + 1` are the same update as `s[0] = s[0] + 1`.
#include "updates.h"

#include <algorithm>

#include "helve/ir/expr/visit.h"
#include "helve/ir/tensor/visit.h"

namespace helve::proofs {

namespace {

/// The values that names of the loop stand for, those that are not too large.
Substitution values_in(const StmtNode& loop) {
  Substitution out;
  walk(Stmt(&loop), [&](const Stmt& s) {
    const Bind* bind = as<Bind>(s);
    if (!bind) return;
    const Expr value = substitute(bind->value, out);
    if (is_large(value)) {
      out.erase(bind->var.get());
    } else {
      out[bind->var.get()] = value;
    }
  });
  return out;
}

}  // namespace

std::optional<Update> update_by(const Iterations& of, const Access& access) {
  if (!access.write || access.stmt->kind != StmtKind::Store || is_atomic(access.mode)) return std::nullopt;
  const Substitution values = values_in(*of.step.stmt);
  Update out{access.buffer.get(), {}, substitute(access.value, values)};
  for (const Range& range : access.ranges) out.element.push_back(substitute(range.begin, values));
  for (size_t i = of.at; i < access.path.size(); ++i) {
    if (access.path[i]->condition) out.conditions.push_back(substitute(access.path[i]->condition, values));
  }
  return out;
}

}  // namespace helve::proofs
