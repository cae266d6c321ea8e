// Conditions of isl sets.
// isl's generator of code for conditions decides the form: it drops what the context implies and writes existentials as
// divisions.
#include "isl_condition.h"

#include "helve/ir/expr/build.h"
#include "helve/support/diagnostic.h"
#include "isl_ast.h"

namespace helve {

namespace {

isl_set* as_parameters(const isl::set& set) {
  return isl_set_params(with_parameters(set, static_cast<size_t>(isl_set_dim(set.get(), isl_dim_set))));
}

}  // namespace

Expr negated(const Expr& condition) {
  if (const int64_t* truth = int_value(condition)) return bool_imm(*truth == 0);
  const Apply* node = as<Apply>(condition);
  HELVE_CHECK(node, "a condition that is none");
  switch (node->op) {
    case Op::And: return plain_node(Op::Or, {negated(node->args[0]), negated(node->args[1])});
    case Op::Or: return plain_node(Op::And, {negated(node->args[0]), negated(node->args[1])});
    case Op::Not: return node->args[0];
    case Op::Lt: return plain_node(Op::Ge, node->args);
    case Op::Le: return plain_node(Op::Gt, node->args);
    case Op::Gt: return plain_node(Op::Le, node->args);
    case Op::Ge: return plain_node(Op::Lt, node->args);
    case Op::Eq: return plain_node(Op::Ne, node->args);
    case Op::Ne: return plain_node(Op::Eq, node->args);
    default: return plain_node(Op::Not, {condition});
  }
}

std::optional<Expr> condition_of(const isl::set& set, const isl::set& within, const std::vector<VarRef>& vars,
                                 int limit) {
  if (set.is_empty()) return bool_imm(false);
  if (within.is_subset(set)) return bool_imm(true);
  isl_ast_build* build = isl_ast_build_from_context(as_parameters(within));
  const AstExpr ast(isl_ast_build_expr_from_set(build, as_parameters(set)));
  isl_ast_build_free(build);
  if (!ast) isl::exception::throw_last_error(set.ctx());
  const Expr out = read_ast(ast.get(), vars);
  if (!out || operator_count(out) > limit) return std::nullopt;
  return out;
}

}  // namespace helve
