// Reductions that depend on fewer indices than the loops around them, as statements of their own.
// A reduction inside a loop whose index it does not use would be computed again for each value of that index: softmax
// as one statement would take the square of its elements. As a statement it is computed once, and what follows reads
// its results.
//
//   P[i, j] = exp(X[i, j]) / s,  s = sum over k of exp(X[i, k])
//   ->
//   acc[i] = sum over k of exp(X[i, k])
//   P[i, j] = exp(X[i, j]) / acc[i]
//
// Afterwards each reduction of a statement uses all indices of the loops that it stands in.
#include <algorithm>

#include "helve/ir/expr/visit.h"
#include "helve/notation/index_notation.h"
#include "walk.h"

namespace helve::notation {

namespace {

using Indices = std::vector<Index>;

class Hoister {
 public:
  explicit Hoister(const Assignment& placed) : placed_(placed), extents_(index_extents(placed)) {
    for (const Expr& subscript : placed.subscripts) left_.push_back(*find_index(placed.indices, as<Var>(subscript)));
  }

  std::vector<Assignment> statements() {
    const std::vector<Reduction>& reductions = placed_.value.reductions;
    for (const Reduction& r : reductions) {
      Reduction now = r;
      now.body = substitute(r.body, known_);
      const Indices free = free_of(r);
      if (free.size() == indices_around(r, free)) {
        kept_.push_back(std::move(now));
      } else {
        define(std::move(now), free);
      }
    }
    Assignment rest = placed_;
    rest.value = with_reductions(substitute(placed_.value.value, known_));
    out_.push_back(std::move(rest));
    return std::move(out_);
  }

 private:
  /// The indices that `r` uses, and neither it nor a reduction in it binds.
  Indices free_of(const Reduction& r) const {
    const std::vector<Reduction>& all = placed_.value.reductions;
    Indices outer = left_;
    const std::vector<Reduction> inside = reductions_used(r.body, all);
    for (const Reduction& other : all) {
      const bool binds_inside =
          other.result == r.result ||
          std::any_of(inside.begin(), inside.end(), [&](const Reduction& each) { return each.result == other.result; });
      if (!binds_inside) outer.insert(outer.end(), other.indices.begin(), other.indices.end());
    }
    return indices_used(r.body, all, outer);
  }

  /// How many indices the loops have that `r` stands in: those of the innermost reduction of whose indices it uses one,
  /// else those of the left side. Reductions come after those that they hold, so the innermost is the first.
  size_t indices_around(const Reduction& r, const Indices& free) const {
    for (const Reduction& other : placed_.value.reductions) {
      if (other.result == r.result) continue;
      const bool holds = std::any_of(other.indices.begin(), other.indices.end(),
                                     [&](const Index& index) { return find_index(free, index.var.get()); });
      if (holds) return free_of(other).size() + other.indices.size();
    }
    return left_.size();
  }

  void define(Reduction r, const Indices& free) {
    std::vector<Expr> shape, subscripts;
    for (const Index& index : free) {
      shape.push_back(extent_of(extents_, index));
      subscripts.push_back(index.var);
    }
    const VarRef result = r.result;
    const BufferRef buffer =
        make_buffer(result->name, result->dtype, MemoryScope::Global, std::move(shape), {}, {}, r.span);
    Assignment statement{buffer, subscripts, {}, free, {}, r.span.known() ? r.span : placed_.span};
    kept_.push_back(std::move(r));
    statement.value = with_reductions(result);
    kept_.pop_back();
    known_.emplace(result.get(), helve::load(buffer, std::move(subscripts), statement.span));
    out_.push_back(std::move(statement));
  }

  /// The value with those reductions that it uses.
  IndexExpr with_reductions(Expr value) const {
    std::vector<Reduction> used = reductions_used(value, kept_);
    return {std::move(value), std::move(used)};
  }

  const Assignment& placed_;
  const Extents extents_;
  Indices left_;
  Substitution known_;  ///< results of what became statements
  std::vector<Reduction> kept_;
  std::vector<Assignment> out_;
};

}  // namespace

std::vector<Assignment> hoist(const Assignment& placed) { return Hoister(placed).statements(); }

}  // namespace helve::notation
