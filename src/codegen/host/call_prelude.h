// The functions that the text of a call uses.
// Only those that a text calls are printed before it.
#pragma once

#include <string>

namespace helve {

/// What stands before `body`: includes, and the functions that it calls.
std::string call_prelude(const std::string& body);

}  // namespace helve
