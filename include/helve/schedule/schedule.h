// A schedule: a function, and the steps that made it of another one.
// Each step is checked (legality.h) before it counts, and makes a version (version.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "helve/schedule/primitive.h"

namespace helve {

/// The schedule without steps. The function is verified, and its nodes become nodes of their own, so that a node is at
/// one place only.
ScheduleVersionRef start_schedule(const FunctionRef& f);

/// The version after one more step. Refuses wrong arguments, statements that the primitive does not apply to
/// (ScheduleForm), and what is not proved to keep results (ScheduleIllegal, ScheduleUnproved); with `unsafe`, the
/// user's reason, what is not known is taken, what is refuted is not.
ScheduleVersionRef with_step(const ScheduleVersionRef& version, const PrimitiveRow& row,
                             std::vector<ScheduleArgument> values, const std::optional<std::string>& unsafe,
                             const Span& place);

/// The function that a step would make, legal or not: what tests of the check run to see what a refused step does. It
/// is no version, so that no schedule goes on from it. Refuses all that with_step refuses but ScheduleIllegal and
/// ScheduleUnproved.
FunctionRef unchecked_step(const ScheduleVersionRef& version, const PrimitiveRow& row,
                           std::vector<ScheduleArgument> values, const Span& place);

/// The same step on another version, or on one of another function of the same form. A finder that finds nothing is
/// refused (ScheduleNothingFound); every refusal names the step in a note.
ScheduleVersionRef replay_step(const ScheduleVersionRef& version, const TraceStep& step, const Span& place);

/// A cursor of `from` in `to`; `to` is `from` or comes after it.
struct Carried {
  bool related = false;  ///< does `to` come from `from`?
  std::optional<Cursor> cursor;  ///< nothing if a step took the statement away
  std::string gone_by;  ///< the primitive that did, or that made another loop of it: then the cursor is that loop's
};
Carried carry(const Cursor& at, const ScheduleVersionRef& from, const ScheduleVersionRef& to);

}  // namespace helve
