// The text of scalar programs.
// Postfix code becomes a tree of texts on a stack; operators without a sign in C++ are functions of the call's prelude.
#include "scalar_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <limits>

#include "helve/support/diagnostic.h"

namespace helve {

using runtime::ScalarInstruction;
using runtime::ScalarOp;

namespace {

/// The sign of an operator, or the name of its function.
std::string_view spelling(ScalarOp op) {
  switch (op) {
    case ScalarOp::Add: return "+";
    case ScalarOp::Sub: return "-";
    case ScalarOp::Mul: return "*";
    case ScalarOp::BitAnd: return "&";
    case ScalarOp::BitOr: return "|";
    case ScalarOp::BitXor: return "^";
    case ScalarOp::Lt: return "<";
    case ScalarOp::Le: return "<=";
    case ScalarOp::Eq: return "==";
    case ScalarOp::Ne: return "!=";
    case ScalarOp::And: return "&&";
    case ScalarOp::Or: return "||";
    case ScalarOp::Not: return "!";
    case ScalarOp::FloorDiv: return "floor_div";
    case ScalarOp::FloorMod: return "floor_mod";
    case ScalarOp::ShiftLeft: return "shift_left";
    case ScalarOp::ShiftRight: return "shift_right";
    case ScalarOp::Min: return "least";
    case ScalarOp::Max: return "greatest";
    case ScalarOp::Select: return "select";
    case ScalarOp::Const:
    case ScalarOp::Slot: break;
  }
  HELVE_FAIL("a leaf has no spelling");
}

std::string number(int64_t value) {
  if (value == std::numeric_limits<int64_t>::min()) return "INT64_MIN";
  const bool is_wide = value != static_cast<int32_t>(value);
  const std::string digits = fmt::format("{}{}", value, is_wide ? "ll" : "");
  return value < 0 ? "(" + digits + ")" : digits;
}

std::string text_of(const runtime::ScalarProgram& program, const std::vector<std::string>& slots, bool exact) {
  std::vector<std::string> stack;
  for (const ScalarInstruction& each : program.code) {
    if (each.op == ScalarOp::Const || each.op == ScalarOp::Slot) {
      const std::string leaf =
          each.op == ScalarOp::Const ? number(each.value) : slots.at(static_cast<size_t>(each.value));
      stack.push_back(exact ? fmt::format("Exact({})", leaf) : leaf);
      continue;
    }
    const auto count = static_cast<size_t>(runtime::operand_count(each.op));
    HELVE_CHECK(stack.size() >= count, "a scalar program takes more values than it has");
    const std::vector<std::string> operands(stack.end() - static_cast<std::ptrdiff_t>(count), stack.end());
    stack.resize(stack.size() - count);
    const std::string_view sign = spelling(each.op);
    if (each.op == ScalarOp::Select && !exact) {
      stack.push_back(fmt::format("({} ? {} : {})", operands[0], operands[1], operands[2]));
    } else if (std::isalpha(static_cast<unsigned char>(sign[0]))) {
      std::string call = fmt::format("{}{}({}", sign, exact ? "_exact" : "", operands[0]);
      for (size_t i = 1; i < count; ++i) call += ", " + operands[i];
      stack.push_back(call + ")");
    } else if (count == 1) {
      stack.push_back(fmt::format("({}{})", sign, operands[0]));
    } else {
      stack.push_back(fmt::format("({} {} {})", operands[0], sign, operands[1]));
    }
  }
  HELVE_CHECK(stack.size() == 1, "a scalar program does not leave one value");
  return stack[0];
}

}  // namespace

std::optional<int64_t> constant_of(const runtime::ScalarProgram& program) {
  const bool has_slot =
      std::ranges::any_of(program.code, [](const ScalarInstruction& each) { return each.op == ScalarOp::Slot; });
  return has_slot ? std::nullopt : runtime::evaluate_defined(program, {});
}

std::string scalar_text(const runtime::ScalarProgram& program, const std::vector<std::string>& slots) {
  if (const std::optional<int64_t> value = constant_of(program)) return number(*value);
  return text_of(program, slots, false);
}

std::string exact_text(const runtime::ScalarProgram& program, const std::vector<std::string>& slots) {
  return text_of(program, slots, true);
}

}  // namespace helve
