// The words of reports.
#include "helve/support/report.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdio>
#include <limits>

namespace helve {
namespace {

int64_t bits(double value) { return std::bit_cast<int64_t>(value); }

KernelReport report(std::string text, std::vector<ReportedValue> values, int64_t around = 0) {
  return {false, std::move(text), std::move(values), around, {}};
}

TEST(Report, LineOfAllTypes) {
  const KernelReport all = report("loss",
                                  {{"b", ReportedType::Signed},
                                   {"x", ReportedType::Float},
                                   {"u", ReportedType::Unsigned},
                                   {"t", ReportedType::Bool},
                                   {"", ReportedType::Signed}},
                                  1);
  const int64_t values[] = {-3, bits(0.1), -1, 1, 7};
  EXPECT_EQ(line_of(all, values), "b=-3: loss x=0.1, u=18446744073709551615, t=True, 7\n");
  EXPECT_EQ(format_of(all), "b=%lld: loss x=%g, u=%llu, t=%s, %lld");
}

TEST(Report, PartsThatAreMissing) {
  EXPECT_EQ(line_of(report("text", {}), {}), "text\n");
  const int64_t one[] = {1};
  EXPECT_EQ(line_of(report("", {{"i", ReportedType::Signed}}, 1), one), "i=1:\n");
  EXPECT_EQ(line_of(report("", {{"i", ReportedType::Bool}}), one), "i=True\n");
  EXPECT_EQ(format_of(report("100% of %s", {{"i % 2", ReportedType::Signed}})), "100%% of %%s i %% 2=%lld");
}

TEST(Report, FloatsAreThoseOfPrintf) {
  const KernelReport one = report("", {{"", ReportedType::Float}});
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double value :
       {0.0, -0.0, 1.0, 0.1, 1e5, 1e6, 123456.7, 1234567.0, 1e-4, 1e-5, 1e300, 2.5e-310, 1.0 / 3, kInfinity}) {
    char expected[64];
    std::snprintf(expected, sizeof expected, "%g\n", value);
    const int64_t values[] = {bits(value)};
    EXPECT_EQ(line_of(one, values), expected);
  }
  const int64_t nan[] = {bits(-std::numeric_limits<double>::quiet_NaN())};
  EXPECT_EQ(line_of(one, nan), "nan\n");
}

TEST(Report, AFaultGivesItsValuesInANote) {
  const KernelReport two = report("holds", {{"b", ReportedType::Signed}, {"x", ReportedType::Float}}, 1);
  const int64_t values[] = {2, bits(1.5)};
  EXPECT_EQ(to_text(fault_of(two, values).diagnostic()),
            "error[HV0724]: assertion failed: holds\nnote: where b=2, x=1.5\n"
            "help: pass arguments for which the condition holds, or correct the program");
  EXPECT_TRUE(fault_of(report("holds", {}), {}).diagnostic().notes.empty());
}

}  // namespace
}  // namespace helve
