// The driver: how it is found, what a missing, old or failing one reports, devices.
#include "helve/runtime/cuda/driver.h"

#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

#include "fake_driver.h"
#include "helve/support/diagnostic.h"
#include "temporary_folder.h"

namespace helve::runtime::cuda {
namespace {

class CudaDriver : public FakeDriverTest {};

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

TEST_F(CudaDriver, DevicesAreDescribed) {
  const Device& first = device(0);
  EXPECT_EQ(first.name, "Fake GPU 0");
  EXPECT_EQ(first.text(), "cuda:0 (Fake GPU 0)");
  EXPECT_EQ(first.arch(), "sm_90a");
  EXPECT_EQ(first.multiprocessors, 4);
  EXPECT_EQ(&device(0), &first);
  Device ampere = first;
  ampere.major = 8;
  EXPECT_EQ(ampere.arch(), "sm_80");
  ampere.major = 10;
  EXPECT_EQ(ampere.arch(), "sm_100a");
}

TEST_F(CudaDriver, DevicesThatAreNotThere) {
  const std::string help = "\nhelp: devices count from 0; CUDA_VISIBLE_DEVICES hides some";
  EXPECT_EQ(error_of([] { device(7); }),
            "error[HV0904]: there is no device cuda:7, this machine has 1 CUDA device" + help);
  fake_state().device_count = 2;
  EXPECT_EQ(error_of([] { device(-1); }),
            "error[HV0904]: there is no device cuda:-1, this machine has 2 CUDA devices" + help);
}

TEST_F(CudaDriver, FailedCallsNameTheResultAndARemedy) {
  fake_state().fail_function = "cuMemFree_v2";
  fake_state().fail_countdown = 1;
  fake_state().fail_result = 700;
  EXPECT_EQ(
      error_of([] { driver().memory_free(0); }),
      "error[HV0903]: cuMemFree_v2 failed with CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered\n"
      "help: a kernel that ran before this call did what it must not, and the process has lost its device: run the "
      "program with target=\"interp\" and check=\"all\", or under compute-sanitizer");
  EXPECT_EQ(error_of([] { fail_call("cuNew", 12345); }),
            "error[HV0903]: cuNew failed with result 12345: unknown to the driver itself\nhelp: see the driver's "
            "documentation of this result");
}

TEST_F(CudaDriver, TheContextOfTheDeviceIsCurrentWithinAScopeOnly) {
  CudaContext before = nullptr, inside = nullptr, after = nullptr;
  driver().context_get_current(&before);
  {
    const ContextScope outer(device(0));
    const ContextScope nested(device(0));
    driver().context_get_current(&inside);
  }
  driver().context_get_current(&after);
  EXPECT_EQ(inside, device(0).context);
  EXPECT_NE(inside, before);
  EXPECT_EQ(after, before);
}

/// What the first use of a driver reports, in a program of its own, since a process keeps the driver it has loaded.
std::string first_use(const std::string& library, int failing_init = 0) {
  const TemporaryFolder folder;
  const std::string result = folder.path() + "/result";
  const pid_t child = fork();
  if (child == 0) {
    const std::string command = "--gtest_filter=DISABLED_FirstUse.Report";
    setenv("HELVE_LIBCUDA", library.c_str(), 1);
    setenv("HELVE_TEST_RESULT", result.c_str(), 1);
    setenv("HELVE_TEST_INIT", std::to_string(failing_init).c_str(), 1);
    unsetenv("GTEST_OUTPUT");
    if (std::freopen("/dev/null", "w", stdout) == nullptr) _exit(1);
    execl("/proc/self/exe", "test", command.c_str(), "--gtest_also_run_disabled_tests", nullptr);
    _exit(1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  std::ifstream in(result);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(DISABLED_FirstUse, Report) {
  const char* result = std::getenv("HELVE_TEST_RESULT");
  if (result == nullptr) GTEST_SKIP() << "runs for other tests only";
  if (const int failing = std::atoi(std::getenv("HELVE_TEST_INIT")); failing != 0) {
    fake_state().fail_function = "cuInit";
    fake_state().fail_countdown = 1;
    fake_state().fail_result = failing;
  }
  std::ofstream(result) << error_of([] { driver(); });
}

TEST(CudaDriverFirstUse, AMissingDriver) {
  EXPECT_EQ(
      first_use("/none/libcuda.so.1"),
      "error[HV0901]: no CUDA driver can be loaded: /none/libcuda.so.1: cannot open shared object file: No such file "
      "or directory\nhelp: install NVIDIA's driver, or compile with target=\"llvm\"");
}

TEST(CudaDriverFirstUse, ADriverThatLacksAFunction) {
  EXPECT_EQ(first_use("libm.so.6"),
            "error[HV0902]: the CUDA driver libm.so.6 has no cuInit\nhelp: install a driver of CUDA 12.0 or later");
}

TEST(CudaDriverFirstUse, ADriverThatDoesNotStart) {
  EXPECT_EQ(
      first_use(HELVE_FAKE_LIBCUDA, 100),
      "error[HV0903]: cuInit failed with result 100: unknown to the driver itself\nhelp: the driver sees no device: "
      "check nvidia-smi, CUDA_VISIBLE_DEVICES and the container's GPU options");
  EXPECT_EQ(first_use(HELVE_FAKE_LIBCUDA), "no error");
}

}  // namespace
}  // namespace helve::runtime::cuda
