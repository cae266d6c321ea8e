// Evaluation, verification and text of scalar programs.
// Results are exact or an error: a wrapped extent would become a wrong buffer size.
#include "helve/runtime/scalar_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "helve/support/diagnostic.h"

namespace helve::runtime {

namespace {

enum class Fault : uint8_t { None, Overflow, ZeroDivisor, NegativeShift };

/// A value, or the reason why there is none; faults propagate like values until something selects them.
struct Cell {
  int64_t value = 0;
  Fault fault = Fault::None;
};

Cell floor_divide(int64_t a, int64_t b) {
  if (b == 0) return {0, Fault::ZeroDivisor};
  if (b == -1 && a == std::numeric_limits<int64_t>::min()) return {0, Fault::Overflow};
  const int64_t quotient = a / b;
  return {quotient - ((a % b != 0) && ((a < 0) != (b < 0)) ? 1 : 0)};
}

Cell floor_modulo(int64_t a, int64_t b) {
  if (b == 0) return {0, Fault::ZeroDivisor};
  if (b == -1) return {0};
  const int64_t remainder = a % b;
  return {remainder != 0 && ((remainder < 0) != (b < 0)) ? remainder + b : remainder};
}

/// Of a fault by its count, the count.
Cell shift_left(int64_t a, int64_t count) {
  if (count < 0) return {count, Fault::NegativeShift};
  int64_t result = 0;
  if (a == 0) return {0};
  if (count > 63) return {0, Fault::Overflow};
  const bool leaves = count == 63 ? a != -1 : __builtin_mul_overflow(a, int64_t{1} << count, &result);
  if (leaves) return {0, Fault::Overflow};
  return {count == 63 ? std::numeric_limits<int64_t>::min() : result};
}

Cell shift_right(int64_t a, int64_t count) {
  if (count < 0) return {count, Fault::NegativeShift};
  return {a >> std::min<int64_t>(count, 63)};
}

Cell arithmetic(ScalarOp op, int64_t a, int64_t b) {
  int64_t result = 0;
  switch (op) {
    case ScalarOp::Add: return __builtin_add_overflow(a, b, &result) ? Cell{0, Fault::Overflow} : Cell{result};
    case ScalarOp::Sub: return __builtin_sub_overflow(a, b, &result) ? Cell{0, Fault::Overflow} : Cell{result};
    case ScalarOp::Mul: return __builtin_mul_overflow(a, b, &result) ? Cell{0, Fault::Overflow} : Cell{result};
    case ScalarOp::FloorDiv: return floor_divide(a, b);
    case ScalarOp::FloorMod: return floor_modulo(a, b);
    case ScalarOp::ShiftLeft: return shift_left(a, b);
    case ScalarOp::ShiftRight: return shift_right(a, b);
    case ScalarOp::BitAnd: return {a & b};
    case ScalarOp::BitOr: return {a | b};
    case ScalarOp::BitXor: return {a ^ b};
    case ScalarOp::Min: return {std::min(a, b)};
    case ScalarOp::Max: return {std::max(a, b)};
    case ScalarOp::Lt: return {a < b};
    case ScalarOp::Le: return {a <= b};
    case ScalarOp::Eq: return {a == b};
    case ScalarOp::Ne: return {a != b};
    default: HELVE_FAIL("not an operator of two values");
  }
}

Cell combine(ScalarOp op, Cell a, Cell b) {
  if (a.fault != Fault::None) return a;
  if (op == ScalarOp::And && a.value == 0) return {0};
  if (op == ScalarOp::Or && a.value != 0) return {1};
  if (b.fault != Fault::None) return b;
  if (op == ScalarOp::And || op == ScalarOp::Or) return {b.value != 0};
  return arithmetic(op, a.value, b.value);
}

Cell run(const ScalarProgram& program, std::span<const int64_t> slots, Cell* stack) {
  Cell* top = stack;  // one past the last value
  for (const ScalarInstruction& instruction : program.code) {
    switch (instruction.op) {
      case ScalarOp::Const: *top++ = {instruction.value}; break;
      case ScalarOp::Slot: *top++ = {slots[static_cast<size_t>(instruction.value)]}; break;
      case ScalarOp::Not:
        if (top[-1].fault == Fault::None) top[-1].value = top[-1].value == 0;
        break;
      case ScalarOp::Select:
        top -= 2;
        if (top[-1].fault == Fault::None) top[-1] = top[-1].value != 0 ? top[0] : top[1];
        break;
      default: --top; top[-1] = combine(instruction.op, top[-1], top[0]);
    }
  }
  return stack[0];
}

std::string_view symbol(ScalarOp op) {
  switch (op) {
    case ScalarOp::Add: return "+";
    case ScalarOp::Sub: return "-";
    case ScalarOp::Mul: return "*";
    case ScalarOp::FloorDiv: return "//";
    case ScalarOp::FloorMod: return "%";
    case ScalarOp::ShiftLeft: return "<<";
    case ScalarOp::ShiftRight: return ">>";
    case ScalarOp::BitAnd: return "&";
    case ScalarOp::BitOr: return "|";
    case ScalarOp::BitXor: return "^";
    case ScalarOp::Lt: return "<";
    case ScalarOp::Le: return "<=";
    case ScalarOp::Eq: return "==";
    case ScalarOp::Ne: return "!=";
    case ScalarOp::And: return "and";
    case ScalarOp::Or: return "or";
    default: HELVE_FAIL("an operator without a symbol");
  }
}

struct TextPart {
  std::string text;
  bool atom;
};

std::string bracketed(const TextPart& part) { return part.atom ? part.text : fmt::format("({})", part.text); }

TextPart apply_text(ScalarOp op, const TextPart* operands) {
  switch (op) {
    case ScalarOp::Not: return {fmt::format("not {}", bracketed(operands[0])), false};
    case ScalarOp::Min: return {fmt::format("min({}, {})", operands[0].text, operands[1].text), true};
    case ScalarOp::Max: return {fmt::format("max({}, {})", operands[0].text, operands[1].text), true};
    case ScalarOp::Select:
      return {fmt::format("select({}, {}, {})", operands[0].text, operands[1].text, operands[2].text), true};
    default: return {fmt::format("{} {} {}", bracketed(operands[0]), symbol(op), bracketed(operands[1])), false};
  }
}

}  // namespace

ScalarProgram ScalarProgram::slot(int64_t index) {
  return ScalarProgram(std::vector{ScalarInstruction{ScalarOp::Slot, index}});
}

ScalarProgram ScalarProgram::unary(ScalarOp op, const ScalarProgram& operand) {
  HELVE_CHECK(operand_count(op) == 1, "not an operator of one value");
  ScalarProgram result = operand;
  result.code.push_back({op});
  return result;
}

ScalarProgram ScalarProgram::binary(ScalarOp op, const ScalarProgram& left, const ScalarProgram& right) {
  HELVE_CHECK(operand_count(op) == 2, "not an operator of two values");
  ScalarProgram result = left;
  result.code.insert(result.code.end(), right.code.begin(), right.code.end());
  result.code.push_back({op});
  return result;
}

ScalarProgram ScalarProgram::select(const ScalarProgram& condition, const ScalarProgram& then,
                                    const ScalarProgram& otherwise) {
  ScalarProgram result = condition;
  result.code.insert(result.code.end(), then.code.begin(), then.code.end());
  result.code.insert(result.code.end(), otherwise.code.begin(), otherwise.code.end());
  result.code.push_back({ScalarOp::Select});
  return result;
}

int operand_count(ScalarOp op) {
  switch (op) {
    case ScalarOp::Const:
    case ScalarOp::Slot: return 0;
    case ScalarOp::Not: return 1;
    case ScalarOp::Select: return 3;
    default: return 2;
  }
}

void verify(const ScalarProgram& program, int64_t slot_count) {
  int64_t depth = 0;
  for (const ScalarInstruction& instruction : program.code) {
    depth -= operand_count(instruction.op);
    HELVE_CHECK(depth >= 0, "a scalar program takes more values than it has");
    ++depth;
    HELVE_CHECK(instruction.op != ScalarOp::Slot || (instruction.value >= 0 && instruction.value < slot_count),
                fmt::format("a scalar program reads slot {} of {}", instruction.value, slot_count));
  }
  HELVE_CHECK(depth == 1, fmt::format("a scalar program leaves {} values", depth));
}

namespace {

Cell result_of(const ScalarProgram& program, std::span<const int64_t> slots) {
  constexpr size_t kSmall = 64;  // the stack is never deeper than the code is long
  if (program.code.size() <= kSmall) {
    std::array<Cell, kSmall> stack;
    return run(program, slots, stack.data());
  }
  std::vector<Cell> stack(program.code.size());
  return run(program, slots, stack.data());
}

}  // namespace

int64_t evaluate_code(const ScalarProgram& program, std::span<const int64_t> slots,
                      const std::vector<std::string>* names) {
  const Cell result = result_of(program, slots);
  if (result.fault == Fault::None) return result.value;
  if (result.fault == Fault::NegativeShift) throw UserError(Code::NegativeShift, {}, {{"count", result.value}});
  const Code code = result.fault == Fault::Overflow ? Code::ScalarOverflow : Code::ScalarZeroDivisor;
  throw UserError(code, {}, {{"expression", to_text(program, names)}});
}

std::optional<int64_t> evaluate_defined(const ScalarProgram& program, std::span<const int64_t> slots) {
  const Cell result = result_of(program, slots);
  return result.fault == Fault::None ? std::optional(result.value) : std::nullopt;
}

std::string to_text(const ScalarProgram& program, const std::vector<std::string>* names) {
  std::vector<TextPart> stack;
  for (const ScalarInstruction& instruction : program.code) {
    if (instruction.op == ScalarOp::Const) {
      stack.push_back({fmt::format("{}", instruction.value), instruction.value >= 0});
    } else if (instruction.op == ScalarOp::Slot) {
      const auto index = static_cast<size_t>(instruction.value);
      const bool named = names != nullptr && index < names->size() && !(*names)[index].empty();
      stack.push_back({named ? (*names)[index] : fmt::format("${}", index), true});
    } else {
      const auto count = static_cast<size_t>(operand_count(instruction.op));
      HELVE_CHECK(stack.size() >= count, "a scalar program takes more values than it has");
      TextPart result = apply_text(instruction.op, stack.data() + (stack.size() - count));
      stack.resize(stack.size() - count);
      stack.push_back(std::move(result));
    }
  }
  HELVE_CHECK(stack.size() == 1, "a scalar program does not leave one value");
  return stack[0].text;
}

}  // namespace helve::runtime
