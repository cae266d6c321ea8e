// Integer expressions of a host plan: postfix code over 64-bit slots.
// Sizes and launches depend on extents that only the call knows; postfix code keeps the plan plain data, without code
// generation.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace helve::runtime {

/// Operators of a scalar program. Truth is 1 and 0; any non-zero value counts as true.
enum class ScalarOp : uint8_t {
  Const,  ///< pushes `value`
  Slot,   ///< pushes slots[value]
  Add,
  Sub,
  Mul,
  FloorDiv,  ///< rounds towards minus infinity
  FloorMod,  ///< has the sign of the divisor
  ShiftLeft,   ///< times two to the power of the right side
  ShiftRight,  ///< divided by two to the power of the right side, rounded towards minus infinity
  BitAnd,
  BitOr,
  BitXor,
  Min,
  Max,
  Lt,
  Le,
  Eq,
  Ne,
  And,  ///< the right side is evaluated only if the left is true
  Or,   ///< the right side is evaluated only if the left is false
  Not,
  Select,  ///< condition, then, else: only the chosen side is evaluated
};

struct ScalarInstruction {
  ScalarOp op;
  int64_t value = 0;  ///< Const: the value; Slot: the slot; otherwise 0

  bool operator==(const ScalarInstruction&) const = default;
};

/// Postfix code that leaves exactly one value. An integer converts to the program that is this constant.
struct ScalarProgram {
  std::vector<ScalarInstruction> code;

  ScalarProgram(int64_t constant = 0) : code{{ScalarOp::Const, constant}} {}  // NOLINT: a number is a program
  explicit ScalarProgram(std::vector<ScalarInstruction> instructions) : code(std::move(instructions)) {}

  static ScalarProgram slot(int64_t index);
  static ScalarProgram unary(ScalarOp op, const ScalarProgram& operand);
  static ScalarProgram binary(ScalarOp op, const ScalarProgram& left, const ScalarProgram& right);
  static ScalarProgram select(const ScalarProgram& condition, const ScalarProgram& then,
                              const ScalarProgram& otherwise);

  bool is_constant() const { return code.size() == 1 && code[0].op == ScalarOp::Const; }
  bool operator==(const ScalarProgram&) const = default;
};

/// Number of operands that `op` takes from the stack.
int operand_count(ScalarOp op);

/// InternalError unless `program` leaves exactly one value and reads only slots in [0, slot_count).
void verify(const ScalarProgram& program, int64_t slot_count);

int64_t evaluate_code(const ScalarProgram& program, std::span<const int64_t> slots,
                      const std::vector<std::string>* names);

/// The value of a verified program. Faults in a side that And, Or or Select does not choose are ignored. UserError
/// ScalarOverflow if a result overflows 64 bits, ScalarZeroDivisor if a divisor is 0, NegativeShift; `names` are the
/// slots' names in these messages.
inline int64_t evaluate(const ScalarProgram& program, std::span<const int64_t> slots,
                        const std::vector<std::string>* names = nullptr) {
  if (program.is_constant()) return program.code[0].value;
  return evaluate_code(program, slots, names);
}

/// The value of a verified program, or nothing if `evaluate` would throw.
std::optional<int64_t> evaluate_defined(const ScalarProgram& program, std::span<const int64_t> slots);

/// Infix text, fully parenthesized below the top level; a slot without a name is `$index`.
std::string to_text(const ScalarProgram& program, const std::vector<std::string>* names = nullptr);

}  // namespace helve::runtime
