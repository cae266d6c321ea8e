// Is a step of a schedule legal? What a primitive says of its rewrite, put to the one checker.
// A refusal shows both accesses, the line of the step and the two instances.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "helve/schedule/primitive.h"
#include "helve/schedule/schedule.h"

namespace helve {

struct StepCheck {
  StepEffect effect = StepEffect::Equal;
  std::string reason;
  std::vector<std::string> needs =
      {};  ///< conditions that calls of the new function must meet, those of the old one not
};

/// Refuses a step (ScheduleForm) whose result the language refuses.
[[noreturn]] void refuse_result(const UserError& fault, const Arguments& arguments);

/// Refuses a step (ScheduleForm) that makes a function which the language refuses.
void require_valid(const FunctionRef& f, const Arguments& arguments);

/// Refuses (ScheduleIllegal, ScheduleUnproved) unless the rewrite of `f` is proved, or unknown and taken as `unsafe`.
StepCheck check_step(const FunctionRef& f, const Rewrite& rewrite, const Arguments& arguments,
                     const std::optional<std::string>& unsafe);

}  // namespace helve
