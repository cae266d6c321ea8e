// A version of a function, and the step that made it of the one before.
// Versions are immutable and know the one before, so that old ones stay usable and cursors are carried from one to the
// next. A step may be given a version of another function, whose proofs it then builds on.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "helve/schedule/edit.h"
#include "helve/schedule/find.h"

namespace helve {

struct ScheduleVersion;
using ScheduleVersionRef = Ref<const ScheduleVersion>;

/// An argument as a trace keeps it: statements by finders.
using TraceArgument = std::variant<Finder, std::vector<Finder>, int64_t, std::string, ScheduleVersionRef>;

/// What is known of a step's results.
enum class StepEffect {
  Equal,  ///< bit for bit those of the function before
  Reassociated,  ///< up to the order of the updates of reductions
  Unproved  ///< taken on the user's word
};
/// "equal", "reassociated", "unproved".
std::string_view to_string(StepEffect effect);

struct TraceStep {
  std::string primitive;
  std::vector<TraceArgument> arguments;
  std::optional<std::string> unsafe;  ///< the user's reason to take it without a proof
  StepEffect effect = StepEffect::Equal;
  std::string reason;  ///< why it is unproved
  std::vector<std::string> needs = {};  ///< conditions that calls must meet since the step
  Span place = {};  ///< in the user's program
};

struct ScheduleVersion final : Object {
  FunctionRef function;
  ScheduleVersionRef before;  ///< null for the function itself
  Forwarding forward;  ///< from the version before
  TraceStep step;  ///< that made it; nothing of it for the function itself
  std::vector<Cursor> results;  ///< of the step, in this version
};

}  // namespace helve
