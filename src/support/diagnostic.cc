// The table of diagnostics and the text made from it.
// Messages are templates in one place, so that a test can demand an exact text for every code.
#include "helve/support/diagnostic.h"

#include <fmt/format.h>

namespace helve {

const std::vector<DiagnosticRow>& diagnostic_rows() {
  static const std::vector<DiagnosticRow> rows = {
#define HELVE_DIAGNOSTIC(name, number, severity, message, help) \
  {Code::name, #name, number, Severity::severity, message, help},
#include "helve/support/diagnostic_table.inc"
#undef HELVE_DIAGNOSTIC
  };
  return rows;
}

const DiagnosticRow& diagnostic_row(Code code) {
  for (const DiagnosticRow& row : diagnostic_rows()) {
    if (row.code == code) return row;
  }
  HELVE_FAIL("a diagnostic code without a row");
}

namespace {

std::string arg_text(const DiagnosticArg& arg) {
  if (const auto* i = std::get_if<int64_t>(&arg)) return fmt::format("{}", *i);
  if (const auto* d = std::get_if<double>(&arg)) return fmt::format("{}", *d);
  return std::get<std::string>(arg);
}

/// `2 indices` of the value 2 and `index/indices`; one form stands for both when the plural adds an s.
std::string counted(const DiagnosticArg& arg, std::string_view forms) {
  const bool one = arg_text(arg) == "1";
  const size_t slash = forms.find('/');
  if (slash != std::string_view::npos)
    return fmt::format("{} {}", arg_text(arg), one ? forms.substr(0, slash) : forms.substr(slash + 1));
  return fmt::format("{} {}{}", arg_text(arg), forms, one ? "" : "s");
}

}  // namespace

std::string fill_template(std::string_view text, const DiagnosticArgs& args) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '{') {
      out.push_back(text[i]);
      continue;
    }
    size_t end = text.find('}', i);
    HELVE_CHECK(end != std::string_view::npos, "an open place in a diagnostic template");
    const std::string_view inside = text.substr(i + 1, end - i - 1);
    const std::string_view place = inside.substr(0, inside.find(':'));
    bool found = false;
    for (const auto& [name, value] : args) {
      if (name != place) continue;
      out += place == inside ? arg_text(value) : counted(value, inside.substr(place.size() + 1));
      found = true;
      break;
    }
    HELVE_CHECK(found, fmt::format("a diagnostic lacks its argument '{}'", place));
    i = end;
  }
  return out;
}

std::string Diagnostic::code_text() const { return fmt::format("HV{:04}", static_cast<int>(code)); }

std::string Diagnostic::message() const { return fill_template(diagnostic_row(code).message, args); }

std::vector<Note> Diagnostic::notes_and_calls() const {
  std::vector<Note> out = notes;
  for (const Span* call = span.caller; call; call = call->caller) out.push_back({*call, "the function is called here"});
  return out;
}

std::string Diagnostic::help() const {
  if (fixes.empty()) return fill_template(diagnostic_row(code).help, args);
  std::string out;
  for (const std::string& fix : fixes) {
    if (!out.empty()) out += '\n';
    out += fix;
  }
  return out;
}

namespace {

std::string location(const Span& span) { return fmt::format("{}:{}:{}", *span.file, span.line, span.column); }

}  // namespace

std::string to_text(const Diagnostic& d) {
  std::string out =
      fmt::format("{}[{}]: {}", d.severity() == Severity::Error ? "error" : "warning", d.code_text(), d.message());
  if (d.span.known()) out += fmt::format("\n  --> {}", location(d.span));
  for (const Note& note : d.notes_and_calls()) {
    out += fmt::format("\nnote: {}", note.text);
    if (note.span.known()) out += fmt::format(" ({})", location(note.span));
  }
  if (std::string help = d.help(); !help.empty()) out += fmt::format("\nhelp: {}", help);
  return out;
}

InternalError::InternalError(std::string message, const char* file, int line)
    : text_(fmt::format("internal error: {} ({}:{})", message, file, line)) {}

void internal_error(const std::string& message, const char* file, int line) {
  throw InternalError(message, file, line);
}

}  // namespace helve
