// Refusals of what exists, but not in the form that was asked for.
// Each names its own remedy, since no single one fits them all.
#pragma once

#include <string>
#include <utility>

#include "helve/layout/layout_error.h"

namespace helve::cute {

/// UnsupportedError "`operation` of `layout`: `reason`".
[[noreturn]] inline void refuse_unsupported(const char* operation, std::string layout, std::string reason,
                                            const char* remedy) {
  throw_layout_error(
      Code::CuteUnsupported,
      {{"operation", operation}, {"layout", std::move(layout)}, {"reason", std::move(reason)}, {"remedy", remedy}});
}

inline constexpr const char* kKeepStages = "keep the stages as a ComposedLayout";

}  // namespace helve::cute
