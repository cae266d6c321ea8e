// The primitives of schedules as a table: name, parameters, rewrite.
// Traces, replay and the check of arguments read the table, so a primitive is a row and a function.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "helve/schedule/rewrite.h"
#include "helve/schedule/version.h"
#include "helve/support/diagnostic.h"

namespace helve {

enum class ArgumentKind {
  Loop,  ///< a cursor to a loop
  Loops,  ///< cursors to loops
  Statement,  ///< a cursor to any statement
  Factor,  ///< a whole number from 1
  Integer,
  Choice,  ///< one of some words
  BufferName,  ///< the name of a buffer
  Function,  ///< a function, with the steps of a schedule of it
  Text  ///< what only the primitive reads: a layout, an expression
};

struct PrimitiveParameter {
  std::string_view name;
  ArgumentKind kind;
  std::vector<std::string_view> choices = {};
};

using ScheduleArgument = std::variant<Cursor, std::vector<Cursor>, int64_t, std::string, ScheduleVersionRef>;

struct PrimitiveRow;

/// The arguments of one step, and where it stands in the user's program.
struct Arguments {
  const PrimitiveRow& row;
  std::vector<ScheduleArgument> values;
  Span place;

  const Cursor& cursor(size_t i) const { return std::get<Cursor>(values[i]); }
  const std::vector<Cursor>& cursors(size_t i) const { return std::get<std::vector<Cursor>>(values[i]); }
  int64_t integer(size_t i) const { return std::get<int64_t>(values[i]); }
  const std::string& text(size_t i) const { return std::get<std::string>(values[i]); }
  const ScheduleVersionRef& version(size_t i) const { return std::get<ScheduleVersionRef>(values[i]); }

  /// The step does not apply to the statements at hand (ScheduleForm); the note shows one.
  [[noreturn]] void refuse(std::string reason, const Stmt& at, std::string help) const;
  /// The step cannot take its argument `i` (ScheduleArgumentValue).
  [[noreturn]] void refuse_value(size_t i, const std::string& value, std::string reason, std::string help) const;
  /// The loop over one variable at a cursor; refused if it is none.
  const For& loop(const FunctionRef& f, const Cursor& at) const;
};

struct PrimitiveRow {
  std::string_view name;
  std::vector<PrimitiveParameter> parameters;
  Rewrite (*apply)(const FunctionRef& f, const Arguments& arguments);
};

/// All primitives, by families.
const std::vector<PrimitiveRow>& primitive_rows();
/// The row of that name, or null.
const PrimitiveRow* primitive_row(std::string_view name);

/// The largest factor of a loop.
inline constexpr int64_t kLargestFactor = int64_t{1} << 31;

/// Refuses arguments that the row does not take (ScheduleArgumentValue).
void check_arguments(const Arguments& arguments);

}  // namespace helve
