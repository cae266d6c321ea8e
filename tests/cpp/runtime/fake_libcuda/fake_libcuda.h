// What tests ask of the fake driver beyond the driver's own functions.
// Tests reach it by dlsym in the library that helve loads as libcuda, so that both see one state.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "helve/runtime/cuda/driver.h"

namespace helve::runtime::cuda {

/// A kernel of the fake: what a launch does, on the CPU. `parameters` are the pointers to the launch's arguments.
using FakeKernel = void (*)(const LaunchConfig& config, void** parameters);

struct FakeState {
  std::vector<std::string> calls;  ///< the functions called, in order, each with what a test may want to see of it
  int fail_countdown = 0;          ///< the call that brings it from 1 to 0 fails with fail_result
  std::string fail_function;       ///< empty: any function counts down
  int fail_result = 1;
  int device_count = 1;
  int capability = 90;              ///< 10 * major + minor
  int multiprocessors = 4;
  int resident_blocks = 2;          ///< per multiprocessor
  int resident_clusters = 3;
  int max_threads = 1024;           ///< of a function
  int not_ready = 0;                ///< so many queries of streams answer "not ready"
  uintptr_t events = 0;             ///< that were made, by which they are numbered
  uintptr_t recorded_event = 0;     ///< the last one
  uintptr_t stuck_event = 0;        ///< never passes
  int capture_status = 0;           ///< 1: every stream is being captured
  unsigned long long capture_id = 0;
  std::map<unsigned long long, std::vector<std::function<void()>>>
      graph_ends;  ///< by capture: run where it is destroyed
  int64_t memory_limit = int64_t{1} << 40;
  int64_t memory_used = 0;
  int64_t allocations = 0;          ///< blocks that were not freed
  std::vector<std::string> kernel_names;    ///< that libraries have, "image/name": of one; a handle is the index + 1
  std::vector<FakeKernel> kernels;          ///< one a name
};

/// The symbol "helve_fake_state" of the library: a `FakeState* ()`.
using FakeStateFunction = FakeState* (*)();

}  // namespace helve::runtime::cuda
