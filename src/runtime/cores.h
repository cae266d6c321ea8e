// The cores that run a step together.
// Cores diverge where their control values differ; this file partitions them, the executors run the parts.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "frame.h"
#include "helve/runtime/plan.h"

namespace helve::runtime {

/// Appends the runs of consecutive numbers in `cores`, which ascend.
void find_ranges(std::span<const int64_t> cores, std::vector<BlockRange>& out);

struct CoresOfValue {
  int64_t value;
  std::vector<int64_t> cores;
};
/// The cores that found each value, values in order of first appearance.
std::vector<CoresOfValue> by_value(std::span<const int64_t> cores, std::span<const int64_t> found);

/// Keeps the cores that found a value other than 0.
void keep_true(std::vector<int64_t>& cores, std::span<const int64_t> found);

/// Throws the fault of the first uniformity check that fails: two members of a group found different values.
void require_uniform(const ControlValue& control, std::span<const int64_t> mesh, std::span<const int64_t> cores,
                     std::span<const int64_t> found);

template <class Values>
bool all_equal(const Values& values) {
  return std::all_of(values.begin(), values.end(), [&](const auto& v) { return v == values.front(); });
}

}  // namespace helve::runtime
