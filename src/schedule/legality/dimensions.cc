// Dimensions of instances: variables joined by what mentions them.
// Old variables are told apart from new ones of the same name, which stand for themselves mostly.
#include "dimensions.h"

#include <algorithm>

#include "helve/arith/sum.h"
#include "helve/ir/expr/chain.h"

namespace helve::legality {

namespace {

std::vector<const Var*> vars_in(const Expr& e) {
  std::vector<const Var*> vars;
  walk(e, [&](const Expr& node) {
    if (const Var* var = as<Var>(node)) vars.push_back(var);
  });
  return vars;
}

/// Variables by the set that they are in.
class JoinedVars {
 public:
  void add(const Var* var) { of_.emplace(var, of_.size()); }
  size_t count() const { return of_.size(); }
  size_t of(const Var* var) const { return of_.at(var); }

  /// The variables, those that are known, are in one set: which it is, if there are any.
  std::optional<size_t> join(const std::vector<const Var*>& vars) {
    std::optional<size_t> first;
    for (const Var* var : vars) {
      const auto at = of_.find(var);
      if (at == of_.end()) continue;
      if (!first) {
        first = at->second;
      } else if (*first != at->second) {
        const size_t moved = at->second;
        for (auto& [each, dimension] : of_) dimension = dimension == moved ? *first : dimension;
      }
    }
    return first;
  }

 private:
  std::unordered_map<const Var*, size_t> of_;
};

std::vector<Expr> conjuncts(const std::vector<Expr>& conditions) {
  std::vector<Expr> out;
  for (const Expr& condition : conditions) {
    const std::vector<Expr> all = operands_of_chain(condition, Op::And);
    out.insert(out.end(), all.begin(), all.end());
  }
  return out;
}

}  // namespace

bool all_same(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Expr& x, const Expr& y) { return same_expr(x, y); });
}

bool Dimension::operator==(const Dimension& other) const {
  return old_vars == other.old_vars && new_vars == other.new_vars && all_same(image, other.image) &&
         all_same(old_conditions, other.old_conditions) && all_same(new_conditions, other.new_conditions);
}

bool Dimension::is_plain() const {
  bool plain = true;
  for (const std::vector<Expr>* exprs : {&image, &old_conditions, &new_conditions}) {
    for (const Expr& e : *exprs) {
      walk(e, [&](const Expr& node) { plain &= node->kind != ExprKind::Load && node->kind != ExprKind::Cast; });
    }
  }
  return plain;
}

std::vector<Dimension> dimensions_of(const RegionStatement& was, const std::vector<Expr>& old_conditions,
                                     const Copy& copy) {
  JoinedVars joined;
  // A variable may be one of both nests; old ones are told apart by what stands for them here.
  Substitution old_names;
  std::vector<VarRef> marks;
  for (const VarRef& var : was.vars) {
    marks.push_back(make_var(var->name));
    old_names.emplace(var.get(), Expr(marks.back()));
    joined.add(marks.back().get());
  }
  for (const VarRef& var : copy.now->vars) joined.add(var.get());
  std::vector<std::pair<std::vector<const Var*>, Expr>> olds, nows;
  for (const Expr& condition : conjuncts(old_conditions)) {
    olds.emplace_back(vars_in(substitute(condition, old_names)), condition);
  }
  for (const Expr& condition : conjuncts(copy.conditions)) nows.emplace_back(vars_in(condition), condition);
  for (const auto* list : {&olds, &nows}) {
    for (const auto& [vars, condition] : *list) joined.join(vars);
  }
  for (size_t v = 0; v < was.vars.size(); ++v) {
    std::vector<const Var*> vars = vars_in(copy.values.at(was.vars[v].get()));
    vars.push_back(marks[v].get());
    joined.join(vars);
  }
  std::vector<Dimension> out(joined.count() + 1);  // the last one: of what is fixed
  const auto at = [&](const std::vector<const Var*>& vars) { return joined.join(vars).value_or(out.size() - 1); };
  for (size_t v = 0; v < was.vars.size(); ++v) {
    Dimension& d = out[joined.of(marks[v].get())];
    d.old_vars.push_back(was.vars[v]);
    d.image.push_back(copy.values.at(was.vars[v].get()));
  }
  for (const VarRef& var : copy.now->vars) out[joined.of(var.get())].new_vars.push_back(var);
  for (const auto& [vars, condition] : olds) out[at(vars)].old_conditions.push_back(condition);
  for (const auto& [vars, condition] : nows) out[at(vars)].new_conditions.push_back(condition);
  return out;
}

std::vector<Dimension> take_common(std::vector<std::vector<Dimension>>& lists) {
  std::vector<Dimension> out;
  for (const Dimension& each : lists[0]) {
    const auto has_it = [&](const std::vector<Dimension>& list) {
      return std::find(list.begin(), list.end(), each) != list.end();
    };
    if (lists.size() > 1 && !each.is_plain()) continue;
    if (std::all_of(lists.begin(), lists.end(), has_it)) out.push_back(each);
  }
  for (std::vector<Dimension>& list : lists) {
    std::erase_if(list, [&](const Dimension& each) { return std::find(out.begin(), out.end(), each) != out.end(); });
  }
  return out;
}

Dimension joined(const RegionStatement& was, const std::vector<Dimension>& all) {
  Dimension out;
  for (const VarRef& var : was.vars) {
    for (const Dimension& each : all) {
      const auto at = std::find(each.old_vars.begin(), each.old_vars.end(), var);
      if (at == each.old_vars.end()) continue;
      out.old_vars.push_back(var);
      out.image.push_back(each.image[static_cast<size_t>(at - each.old_vars.begin())]);
    }
  }
  for (const Dimension& each : all) {
    out.new_vars.insert(out.new_vars.end(), each.new_vars.begin(), each.new_vars.end());
    out.old_conditions.insert(out.old_conditions.end(), each.old_conditions.begin(), each.old_conditions.end());
    out.new_conditions.insert(out.new_conditions.end(), each.new_conditions.begin(), each.new_conditions.end());
  }
  return out;
}

bool KeptDimensions::contains(const Dimension& d) const { return std::find(all_.begin(), all_.end(), d) != all_.end(); }

void KeptDimensions::add(const Dimension& d) {
  if (d.is_plain()) all_.push_back(d);
}

}  // namespace helve::legality
