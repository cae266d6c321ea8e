// Derived figures of a machine, and the CPU of this process.
// The CPU is queried once: a process does not change its processor.
#include "helve/target/machine.h"

#include <algorithm>
#include <thread>

namespace helve {

int64_t Machine::value_registers(int64_t threads) const {
  constexpr int64_t kLeft = 24;
  return std::min(thread_registers, registers / threads) - kLeft;
}

namespace {

int64_t host_vector_bytes() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl")) return 64;
  if (__builtin_cpu_supports("avx2")) return 32;
#endif
  return 16;
}

}  // namespace

const Machine& host_machine() {
  static const Machine machine = [] {
    Machine out;
    out.name = "cpu";
    out.processors = std::max<int64_t>(std::thread::hardware_concurrency(), 1);
    out.vector_bytes = host_vector_bytes();
    return out;
  }();
  return machine;
}

}  // namespace helve
