// The functions of the rows of thread_operation_table.cc.
// Each pair is defined in a file of its operation.
#pragma once

#include "helve/threads/thread_operation.h"

namespace helve::threads {

/// A reduction: each thread reduces its own elements, then lanes exchange registers, then warps use shared memory.
OperationDemand demand_reduction(const TileOp& op);
Stmt divide_reduction(const TileOp& op, const DividedKernel& kernel, const Facts& facts);

/// A scan: each thread scans its own elements, then adds the totals of preceding lanes, then of preceding warps.
OperationDemand demand_scan(const TileOp& op);
Stmt divide_scan(const TileOp& op, const DividedKernel& kernel, const Facts& facts);

/// An instruction on fragments with layouts.
OperationDemand demand_instruction(const TileOp& op);
Stmt divide_instruction(const TileOp& op, const DividedKernel& kernel, const Facts& facts);

}  // namespace helve::threads
