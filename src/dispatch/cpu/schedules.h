// The lowering functions of the CPU schedules.
// One file an operation family; the table in cpu_schedule_table.cc is their only user.
#pragma once

#include "helve/dispatch/schedule_table.h"

namespace helve::cpu {

Stmt lower_copy(const TileOp& op, const LoweringContext& context, std::string* declined);
Stmt lower_mesh_tensor_copy(const TileOp& op, const LoweringContext& context, std::string* declined);
Stmt lower_fill(const TileOp& op, const LoweringContext& context, std::string* declined);
Stmt lower_order(const TileOp& op, const LoweringContext& context, std::string* declined);
Stmt lower_matrix_move(const TileOp& op, const LoweringContext& context, std::string* declined);
Stmt lower_matrix_product(const TileOp& op, const LoweringContext& context, std::string* declined);
Stmt lower_gemm_blocks(const TileOp& op, const LoweringContext& context, std::string* declined);
Stmt lower_gemm(const TileOp& op, const LoweringContext& context, std::string* declined);
Stmt lower_reduce_rows(const TileOp& op, const LoweringContext& context, std::string* declined);
Stmt lower_reduce_columns(const TileOp& op, const LoweringContext& context, std::string* declined);
Stmt lower_reduce_elements(const TileOp& op, const LoweringContext& context, std::string* declined);
Stmt lower_scan_columns(const TileOp& op, const LoweringContext& context, std::string* declined);
Stmt lower_scan_elements(const TileOp& op, const LoweringContext& context, std::string* declined);
Stmt lower_atomic(const TileOp& op, const LoweringContext& context, std::string* declined);

}  // namespace helve::cpu
