// What a statement of a kernel says when it runs: a fault, which ends the call, or a line of text.
// Machine code knows a report by its number and gives 64 bits a value; the words are made here, alike on all targets.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "helve/support/diagnostic.h"
#include "helve/support/span.h"

namespace helve {

/// The most values of a report: as many as printf takes on a GPU.
inline constexpr int64_t kMostReported = 32;

/// How 64 bits are read: as an integer, as 0 or 1, as a double.
enum class ReportedType : uint8_t { Signed, Unsigned, Bool, Float };

struct ReportedValue {
  std::string name;
  ReportedType type;
  bool operator==(const ReportedValue&) const = default;
};

struct KernelReport {
  bool fault = false;
  std::string text;
  std::vector<ReportedValue> values;
  int64_t around = 0;  ///< the first so many values say which block and which iteration it is
  Span span = {};
  bool operator==(const KernelReport&) const = default;
};

/// Is there one that is a fault?
bool has_faults(const std::vector<KernelReport>& reports);

/// "b=3, i=5: loss x=1.5, y=2\n", with %g for floats. `values` has the bits of each value.
std::string line_of(const KernelReport& report, std::span<const int64_t> values);

/// The same line as a format of printf, without the end of the line: %lld, %llu, %s for "True" and "False", %g.
std::string format_of(const KernelReport& report);

/// The error of a fault (AssertionFailed).
UserError fault_of(const KernelReport& report, std::span<const int64_t> values);

/// Writes the whole line to the standard output of the process, undivided by those of other threads.
void write_line(const std::string& line);

}  // namespace helve
