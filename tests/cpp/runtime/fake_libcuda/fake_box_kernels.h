// The kernels of boxes as the fake driver runs them.
// It knows them by name, so that a process needs no test in it to run a redistribution.
#pragma once

#include <functional>
#include <string>

#include "helve/runtime/cuda/driver.h"

namespace helve::runtime::cuda {

using FakeBoxKernel = std::function<void(const LaunchConfig& config, void** parameters)>;

/// The kernel of this name; empty if it is none of boxes.
FakeBoxKernel find_box_kernel(const std::string& name);

}  // namespace helve::runtime::cuda
