// The operators of the language in C.
// One row per operator, one form per kind of type: the emitter has no special cases for operators.
#pragma once

#include <string_view>

#include "helve/ir/expr/dtype.h"
#include "helve/ir/expr/operators.h"

namespace helve::c {

enum class FormKind { None, Infix, Prefix, Wrap, Call, Helper, Choice, Same };

/// How C writes an operator: `text` is its token, or the name of a function.
struct Form {
  FormKind kind = FormKind::None;
  std::string_view text = {};
};

/// The form of `op` on operands of `dtype`; None if the type rules do not allow it.
Form form_of(Op op, DType dtype);

/// Operator precedence, higher binds tighter.
enum Precedence { kLowest = 0, kConditional = 3, kUnary = 14, kPrimary = 15 };
/// The precedence of an infix token.
int precedence_of(std::string_view token);

}  // namespace helve::c
