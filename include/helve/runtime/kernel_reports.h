// What machine code calls to report: it ends the call with an error, or prints a line.
// The code gives a number and words; the launch knows what they mean, so that no text is part of machine code.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "helve/support/report.h"

namespace helve::runtime {

/// Ends the call with the fault of this number, and the code that calls it at once. `values` has a word for each value.
[[noreturn]] void report_fault(int64_t number, const int64_t* values);

/// Prints the line of this number.
void report_line(int64_t number, const int64_t* values);

/// While it lives, machine code of this thread reports by numbers of `reports`, which outlives it.
class ReportScope {
 public:
  explicit ReportScope(const std::vector<KernelReport>& reports);
  ~ReportScope();
  ReportScope(const ReportScope&) = delete;
  ReportScope& operator=(const ReportScope&) = delete;

  /// UserError AssertionFailed if the code has ended with a fault.
  void throw_fault() const;

 private:
  friend void report_fault(int64_t number, const int64_t* values);
  friend void report_line(int64_t number, const int64_t* values);

  const std::vector<KernelReport>& reports_;
  ReportScope* const outer_;
  int64_t fault_ = -1;
  std::array<int64_t, kMostReported> values_;
};

}  // namespace helve::runtime
