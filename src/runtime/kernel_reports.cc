// Reports of machine code.
// A fault is kept as plain words, since the code may be interrupted and abandoned anywhere; its error is made outside.
#include "helve/runtime/kernel_reports.h"

#include <algorithm>

#include "helve/runtime/machine_section.h"
#include "helve/support/diagnostic.h"

namespace helve::runtime {

namespace {
thread_local ReportScope* current = nullptr;

std::span<const int64_t> words(const KernelReport& report, const int64_t* values) {
  return {values, report.values.size()};
}
}  // namespace

ReportScope::ReportScope(const std::vector<KernelReport>& reports) : reports_(reports), outer_(current) {
  current = this;
}

ReportScope::~ReportScope() { current = outer_; }

void ReportScope::throw_fault() const {
  if (fault_ < 0) return;
  const KernelReport& report = reports_.at(static_cast<size_t>(fault_));
  throw fault_of(report, words(report, values_.data()));
}

void report_fault(int64_t number, const int64_t* values) {
  ReportScope& scope = *current;
  std::copy_n(values, scope.reports_[static_cast<size_t>(number)].values.size(), scope.values_.begin());
  scope.fault_ = number;
  leave_section();
}

void report_line(int64_t number, const int64_t* values) {
  auto print = [&] {
    const KernelReport& report = current->reports_.at(static_cast<size_t>(number));
    write_line(line_of(report, words(report, values)));
  };
  using Print = decltype(print);
  run_outside_section({&print, [](void* context) { (*static_cast<Print*>(context))(); }});
}

}  // namespace helve::runtime
