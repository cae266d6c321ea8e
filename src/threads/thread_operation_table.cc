// The operations that the threads of a block divide among themselves.
// No other file distinguishes these operations.
#include <algorithm>
#include <iterator>

#include "thread_operations.h"

namespace helve {

namespace {

constexpr ThreadOperation kRows[] = {
    {[](const TileOp& op) { return op.row().rule == TileRule::Reduce; }, threads::demand_reduction,
     threads::divide_reduction},
    {[](const TileOp& op) { return op.row().rule == TileRule::Scan; }, threads::demand_scan, threads::divide_scan},
    {[](const TileOp& op) { return op.row().rule == TileRule::Instruction; }, threads::demand_instruction,
     threads::divide_instruction},
};

}  // namespace

const ThreadOperation* thread_operation(const TileOp& op) {
  const auto row = std::find_if(std::begin(kRows), std::end(kRows), [&](const auto& each) { return each.takes(op); });
  return row == std::end(kRows) ? nullptr : &*row;
}

}  // namespace helve
