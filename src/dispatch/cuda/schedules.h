// The lowering functions of the schedules for NVIDIA GPUs.
// They make loops over elements; which thread runs which element is decided afterwards, for all loops of a kernel
// together.
#pragma once

#include "helve/dispatch/schedule_table.h"

namespace helve::cuda {

/// An instruction of the program stays what it is.
Stmt keep(const TileOp& op, const LoweringContext& context, std::string* declined);

Stmt lower_copy(const TileOp& op, const LoweringContext& context, std::string* declined);
Stmt lower_run(const TileOp& op, const LoweringContext& context, std::string* declined);
Stmt lower_cp_async(const TileOp& op, const LoweringContext& context, std::string* declined);
Stmt lower_run_async(const TileOp& op, const LoweringContext& context, std::string* declined);
Stmt keep_cp_async(const TileOp& op, const LoweringContext& context, std::string* declined);
Stmt lower_bulk(const TileOp& op, const LoweringContext& context, std::string* declined);
Stmt keep_bulk(const TileOp& op, const LoweringContext& context, std::string* declined);
Stmt lower_boxes(const TileOp& op, const LoweringContext& context, std::string* declined);
Stmt keep_boxes(const TileOp& op, const LoweringContext& context, std::string* declined);
Stmt lower_ldmatrix(const TileOp& op, const LoweringContext& context, std::string* declined);
Stmt lower_stmatrix(const TileOp& op, const LoweringContext& context, std::string* declined);
Stmt keep_matrix_move(const TileOp& op, const LoweringContext& context, std::string* declined);
Stmt lower_fill(const TileOp& op, const LoweringContext& context, std::string* declined);
Stmt lower_reduce(const TileOp& op, const LoweringContext& context, std::string* declined);
Stmt lower_gemm(const TileOp& op, const LoweringContext& context, std::string* declined);
Stmt lower_mma(const TileOp& op, const LoweringContext& context, std::string* declined);
std::vector<std::pair<BufferRef, Layout>> place_mma(const TileOp& op, const Kernel& kernel);
Stmt lower_scan(const TileOp& op, const LoweringContext& context, std::string* declined);
Stmt lower_atomic(const TileOp& op, const LoweringContext& context, std::string* declined);

}  // namespace helve::cuda
