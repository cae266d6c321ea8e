// The words of reports.
// A line is composed before it is written, so that lines of threads that print at the same time stay whole.
#include "helve/support/report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <functional>
#include <mutex>

namespace helve {

namespace {

std::string value_text(ReportedType type, int64_t bits) {
  switch (type) {
    case ReportedType::Signed: return fmt::format("{}", bits);
    case ReportedType::Unsigned: return fmt::format("{}", static_cast<uint64_t>(bits));
    case ReportedType::Bool: return bits != 0 ? "True" : "False";
    case ReportedType::Float: {
      const double value = std::bit_cast<double>(bits);
      return std::isnan(value) ? "nan" : fmt::format("{:g}", value);
    }
  }
  HELVE_FAIL("an unknown type of a reported value");
}

const char* format(ReportedType type) {
  switch (type) {
    case ReportedType::Signed: return "%lld";
    case ReportedType::Unsigned: return "%llu";
    case ReportedType::Bool: return "%s";
    case ReportedType::Float: return "%g";
  }
  HELVE_FAIL("an unknown type of a reported value");
}

using ValueText = std::function<std::string(size_t i)>;

/// "b=3, i=5"; a value without a name stands alone.
std::string named(const KernelReport& report, size_t begin, size_t end, const ValueText& value) {
  std::string out;
  for (size_t i = begin; i < end; ++i) {
    const std::string& name = report.values[i].name;
    out += (i > begin ? ", " : "") + name + (name.empty() ? "" : "=") + value(i);
  }
  return out;
}

std::string composed(const KernelReport& report, const std::string& text, const ValueText& value) {
  const auto around = static_cast<size_t>(report.around);
  const std::string values = named(report, around, report.values.size(), value);
  std::string out = named(report, 0, around, value);
  if (!out.empty()) out += ":";
  for (const std::string& part : {text, values}) {
    if (!part.empty()) out += (out.empty() ? "" : " ") + part;
  }
  return out;
}

ValueText texts_of(const KernelReport& report, std::span<const int64_t> values) {
  HELVE_CHECK(values.size() == report.values.size(), "a report with values of another one");
  return [&report, values](size_t i) { return value_text(report.values[i].type, values[i]); };
}

/// A percent sign stands for itself.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '%' ? std::string("%%") : std::string(1, c);
  return out;
}

}  // namespace

bool has_faults(const std::vector<KernelReport>& reports) {
  return std::any_of(reports.begin(), reports.end(), [](const KernelReport& report) { return report.fault; });
}

std::string line_of(const KernelReport& report, std::span<const int64_t> values) {
  return composed(report, report.text, texts_of(report, values)) + "\n";
}

std::string format_of(const KernelReport& report) {
  KernelReport plain = report;
  for (ReportedValue& value : plain.values) value.name = escaped(value.name);
  return composed(plain, escaped(report.text), [&](size_t i) { return std::string(format(report.values[i].type)); });
}

UserError fault_of(const KernelReport& report, std::span<const int64_t> values) {
  std::vector<Note> notes;
  const std::string here = named(report, 0, report.values.size(), texts_of(report, values));
  if (!here.empty()) notes.push_back({{}, "where " + here});
  return {Code::AssertionFailed, report.span, {{"text", report.text}}, std::move(notes)};
}

void write_line(const std::string& line) {
  static std::mutex& one_at_a_time = *new std::mutex;  // never destroyed: threads may print while the process ends
  const std::lock_guard lock(one_at_a_time);
  for (size_t written = 0; written < line.size();) {
    const ssize_t count = ::write(STDOUT_FILENO, line.data() + written, line.size() - written);
    if (count < 0 && errno != EINTR) return;  // nobody reads it
    if (count > 0) written += static_cast<size_t>(count);
  }
}

}  // namespace helve
