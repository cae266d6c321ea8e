// The words of reports.
#include "helve/support/report.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdio>
#include <limits>

namespace helve {
namespace {

int64_t bits(double value) { return std::bit_cast<int64_t>(value); }

TEST(Report, LineOfAllTypes) {
  const KernelReport report{.text = "loss",
                            .values = {{"b", ReportedType::Signed},
                                       {"x", ReportedType::Float},
                                       {"u", ReportedType::Unsigned},
                                       {"t", ReportedType::Bool},
                                       {"", ReportedType::Signed}},
                            .around = 1};
  const int64_t values[] = {-3, bits(0.1), -1, 1, 7};
  EXPECT_EQ(line_of(report, values), "b=-3: loss x=0.1, u=18446744073709551615, t=True, 7\n");
  EXPECT_EQ(format_of(report), "b=%lld: loss x=%g, u=%llu, t=%s, %lld");
}

TEST(Report, PartsThatAreMissing) {
  EXPECT_EQ(line_of({.text = "text"}, {}), "text\n");
  const int64_t one[] = {1};
  EXPECT_EQ(line_of({.values = {{"i", ReportedType::Signed}}, .around = 1}, one), "i=1:\n");
  EXPECT_EQ(line_of({.values = {{"i", ReportedType::Bool}}}, one), "i=True\n");
  EXPECT_EQ(format_of({.text = "100% of %s", .values = {{"i % 2", ReportedType::Signed}}}), "100%% of %%s i %% 2=%lld");
}

TEST(Report, FloatsAreThoseOfPrintf) {
  const KernelReport report{.values = {{"", ReportedType::Float}}};
  for (const double value : {0.0, -0.0, 1.0, 0.1, 1e5, 1e6, 123456.7, 1234567.0, 1e-4, 1e-5, 1e300, 2.5e-310, 1.0 / 3,
                             std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()}) {
    char expected[64];
    std::snprintf(expected, sizeof expected, "%g\n", value);
    const int64_t values[] = {bits(value)};
    EXPECT_EQ(line_of(report, values), expected);
  }
  const int64_t nan[] = {bits(-std::numeric_limits<double>::quiet_NaN())};
  EXPECT_EQ(line_of(report, nan), "nan\n");
}

}  // namespace
}  // namespace helve
