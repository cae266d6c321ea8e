// Checked runs of programs.
// A test asks for the verdict alone, or for the text of the report.
#pragma once

#include <optional>

#include "arrays.h"

namespace helve::testing {

/// The report of a checked run; nothing when there is none.
inline std::optional<Diagnostic> checked(const FunctionRef& f, const std::vector<Arg>& args,
                                         interp::Checks checks = interp::Checks::all()) {
  interp::Options options;
  options.check = checks;
  try {
    interp::run(f, args, options);
  } catch (const UserError& e) {
    return e.diagnostic();
  }
  return std::nullopt;
}

inline std::string checked_text(const FunctionRef& f, const std::vector<Arg>& args) {
  const std::optional<Diagnostic> found = checked(f, args);
  return found ? to_text(*found) : "no error";
}

/// The code of the report, or nothing.
inline std::optional<Code> verdict(const FunctionRef& f, const std::vector<Arg>& args,
                                   interp::Checks checks = interp::Checks::all()) {
  const std::optional<Diagnostic> found = checked(f, args, checks);
  return found ? std::optional<Code>(found->code) : std::nullopt;
}

/// An element of an int64 tensor as a subscript.
inline Expr subscript(const BufferRef& table, std::vector<Expr> at) { return cast(load(table, std::move(at)), kIndex); }

}  // namespace helve::testing
