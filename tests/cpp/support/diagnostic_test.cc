// The diagnostics table and its templates.
#include "helve/support/diagnostic.h"

#include <gtest/gtest.h>

#include <set>

namespace helve {
namespace {

TEST(Diagnostic, NumbersAreUniqueAndNamed) {
  std::set<int> numbers;
  for (const DiagnosticRow& row : diagnostic_rows()) {
    EXPECT_TRUE(numbers.insert(row.number).second) << row.name;
    EXPECT_GT(row.number, 0) << row.name;
    EXPECT_LT(row.number, 10000) << row.name;
    EXPECT_FALSE(row.message.empty()) << row.name;
  }
}

TEST(Diagnostic, MessageIsFilledFromArguments) {
  UserError error(Code::IndexCount, Span{intern_file("k.py"), 3, 5, 3, 9},
                  {{"buffer", "A"}, {"rank", int64_t{2}}, {"given", int64_t{3}}});
  EXPECT_STREQ(error.what(), "error[HV0201]: 'A' has 2 dimensions, the subscript has 3 indices\n  --> k.py:3:5\n"
                             "help: give one index or slice for each dimension");
}

TEST(Diagnostic, WordsStandInTheirNumber) {
  const DiagnosticArgs args = {{"n", int64_t{1}}, {"m", int64_t{0}}};
  EXPECT_EQ(fill_template("{n:dimension}, {m:dimension}, {n:index/indices}, {m:index/indices}", args),
            "1 dimension, 0 dimensions, 1 index, 0 indices");
}

TEST(Diagnostic, AMissingArgumentIsAnInternalError) {
  Diagnostic d{Code::UnknownName, {}, {}, {}, {}};
  EXPECT_THROW(d.message(), InternalError);
}

TEST(Diagnostic, FixesReplaceTheHelp) {
  Diagnostic d{Code::UnknownName, {}, {{"name", "x"}}, {}, {"write y"}};
  EXPECT_EQ(d.help(), "write y");
}

}  // namespace
}  // namespace helve
