// The lowering functions of the schedules for NVIDIA GPUs.
// They make loops over elements; which thread runs which element is decided afterwards, for all loops of a kernel
// together.
#pragma once

#include "helve/dispatch/schedule_table.h"

namespace helve::cuda {

Stmt lower_copy(const TileOp& op, const LoweringContext& context, std::string* declined);
Stmt lower_copy_by_matrices(const TileOp& op, const LoweringContext& context, std::string* declined);
Stmt lower_matrix_move(const TileOp& op, const LoweringContext& context, std::string* declined);
Stmt lower_fill(const TileOp& op, const LoweringContext& context, std::string* declined);
Stmt lower_reduce(const TileOp& op, const LoweringContext& context, std::string* declined);
Stmt lower_gemm(const TileOp& op, const LoweringContext& context, std::string* declined);

}  // namespace helve::cuda
