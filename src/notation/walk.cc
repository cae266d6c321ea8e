// Walks of expressions whose variables may be results of reductions.
// Each reduction is looked at once a walk, since an expression may name its result often.
#include "walk.h"

#include <algorithm>
#include <iterator>
#include <unordered_set>

#include "helve/support/diagnostic.h"

namespace helve::notation {

const Reduction* find_reduction(const std::vector<Reduction>& reductions, const Var* var) {
  const auto found =
      std::find_if(reductions.begin(), reductions.end(), [&](const Reduction& r) { return r.result.get() == var; });
  return found == reductions.end() ? nullptr : &*found;
}

const Index* find_index(const std::vector<Index>& indices, const Var* var) {
  const auto found =
      std::find_if(indices.begin(), indices.end(), [&](const Index& index) { return index.var.get() == var; });
  return found == indices.end() ? nullptr : &*found;
}

const Expr& extent_of(const Extents& extents, const Index& index) {
  const auto found =
      std::find_if(extents.begin(), extents.end(), [&](const auto& each) { return each.first == index.var; });
  HELVE_CHECK(found != extents.end(), "an index that is looped over has an extent");
  return found->second;
}

void walk_all(const Expr& e, const std::vector<Reduction>& reductions, const std::function<void(const Expr&)>& f) {
  std::unordered_set<const Var*> seen;
  std::function<void(const Expr&)> visit = [&](const Expr& part) {
    f(part);
    const Var* var = as<Var>(part);
    const Reduction* reduction = var ? find_reduction(reductions, var) : nullptr;
    if (reduction && seen.insert(var).second) walk(reduction->body, visit);
  };
  walk(e, visit);
}

std::vector<Reduction> reductions_used(const Expr& e, const std::vector<Reduction>& reductions) {
  std::unordered_set<const Var*> named;
  walk_all(e, reductions, [&](const Expr& part) {
    if (const Var* var = as<Var>(part)) named.insert(var);
  });
  std::vector<Reduction> out;
  std::copy_if(reductions.begin(), reductions.end(), std::back_inserter(out),
               [&](const Reduction& r) { return named.contains(r.result.get()); });
  return out;
}

std::vector<Index> indices_used(const Expr& e, const std::vector<Reduction>& reductions,
                                const std::vector<Index>& indices) {
  std::vector<Index> out;
  walk_all(e, reductions, [&](const Expr& part) {
    const Var* var = as<Var>(part);
    const Index* index = var ? find_index(indices, var) : nullptr;
    if (index && !find_index(out, var)) out.push_back(*index);
  });
  return out;
}

}  // namespace helve::notation
