// The primitives of schedules as a table: rows, and the check of arguments against them.
// Wrong arguments are refused here, once for all primitives, at the line of the step.
#include "helve/schedule/primitive.h"

#include <fmt/format.h>

#include <algorithm>

#include "loop_form.h"

namespace helve {

const std::vector<PrimitiveRow>& primitive_rows() {
  using enum ArgumentKind;
  static const std::vector<PrimitiveRow> rows = {
#define HELVE_PRIMITIVE(name, function, ...) {name, {__VA_ARGS__}, &function},
#include "primitive_table.inc"
#undef HELVE_PRIMITIVE
  };
  return rows;
}

const PrimitiveRow* primitive_row(std::string_view name) {
  const auto found = std::find_if(primitive_rows().begin(), primitive_rows().end(),
                                  [&](const PrimitiveRow& row) { return row.name == name; });
  return found == primitive_rows().end() ? nullptr : &*found;
}

void Arguments::refuse(std::string reason, const Stmt& at, std::string help) const {
  std::vector<Note> notes;
  if (at && at->span.known()) notes.push_back({at->span, "the statement"});
  throw UserError(Code::ScheduleForm, place, {{"primitive", std::string(row.name)}, {"reason", std::move(reason)}},
                  std::move(notes), {std::move(help)});
}

const For& Arguments::loop(const FunctionRef& f, const Cursor& at) const {
  const Stmt s = statement_at(*f, at);
  const For* found = as<For>(s);
  if (!found) refuse("the statement is no loop over a range", s, "give a loop such as T.serial");
  if (found->vars.size() != 1) {
    refuse(fmt::format("the loop has {} variables", found->vars.size()), s,
           "make one loop of each by separate() first");
  }
  return *found;
}

void Arguments::refuse_value(size_t i, const std::string& value, std::string reason, std::string help) const {
  throw UserError(Code::ScheduleArgumentValue, place,
                  {{"primitive", std::string(row.name)},
                   {"parameter", std::string(row.parameters[i].name)},
                   {"value", value},
                   {"reason", std::move(reason)}},
                  {}, {std::move(help)});
}

namespace {

bool fits(const ScheduleArgument& value, ArgumentKind kind) {
  switch (kind) {
    case ArgumentKind::Loop:
    case ArgumentKind::Statement: return std::holds_alternative<Cursor>(value);
    case ArgumentKind::Loops: return std::holds_alternative<std::vector<Cursor>>(value);
    case ArgumentKind::Factor:
    case ArgumentKind::Integer: return std::holds_alternative<int64_t>(value);
    case ArgumentKind::BufferName:
    case ArgumentKind::Text:
    case ArgumentKind::Choice: return std::holds_alternative<std::string>(value);
    case ArgumentKind::Function: return std::holds_alternative<ScheduleVersionRef>(value);
  }
  __builtin_unreachable();
}

}  // namespace

void check_arguments(const Arguments& arguments) {
  HELVE_CHECK(arguments.values.size() == arguments.row.parameters.size(), "arguments of a primitive");
  for (size_t i = 0; i < arguments.values.size(); ++i) {
    const PrimitiveParameter& parameter = arguments.row.parameters[i];
    HELVE_CHECK(fits(arguments.values[i], parameter.kind), "an argument of a primitive of another kind");
    if (parameter.kind == ArgumentKind::Factor || parameter.kind == ArgumentKind::Integer) {
      const int64_t value = arguments.integer(i);
      const int64_t least = parameter.kind == ArgumentKind::Factor ? 1 : -kLargestFactor;
      if (value < least || value > kLargestFactor) {
        arguments.refuse_value(i, std::to_string(value), fmt::format("it is not in [{}, {}]", least, kLargestFactor),
                               "give a whole number of that range");
      }
    }
    if (parameter.kind == ArgumentKind::Choice) {
      const auto& choices = parameter.choices;
      if (std::find(choices.begin(), choices.end(), arguments.text(i)) == choices.end()) {
        arguments.refuse_value(i, fmt::format("'{}'", arguments.text(i)), "it is none of its words",
                               fmt::format("words are: {}", fmt::join(choices, ", ")));
      }
    }
  }
}

}  // namespace helve
