// Derived figures of a machine, and the CPU of this process.
// The CPU is queried once: a process does not change its processor.
#include "helve/target/machine.h"

#include <algorithm>
#include <fstream>
#include <string>
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

/// Bytes of the largest cache of the first core. The kernel's files know what a virtual machine was given; the
/// processor's own account is that of the whole socket.
int64_t last_level_cache() {
  constexpr int64_t kUsual = 32 << 20;
  int64_t largest = 0;
  for (int level = 0; level < 8; ++level) {
    std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(level) + "/size");
    int64_t count = 0;
    char unit = 0;
    if (!(file >> count >> unit)) break;
    largest = std::max(largest, count * (unit == 'M' ? 1 << 20 : 1 << 10));
  }
  return largest > 0 ? largest : kUsual;
}

}  // namespace

const Machine& host_machine() {
  static const Machine machine = [] {
    Machine out;
    out.name = "cpu";
    out.processors = std::max<int64_t>(std::thread::hardware_concurrency(), 1);
    out.vector_bytes = host_vector_bytes();
    out.last_cache = last_level_cache();
#if defined(__x86_64__)
    out.store_line = 64;
#endif
    return out;
  }();
  return machine;
}

}  // namespace helve
