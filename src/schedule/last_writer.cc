// The last instance of a store that writes an element, by isl.
// Variables are found from the outermost one inwards: the greatest value that each has, given those around it.
#include "last_writer.h"

#include <fmt/format.h>

#include <algorithm>

#include "helve/analysis/path_conditions.h"
#include "helve/arith/set_bounds.h"
#include "helve/arith/simplify.h"
#include "helve/ir/expr/chain.h"
#include "helve/ir/tensor/visit.h"

namespace helve {

namespace {

/// The largest expression of a variable.
constexpr int kValueLimit = 12;

std::vector<VarRef> vars_of(const Stmt& s) {
  if (const For* loop = as<For>(s)) return loop->vars;
  if (const Kernel* grid = as<Kernel>(s)) return grid->vars;
  if (const ForTiles* tiles = as<ForTiles>(s)) return tiles->vars;
  return {};
}

}  // namespace

LastWriter::LastWriter(const FunctionRef& f, const Cursor& store)
    : f_(f), model_(access_model(*f, statement_at(*f, store))) {
  for (Cursor at = store; at.has_parent();) {
    at = at.parent();
    if (!vars_of(statement_at(*f, at)).empty()) loops_.insert(loops_.begin(), at);
  }
}

const LastWriter::Solution* LastWriter::solution(size_t shared) {
  const auto known = std::find_if(known_.begin(), known_.end(), [&](auto& each) { return each.shared == shared; });
  if (known != known_.end()) return &*known;
  const auto write = std::find_if(model_.accesses.begin(), model_.accesses.end(), [](auto& a) { return a.write; });
  Solution out{shared, {}, {}};
  std::vector<VarRef> vars;
  for (size_t l = shared; l < loops_.size(); ++l) {
    for (const VarRef& var : vars_of(statement_at(*f_, loops_[l]))) vars.push_back(var);
  }
  PathConditions query(model_);
  for (const VarRef& dim : f_->dims) query.require(apply(Op::Le, {int_imm(0), Expr(dim)}));
  std::vector<VarRef> locals;
  for (const StepRef& step : write->path) {
    if (!says_something(*step)) continue;
    query.add(*step);
    if (step->begins.empty()) locals.insert(locals.end(), step->vars.begin(), step->vars.end());
  }
  const Translation translation = query.translation();
  std::vector<Expr> conditions;
  for (const Expr& condition : query.conditions()) {
    if (inexact_parts(condition, translation).empty()) conditions.push_back(condition);
  }
  for (size_t d = 0; d < write->ranges.size(); ++d) {
    out.element.push_back(make_var(fmt::format("e{}", d)));
    conditions.push_back(apply(Op::Eq, {Expr(out.element.back()), write->ranges[d].begin}));
  }
  std::vector<VarRef> tuple = out.element;
  tuple.insert(tuple.end(), vars.begin(), vars.end());
  const IntegerSet all(ExactEngine(), tuple, conjunction(conditions), locals, translation);
  if (!all.inexact().empty()) {
    reason_ = all.inexact();
    return nullptr;
  }
  Substitution values;
  for (size_t v = 0; v < vars.size(); ++v) {
    const std::vector<VarRef> kept(tuple.begin(), tuple.begin() + static_cast<ptrdiff_t>(out.element.size() + v + 1));
    const std::optional<Expr> value = greatest_value(all.projected(kept), vars[v], kValueLimit);
    if (!value) {
      reason_ = fmt::format("'{}' is no short expression of the element that is stored", vars[v]->name);
      return nullptr;
    }
    out.values.emplace_back(vars[v], simplify(substitute(*value, values)));
    values[vars[v].get()] = out.values.back().second;
  }
  known_.push_back(std::move(out));
  return &known_.back();
}

std::optional<LoopValues> LastWriter::at(const Cursor& reader, const std::vector<Expr>& subscripts) {
  const auto around = [&](const Cursor& loop) { return reader.within(loop); };
  const auto shared = std::find_if_not(loops_.begin(), loops_.end(), around) - loops_.begin();
  const Solution* solved = solution(static_cast<size_t>(shared));
  if (!solved) return std::nullopt;
  Substitution element;
  for (size_t d = 0; d < subscripts.size(); ++d) element[solved->element[d].get()] = subscripts[d];
  LoopValues out;
  for (const auto& [var, value] : solved->values) out.emplace_back(var, simplify(substitute(value, element)));
  return out;
}

}  // namespace helve
