// What a kernel reports, as data.
// Copies that passes have made of a statement are one report: they say the same of other iterations.
#include "helve/ir/tensor/report.h"

#include <algorithm>

#include "helve/ir/tensor/visit.h"

namespace helve {

namespace {

DType handed_over(DType t) {
  if (t.is_index() || t.is_bool()) return t;
  if (t.is_float()) return {TypeCode::Float, 64};
  return {t.code, 64};
}

ReportedType type_of(DType t) {
  if (t.is_bool()) return ReportedType::Bool;
  if (t.is_float()) return ReportedType::Float;
  return t.code == TypeCode::UInt ? ReportedType::Unsigned : ReportedType::Signed;
}

}  // namespace

KernelReport described(const Report& report) {
  KernelReport out{report.fault, report.text, {}, report.around, report.span};
  for (size_t i = 0; i < report.values.size(); ++i) {
    out.values.push_back({report.names[i], type_of(report.values[i]->dtype)});
  }
  return out;
}

std::vector<KernelReport> reports_of(const Stmt& s) {
  std::vector<KernelReport> out;
  walk(s, [&](const Stmt& each) {
    const Report* report = as<Report>(each);
    if (!report) return;
    KernelReport found = described(*report);
    if (std::find(out.begin(), out.end(), found) == out.end()) out.push_back(std::move(found));
  });
  return out;
}

std::vector<Expr> reported_values(const Report& report) {
  std::vector<Expr> out;
  for (const Expr& value : report.values) {
    const DType type = handed_over(value->dtype);
    out.push_back(value->dtype == type ? value : cast(value, type));
  }
  return out;
}

bool has_report(const Stmt& s) {
  bool found = false;
  walk(s, [&](const Stmt& each) { found |= as<Report>(each) != nullptr; });
  return found;
}

}  // namespace helve
