// Errors and warnings as data: a code from one table, a span, and typed arguments.
// The text is rendered once, at the boundary, so that Python, C++ and notebooks can each present the same data.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "helve/support/span.h"

namespace helve {

enum class Severity { Error, Warning };

/// Every diagnostic; the rows are in `diagnostic_table.inc`.
enum class Code : int {
#define HELVE_DIAGNOSTIC(name, number, severity, message, help) name = number,
#include "helve/support/diagnostic_table.inc"
#undef HELVE_DIAGNOSTIC
};

struct DiagnosticRow {
  Code code;
  std::string_view name;
  int number;
  Severity severity;
  std::string_view message;  ///< template with `{argument}` places
  std::string_view help;     ///< the remedy, same templates; may be empty when `fixes` carries it
};

/// All rows, in table order.
const std::vector<DiagnosticRow>& diagnostic_rows();
const DiagnosticRow& diagnostic_row(Code code);

using DiagnosticArg = std::variant<int64_t, double, std::string>;
using DiagnosticArgs = std::vector<std::pair<std::string, DiagnosticArg>>;

struct Note {
  Span span;  ///< may be unknown
  std::string text;
};

struct Diagnostic {
  Code code;
  Span span;
  DiagnosticArgs args;
  std::vector<Note> notes;
  std::vector<std::string> fixes;  ///< replaces the table's help when not empty

  /// The notes, and for text of a called function the calls that it is part of, innermost first.
  std::vector<Note> notes_and_calls() const;
  std::string code_text() const;  ///< "HV0123"
  std::string message() const;    ///< the template filled in
  std::string help() const;       ///< the remedy, empty when there is none
  Severity severity() const { return diagnostic_row(code).severity; }
};

/// Fills `{name}` places of `text` from `args`, `{name:index/indices}` and `{name:dimension}` with a number and its
/// word; an unknown place is an InternalError (the table is tested).
std::string fill_template(std::string_view text, const DiagnosticArgs& args);

/// `error[HV0123]: message`, location, notes and help as plain text without the source lines (C++ callers).
std::string to_text(const Diagnostic& diagnostic);

/// An error of the program given to helve, with everything that a front end needs to present it.
class UserError : public std::exception {
 public:
  explicit UserError(Diagnostic diagnostic) : diagnostic_(std::move(diagnostic)), text_(to_text(diagnostic_)) {}
  UserError(Code code, Span span, DiagnosticArgs args = {}, std::vector<Note> notes = {},
            std::vector<std::string> fixes = {})
      : UserError(Diagnostic{code, span, std::move(args), std::move(notes), std::move(fixes)}) {}

  const Diagnostic& diagnostic() const { return diagnostic_; }
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  Diagnostic diagnostic_;
  std::string text_;
};

/// A bug in helve: a violated invariant. Never the result of a wrong program.
class InternalError : public std::exception {
 public:
  InternalError(std::string message, const char* file, int line);
  /// The same error with the data to reproduce it.
  InternalError(const InternalError& fault, const std::string& report) : text_(fault.text_ + "\n" + report) {}
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};

[[noreturn]] void internal_error(const std::string& message, const char* file, int line);

}  // namespace helve

#define HELVE_FAIL(message) ::helve::internal_error((message), __FILE__, __LINE__)
#define HELVE_CHECK(condition, message)                                       \
  do {                                                                        \
    if (!(condition)) ::helve::internal_error((message), __FILE__, __LINE__); \
  } while (false)
