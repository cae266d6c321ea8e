// Between expressions and what isl's generator of code makes: the way back from isl.
// Conditions and bounds share it, so that both have the same forms.
#pragma once

#include <isl/ast.h>
#include <isl/ast_build.h>
#include <isl/cpp.h>

#include <memory>
#include <vector>

#include "helve/ir/expr/expr.h"

namespace helve {

struct FreeAst {
  void operator()(isl_ast_expr* e) const { isl_ast_expr_free(e); }
};
using AstExpr = std::unique_ptr<isl_ast_expr, FreeAst>;

/// The set with its first `count` dimensions as parameters, which is where isl's generator looks for them.
isl_set* with_parameters(const isl::set& set, size_t count);

/// The expression with the parameters of with_parameters read as `vars`; null when isl answers in a form that has no
/// counterpart.
Expr read_ast(const isl_ast_expr* e, const std::vector<VarRef>& vars);

/// A node without conversions, as in the affine abstraction.
Expr plain_node(Op op, std::vector<Expr> args);

/// Operators of an expression.
int operator_count(const Expr& e);

}  // namespace helve
