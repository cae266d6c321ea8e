// Scalar programs as expressions of C++.
// A check asks whether a value can be computed at all, so its numbers know whether they are.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "helve/runtime/scalar_program.h"

namespace helve {

/// The value of a program without slots, if it has one.
std::optional<int64_t> constant_of(const runtime::ScalarProgram& program);

/// An expression of int64_t, in parentheses unless it is one name, number or call. `slots` are the names of variables.
std::string scalar_text(const runtime::ScalarProgram& program, const std::vector<std::string>& slots);

/// The same of the type Exact, which keeps whether a number fits 64 bits.
std::string exact_text(const runtime::ScalarProgram& program, const std::vector<std::string>& slots);

}  // namespace helve
