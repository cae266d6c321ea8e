// What a machine is: the one structure that every decision about a target asks.
// A row is known by its architecture alone, so that compiling needs no device; what a present device says of itself
// (its multiprocessors, its memory) is filled in by the driver.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "helve/ir/expr/dtype.h"

namespace helve {

/// Dense products and sums in a second, in tensor cores where a GPU has them for the type.
struct Peak {
  DType type;
  double operations;  ///< a product and a sum are two
};

struct Machine {
  std::string name;      ///< "sm_90a", "x86-64"
  int arch = 0;          ///< 90 for sm_90a; 0 for a CPU
  int64_t processors = 1;  ///< multiprocessors of a GPU, cores of a CPU

  // Of a processor, and of the block of threads that runs on it.
  int64_t block_threads = 1;          ///< of one block at most
  int64_t processor_threads = 1;      ///< resident together
  int64_t processor_blocks = 1;       ///< resident together
  int64_t registers = 0;              ///< of 32 bits, of one processor
  int64_t thread_registers = 0;       ///< of one thread at most
  int64_t shared_bytes = 0;           ///< of a processor
  int64_t block_shared_bytes = 0;     ///< of one block at most
  int64_t cluster_blocks = 1;         ///< of a cluster at most: blocks that read each other's shared memory
  int64_t vector_bytes = 32;          ///< widest load of a thread, or vector register of a CPU

  // Of the whole machine.
  int64_t last_cache = 0;             ///< bytes of the cache that all processors share; 0: unknown
  double bandwidth = 0;               ///< of its memory, in bytes a second; 0: unknown
  std::vector<Peak> peaks;

  bool is_gpu() const { return arch != 0; }
  /// Registers of a thread, of a block of `threads`, that may hold values for long: some are left for addresses and
  /// what is being computed.
  int64_t value_registers(int64_t threads) const;
};

/// The row of an architecture ("sm_90a", "compute_80", "90"). One that the table does not have is the nearest older
/// one, so that nothing is planned that it might lack. Nothing where the text names no number, or an older one than
/// helve compiles for.
std::optional<Machine> gpu_machine(std::string_view arch);

/// What is compiled for where no architecture is named: the oldest one, but with clusters of 8 blocks, as all later
/// ones have.
const Machine& any_gpu();

/// The CPU of this process. Its vector registers are those that its instructions reach.
const Machine& host_machine();

}  // namespace helve
