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
    EXPECT_LT(row.number, 1000) << row.name;
    EXPECT_FALSE(row.message.empty()) << row.name;
  }
}

TEST(Diagnostic, MessageIsFilledFromArguments) {
  UserError error(Code::IndexCount, Span{intern_file("k.py"), 3, 5, 3, 9},
                  {{"buffer", "A"}, {"rank", int64_t{2}}, {"given", int64_t{3}}});
  EXPECT_STREQ(error.what(),
               "error[HV0201]: 'A' has 2 dimensions, 3 indices were given\n  --> k.py:3:5\n"
               "help: give one index or slice for each dimension");
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
