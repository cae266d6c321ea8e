// The fake libcuda as a test sees it.
// One process loads one driver; tests share it and reset its state.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "fake_libcuda/fake_libcuda.h"

namespace helve::runtime::cuda {

/// The state of the fake driver, which HELVE_LIBCUDA names from the first use on.
inline FakeState& fake_state() {
  static FakeState* state = [] {
    setenv("HELVE_LIBCUDA", HELVE_FAKE_LIBCUDA, 1);
    void* library = dlopen(HELVE_FAKE_LIBCUDA, RTLD_NOW | RTLD_LOCAL);
    return reinterpret_cast<FakeStateFunction>(dlsym(library, "helve_fake_state"))();
  }();
  return *state;
}

/// A test over the fake driver, with its state as at the start.
class FakeDriverTest : public testing::Test {
 protected:
  FakeDriverTest() { fake_state() = FakeState(); }
  ~FakeDriverTest() override {
    for (const auto& [capture, ends] : fake_state().graph_ends) {
      for (const auto& end : ends) end();
    }
    fake_state() = FakeState();
  }

  /// The calls of functions whose names begin so, with their details.
  static std::vector<std::string> calls(const std::string& begin) {
    std::vector<std::string> out;
    for (const std::string& call : fake_state().calls) {
      if (call.starts_with(begin)) out.push_back(call);
    }
    return out;
  }
};

}  // namespace helve::runtime::cuda
