// Access to the table of forms.
// Rows are in the order of the operators, which a constant expression checks.
#include "helve/codegen/c/c_operators.h"

#include <array>

#include "helve/support/diagnostic.h"

namespace helve::c {

namespace {

struct Row {
  Op op;
  std::array<Form, 5> forms;  ///< index, signed, unsigned, float32, float64
};

constexpr Form INFIX(std::string_view token) { return {FormKind::Infix, token}; }
constexpr Form PREFIX(std::string_view token) { return {FormKind::Prefix, token}; }
constexpr Form WRAP(std::string_view token) { return {FormKind::Wrap, token}; }
constexpr Form CALL(std::string_view name) { return {FormKind::Call, name}; }
constexpr Form HELPER(std::string_view name) { return {FormKind::Helper, name}; }
constexpr Form NONE{};
constexpr Form CHOICE{FormKind::Choice, {}};
constexpr Form SAME{FormKind::Same, {}};

constexpr Row kRows[] = {
#define HELVE_C_OPERATOR(op, index, signed_, unsigned_, float32, float64) \
  {Op::op, {index, signed_, unsigned_, float32, float64}},
#include "operator_table.inc"
#undef HELVE_C_OPERATOR
};

constexpr bool in_order() {
  size_t i = 0;
  for (const Row& row : kRows) {
    if (static_cast<size_t>(row.op) != i++) return false;
  }
  return i == static_cast<size_t>(Op::Fma) + 1;
}
static_assert(in_order(), "operator_table.inc has a row for each operator, in their order");

}  // namespace

Form form_of(Op op, DType dtype) {
  const auto& forms = kRows[static_cast<size_t>(op)].forms;
  if (dtype.is_float()) return forms[dtype.bits == 64 ? 4 : 3];
  if (dtype.is_index()) return forms[0];
  return forms[dtype.is_signed() ? 1 : 2];
}

int precedence_of(std::string_view token) {
  struct Level {
    std::string_view token;
    int level;
  };
  static constexpr Level kLevels[] = {{"*", 13},  {"/", 13}, {"%", 13},  {"+", 12}, {"-", 12},  {"<<", 11},
                                      {">>", 11}, {"<", 10}, {"<=", 10}, {">", 10}, {">=", 10}, {"==", 9},
                                      {"!=", 9},  {"&", 8},  {"^", 7},   {"|", 6},  {"&&", 5},  {"||", 4}};
  for (const Level& each : kLevels) {
    if (each.token == token) return each.level;
  }
  HELVE_FAIL("C has no operator '" + std::string(token) + "'");
}

}  // namespace helve::c
