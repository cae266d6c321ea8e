// The comparison of a stored value with what stands in the place of a load.
// The store does not run there, but its value is computed as if it did: a copy of it, with the instance as its values.
#include "inlined.h"

#include "helve/ir/expr/chain.h"
#include "helve/ir/tensor/update.h"

namespace helve::legality {

std::optional<std::vector<LoadPair>> loads_of_value(const Rewrite& rewrite, const InlinedLoad& inlined,
                                                    const Expr& now) {
  const Stmt stmt(rewrite.was(*inlined.writer).stmt);
  const Store* store = as<Store>(stmt);
  if (!store || store->mode != StoreMode::Write || store->value->dtype != now->dtype) return std::nullopt;
  Matcher matcher(rewrite, *inlined.writer);
  if (!matcher.same_elsewhere(as_stored(store->value), now)) return std::nullopt;
  return matcher.moved();
}

IntegerRelation source_of_copy(const Rewrite& rewrite, const Copy& copy, const AccessModel& model,
                               const Sources& sources) {
  std::vector<Expr> image{int_imm(static_cast<int64_t>(copy.was))}, conditions = rewrite.given;
  for (const VarRef& var : rewrite.was(copy).vars) image.push_back(copy.values.at(var.get()));
  image.resize(sources.arity, int_imm(0));
  conditions.insert(conditions.end(), copy.conditions.begin(), copy.conditions.end());
  return IntegerRelation(rewrite.before.engine, copy.now->vars, image, conjunction(conditions), copy.locals,
                         copy.translation(model));
}

IntegerRelation wanted_source(const Rewrite& rewrite, const InlinedLoad& inlined, const Sources& sources) {
  return source_of_copy(rewrite, *inlined.writer, rewrite.after, sources);
}

}  // namespace helve::legality
