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

int64_t Machine::launch_registers(int64_t threads) const {
  constexpr int64_t kUnit = 8;  // in which they are given out
  constexpr int64_t kThreads = 128;  // a warp of each of the four parts of a processor, which share no registers
  const int64_t whole = (threads + kThreads - 1) / kThreads * kThreads;
  return std::min(thread_registers, registers / whole / kUnit * kUnit);
}

int64_t Machine::blocks_at_once(int64_t threads, int64_t registers_each, int64_t shared) const {
  constexpr int64_t kLanes = 32, kWarps = 4, kUnit = 256, kReserved = 1024;  // how a multiprocessor gives them out
  const auto rounded = [](int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; };
  const int64_t warps = (threads + kLanes - 1) / kLanes;
  int64_t blocks = std::min(resident_blocks, resident_threads / kLanes / warps);
  if (const int64_t of_warp = rounded(registers_each * kLanes, kUnit); of_warp > 0) {
    blocks = std::min(blocks, registers / of_warp / kWarps * kWarps / warps);
  }
  return std::min(blocks, shared_bytes / (shared + kReserved));
}

namespace {

int64_t host_vector_bytes() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl")) return 64;
  if (__builtin_cpu_supports("avx2")) return 32;
#endif
  return 16;
}

/// Fills in the bytes of the caches of the first core. The kernel's files know what a virtual machine was given; the
/// processor's own account is that of the whole socket.
void read_caches(Machine& out) {
  out.first_cache = 32 << 10;
  out.second_cache = 512 << 10;
  int64_t largest = 0;
  for (int index = 0; index < 8; ++index) {
    const std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index);
    std::ifstream size(folder + "/size"), kind(folder + "/type"), depth(folder + "/level");
    int64_t count = 0, level = 0;
    char unit = 0;
    if (!(size >> count >> unit)) break;
    const int64_t bytes = count * (unit == 'M' ? 1 << 20 : 1 << 10);
    largest = std::max(largest, bytes);
    std::string type;
    if (!(kind >> type) || !(depth >> level) || type == "Instruction") continue;
    if (level == 1) out.first_cache = bytes;
    if (level == 2) out.second_cache = bytes;
  }
  out.last_cache = largest > 0 ? largest : 32 << 20;
}

}  // namespace

const Machine& host_machine() {
  static const Machine machine = [] {
    Machine out;
    out.name = "cpu";
    out.processors = std::max<int64_t>(std::thread::hardware_concurrency(), 1);
    out.vector_bytes = host_vector_bytes();
    read_caches(out);
#if defined(__x86_64__)
    out.store_line = 64;
#endif
    return out;
  }();
  return machine;
}

}  // namespace helve
