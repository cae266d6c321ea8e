// Records each function that a C++ test program verifies, as the printer writes it.
// The parser is Python: tests/python/test_recorded_functions.py reads the records back and compares structural hashes.
// The linker puts this file in front of `verify` (--wrap), so tests need not ask for it.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <unordered_set>

#include <fmt/format.h>

#include "helve/ir/tensor/equal.h"
#include "helve/ir/tensor/verify.h"
#include "helve/print/printer.h"

namespace {

/// Writes `f` to the folder HELVE_RECORD_FUNCTIONS as <structural hash>.py, once.
void record(const helve::FunctionRef& f) {
  static const char* folder = std::getenv("HELVE_RECORD_FUNCTIONS");
  if (!folder) return;
  static std::mutex mutex;
  static std::unordered_set<uint64_t> seen;
  const uint64_t hash = helve::structural_hash(f);
  const std::lock_guard lock(mutex);
  if (!seen.insert(hash).second) return;
  std::ofstream(std::filesystem::path(folder) / fmt::format("{:016x}.py", hash)) << helve::print(f);
}

}  // namespace

// The names that --wrap gives to verify(const FunctionRef&).
void call_verify(const helve::FunctionRef& f) asm("__real__ZN5helve6verifyERKNS_3RefIKNS_8FunctionEEE");
void record_verified(const helve::FunctionRef& f) asm("__wrap__ZN5helve6verifyERKNS_3RefIKNS_8FunctionEEE");

void record_verified(const helve::FunctionRef& f) {
  call_verify(f);
  record(f);
}
