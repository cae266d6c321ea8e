// Faults of kernels in page-locked memory of the host.
// Looking for one is a load from memory of the host, so every call can do it.
#include "fault_memory.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "helve/support/diagnostic.h"

namespace helve::runtime::cuda {

namespace {
constexpr size_t kWords = 64;  ///< of a launch: state, number, values, a multiple of a line of any cache
constexpr int64_t kComplete = 2;
static_assert(2 + kMostReported <= static_cast<int64_t>(kWords));
}  // namespace

std::shared_ptr<FaultMemory> FaultMemory::of(const std::vector<const Launch*>& launches) {
  const bool any =
      std::any_of(launches.begin(), launches.end(), [](const Launch* l) { return has_faults(l->reports); });
  return any ? std::shared_ptr<FaultMemory>(new FaultMemory(launches)) : nullptr;
}

FaultMemory::FaultMemory(const std::vector<const Launch*>& launches) : launches_(launches) {
  for (const Launch* launch : launches) reports_.push_back(launch->reports);
  const size_t bytes = launches.size() * kWords * sizeof(int64_t);
  const RelaxedCapture relaxed;
  void* memory = nullptr;
  driver().host_allocate(&memory, bytes, kHostAllocPortable | kHostAllocMapped);
  std::memset(memory, 0, bytes);
  words_ = static_cast<int64_t*>(memory);
}

FaultMemory::~FaultMemory() {
  const RelaxedCapture relaxed;
  (void)driver().host_free.result(words_);
}

int64_t* FaultMemory::of(const Launch& launch) const {
  const auto at = std::find(launches_.begin(), launches_.end(), &launch);
  HELVE_CHECK(at != launches_.end(), "a launch of another plan");
  return words_ + static_cast<size_t>(at - launches_.begin()) * kWords;
}

void FaultMemory::throw_fault() const {
  for (size_t i = 0; i < launches_.size(); ++i) {
    int64_t* const fault = words_ + i * kWords;
    std::atomic_ref<int64_t> state(*fault);
    int64_t complete = kComplete;
    if (state.load(std::memory_order_acquire) != kComplete) continue;
    const KernelReport& report = reports_[i].at(static_cast<size_t>(fault[1]));
    const std::vector<int64_t> values(fault + 2, fault + 2 + report.values.size());
    if (state.compare_exchange_strong(complete, 0)) throw fault_of(report, values);
  }
}

}  // namespace helve::runtime::cuda
