// Processes of a test that run at the same time.
// Caches are shared by processes, and only processes show whether they share well.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <functional>
#include <vector>

namespace helve::runtime {

/// Runs `body(number)` in `count` processes at once and expects every one to answer 0. A child ends here whatever
/// happens in it: one that returned to the test would go on with the tests that follow.
inline void run_processes(int count, const std::function<int(int)>& body) {
  std::vector<pid_t> children;
  for (int number = 0; number < count; ++number) {
    const pid_t child = fork();
    if (child == 0) {
      int faults = 1;
      try {
        faults = body(number);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "process %d: %s\n", number, error.what());
      }
      _exit(faults == 0 ? 0 : 1);
    }
    EXPECT_GT(child, 0) << "fork failed";
    if (child > 0) children.push_back(child);
  }
  int failed = 0;
  for (pid_t child : children) {
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    failed += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
  }
  EXPECT_EQ(failed, 0) << "of " << count << " processes";
}

}  // namespace helve::runtime
