// The model of a machine, on which all decisions about a target are based.
// The architecture alone determines the row of the table: compiling needs no device, and gives the same code with one
// and without. What a call depends on (multiprocessors, shared memory), the runtime asks the device itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "helve/ir/expr/dtype.h"

namespace helve {

/// Dense multiplications and additions per second, in tensor cores if a GPU has them for the type.
struct Peak {
  DType type;
  double operations;  ///< a multiplication and an addition are two
};

struct Machine {
  std::string name;        ///< "sm_90a", "x86-64"
  int arch = 0;            ///< 90 for sm_90a; 0 for a CPU
  int64_t processors = 1;  ///< multiprocessors of a GPU, cores of a CPU

  // Of a processor, and of a block of threads on it.
  int64_t block_threads = 1;       ///< maximum of one block
  int64_t resident_threads = 0;    ///< maximum of a processor
  int64_t resident_blocks = 0;     ///< maximum of a processor
  int64_t registers = 0;           ///< of 32 bits, of one processor
  int64_t thread_registers = 0;    ///< maximum of one thread
  int64_t shared_bytes = 0;        ///< of a processor
  int64_t block_shared_bytes = 0;  ///< maximum of one block
  bool group_products = false;     ///< by the tensor cores of four warps, from shared memory: wgmma
  int64_t cluster_blocks = 1;      ///< maximum of a cluster: blocks that access each other's shared memory
  int64_t vector_bytes = 32;       ///< widest load of a thread, or vector register of a CPU

  int64_t first_cache = 0;  ///< bytes of the data cache next to a processor; 0: unknown
  int64_t second_cache = 0;  ///< bytes of the next one, of one processor; 0: unknown

  // Of the whole machine.
  int64_t last_cache = 0;  ///< bytes of the cache that all processors share; 0: unknown
  int64_t store_line = 0;  ///< bytes of a line of the cache that stores can go around; 0: they cannot
  double bandwidth = 0;    ///< of its memory, in bytes per second; 0: unknown
  std::vector<Peak> peaks;

  bool is_gpu() const { return arch != 0; }
  /// Registers per thread, in a block of `threads`, that may hold long-lived values: some are left for addresses and
  /// temporaries.
  int64_t value_registers(int64_t threads) const;
  /// Registers with which each thread of a block of `threads` begins, if the block has the processor for itself.
  int64_t launch_registers(int64_t threads) const;
  /// Blocks of so many threads, with these registers each, and of so much shared memory that a processor of a GPU runs
  /// at the same time.
  int64_t blocks_at_once(int64_t threads, int64_t registers_each, int64_t shared) const;
};

/// The row of an architecture ("sm_90a", as NVRTC names it), or of the nearest older one if it stands between two of
/// the table, so that nothing is planned that it might lack. Nothing if the text names no architecture, or one that is
/// older or newer than all of the table, of which helve knows nothing.
std::optional<Machine> gpu_machine(std::string_view arch);

/// "sm_80, sm_86": the architectures of the table.
std::string known_gpus();

/// Blocks of a cluster, at most, on the architecture of the table that has the most.
int64_t most_cluster_blocks();

/// The default architecture: the oldest one, but with clusters of 8 blocks, as all later ones have.
const Machine& any_gpu();

/// The CPU of this process, with the vector registers of the instructions it supports.
const Machine& host_machine();

}  // namespace helve
