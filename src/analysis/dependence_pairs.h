// What is asked of a dependence, kept with it.
// Who lists dependences does not know what questions need: only that each has a place for its answers.
#pragma once

#include "helve/analysis/dependence.h"

namespace helve {

/// Of a dependence that nothing has been asked of.
std::shared_ptr<Dependence::Question> new_question();

}  // namespace helve
