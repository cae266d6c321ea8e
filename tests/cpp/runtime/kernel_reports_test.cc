// Reports of machine code: faults that end a call, and lines.
#include "helve/runtime/kernel_reports.h"

#include <gtest/gtest.h>

#include <atomic>

#include "helve/runtime/executor.h"
#include "helve/runtime/thread_pool.h"
#include "helve/support/diagnostic.h"
#include "host_tensor.h"

namespace helve::runtime {
namespace {

using P = ScalarProgram;

std::atomic<int> ran;

/// Counts blocks up to the one that fails; scalars: which one that is.
void failing_kernel(void* const*, const int64_t* scalars, int64_t begin, int64_t end, std::byte*) {
  for (int64_t i = begin; i < end; ++i) {
    if (i == scalars[0]) report_fault(1, &i);
    ++ran;
  }
}

Plan failing_plan(int64_t blocks) {
  Plan plan;
  plan.name = "failing";
  plan.slots = {"k"};
  plan.scalar_params = {{"k", {kDLInt, 64, 1}, 0}};
  Launch launch{0, "failing_0", P(blocks), {}, {P::slot(0)}};
  const KernelReport line{false, "a line", {}, 0, {}};
  const KernelReport fault{true, "holds", {{"b", ReportedType::Signed}}, 0, {}};
  launch.reports = {line, fault};
  plan.steps = {{launch}};
  return plan;
}

std::string error_of(const Executor& executor, int64_t block, const CallOptions& options = {}) {
  try {
    executor.call({}, std::vector<ScalarArgument>{block}, options);
  } catch (const UserError& error) {
    return error.diagnostic().message() + ", " + error.diagnostic().notes.at(0).text;
  }
  return "no error";
}

TEST(KernelReports, AFaultEndsTheBlockAndTheCall) {
  const InterruptHook hook = [] { return false; };
  const Executor executor(failing_plan(1), {failing_kernel});
  for (const InterruptHook* asked : {static_cast<const InterruptHook*>(nullptr), &hook}) {
    CallOptions options;
    options.interrupt = asked;
    ran = 0;
    EXPECT_EQ(error_of(executor, 0, options), "assertion failed: holds, where b=0");
    EXPECT_EQ(ran, 0);
    EXPECT_EQ(error_of(executor, 1, options), "no error");
    EXPECT_EQ(ran, 1);
  }
}

TEST(KernelReports, AFaultOfAnyThreadEndsTheCall) {
  const Executor executor(failing_plan(1000), {failing_kernel});
  for (const int64_t block : {0, 1, 500, 999}) {
    EXPECT_EQ(error_of(executor, block), "assertion failed: holds, where b=" + std::to_string(block));
  }
  ran = 0;
  EXPECT_EQ(error_of(executor, -1), "no error");
  EXPECT_EQ(ran, 1000);
}

void printing_kernel(void* const*, const int64_t*, int64_t begin, int64_t end, std::byte*) {
  for (int64_t i = begin; i < end; ++i) {
    if (i % 2 == 0) report_line(0, nullptr);
  }
}

TEST(KernelReports, LinesAreWrittenWhole) {
  const InterruptHook hook = [] { return false; };
  CallOptions options;
  options.interrupt = &hook;
  testing::internal::CaptureStdout();
  Executor(failing_plan(100), {printing_kernel}).call({}, std::vector<ScalarArgument>{int64_t{0}}, options);
  std::string expected;
  for (int i = 0; i < 50; ++i) expected += "a line\n";
  EXPECT_EQ(testing::internal::GetCapturedStdout(), expected);
}

}  // namespace
}  // namespace helve::runtime
