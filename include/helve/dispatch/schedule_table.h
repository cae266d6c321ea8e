// Which implementation of a tile operation is used, per target.
// An operation has several schedules with priorities; the first that fits lowers it, and when none fits each says why.
#pragma once

#include <string>
#include <vector>

#include "helve/arith/facts.h"
#include "helve/ir/tensor/function.h"

namespace helve {

/// What a schedule may know of the place where the operation stands.
struct LoweringContext {
  const Function* function = nullptr;  ///< mesh and placement of tensors
  const Kernel* kernel = nullptr;      ///< the enclosing kernel: its variables are the core's coordinates in a mesh function
  const Facts* facts = nullptr;        ///< what is known of the variables in scope
  int64_t vector_bytes = 32;           ///< width of the target's vector registers
  int cuda_arch = 80;                  ///< of an NVIDIA GPU: 90 is sm_90
};

/// One way to implement an operation: statements without tile operations, or the reason for declining.
struct TileSchedule {
  TileOpcode op;
  std::string_view name;
  int priority;
  Stmt (*lower)(const TileOp& op, const LoweringContext& context, std::string* declined);
};

/// The schedules of the CPU, highest priority first for each operation.
const std::vector<TileSchedule>& cpu_schedules();

/// The schedules for NVIDIA GPUs. Operations without a row are left to later passes.
const std::vector<TileSchedule>& cuda_schedules();

/// Lowers `op` by the first schedule that accepts it; NoSchedule lists the reasons when none does.
Stmt lower_tile_op(const TileOp& op, const std::vector<TileSchedule>& schedules, const LoweringContext& context);

}  // namespace helve
