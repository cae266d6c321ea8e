// The rows of the operator table.
// Kept apart from the nodes so that a new operator is one line of data.
#include "helve/ir/expr/operators.h"

namespace helve {

const std::vector<OpRow>& operator_rows() {
  static const std::vector<OpRow> rows = {
#define HELVE_OPERATOR(name, text, arity, form, precedence, rule) \
  {Op::name, #name, text, arity, OpForm::form, precedence, OpRule::rule},
#include "helve/ir/expr/operator_table.inc"
#undef HELVE_OPERATOR
  };
  return rows;
}

std::optional<Op> parse_op(std::string_view name) {
  for (const OpRow& row : operator_rows()) {
    if (row.name == name) return row.op;
  }
  return std::nullopt;
}

}  // namespace helve
