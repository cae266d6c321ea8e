// The operator table as data.
// Type rule, printing, parsing, interpretation and code generation all read the same rows.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace helve {

enum class Op {
#define HELVE_OPERATOR(name, text, arity, form, precedence, rule) name,
#include "helve/ir/expr/operator_table.inc"
#undef HELVE_OPERATOR
};

enum class OpForm { Infix, Prefix, Call };
enum class OpRule { Arithmetic, Integer, Compare, Logical, Float, Select, Number };

struct OpRow {
  Op op;
  std::string_view name;
  std::string_view text;
  int arity;
  OpForm form;
  int precedence;
  OpRule rule;
};

const std::vector<OpRow>& operator_rows();
inline const OpRow& row_of(Op op) { return operator_rows()[static_cast<size_t>(op)]; }

/// The operator whose row has this name ("Add"), for front ends.
std::optional<Op> parse_op(std::string_view name);

}  // namespace helve
