// Copies between a tensor of the call and shared memory by TMA with a tensor map: T.cp_async_bulk_tensor.
// The map contains the tensor's extents, so tiles of any size are boxes and nothing is left for the threads.
#include <fmt/format.h>

#include "helve/analysis/async_run.h"
#include "helve/analysis/box_copy.h"
#include "helve/ir/tensor/visit.h"
#include "schedules.h"
#include "tma_copy.h"

namespace helve::cuda {

namespace {

constexpr int64_t kSmallestBox = 1024;  // bytes; smaller ones only on request

/// Why a tensor map is not used unless it is requested.
std::string why_not_unasked(const TileOp& op, const CopyRegions& copy, const LoweringContext& context) {
  std::string reason;
  const std::optional<CopyBoxes> boxes = copy_boxes(copy.src, copy.dst, &reason);
  if (!boxes) return reason;
  const int64_t bytes = boxes->elements() * copy.src.buffer->dtype.bytes();
  if (bytes < kSmallestBox) return fmt::format("its boxes have {} bytes, less than {}", bytes, kSmallestBox);
  const Region& memory = boxes->tensor == 0 ? copy.dst : copy.src;
  if (memory.buffer->layout || context.fills_ring) return "";  // there is no other to choose, or threads do not copy
  const Stmt by_threads = op.op == TileOpcode::CopyAsync ? lower_cp_async(op, context, &reason) : Stmt();
  bool whole = static_cast<bool>(by_threads);
  if (by_threads)
    walk(by_threads, [&](const Stmt& s) {
      const TileOp* run = as<TileOp>(s);
      if (run && run->op == TileOpcode::CpAsync)
        whole &= run_length(*run) * copy.src.buffer->dtype.bytes() == kBulkUnit;
    });
  return whole ? "the threads can make it in pieces of 16 bytes, which leaves the memory any layout" : "";
}

}  // namespace

Stmt lower_boxes(const TileOp& op, const LoweringContext& context, std::string* declined) {
  const std::optional<CopyRegions> copy = copy_regions(op, context, declined);
  if (!copy) return {};
  *declined = why_no_tma(context, *copy);
  if (declined->empty() && !context.asked) *declined = why_not_unasked(op, *copy, context);
  if (!declined->empty()) return {};
  // A blocking store is waited for alone, until its source can be reused; other copies of the block stay in flight.
  const bool counted = op.op == TileOpcode::CopyAsync || is_global(*copy->src.buffer);
  const Stmt moved = tile_op(TileOpcode::CpAsyncBulkTensor, {copy->src, copy->dst, !counted}, op.span);
  if (!is_box_copy(*as<TileOp>(moved), copy->pad, *context.facts, declined)) return {};
  if (!counted || op.op == TileOpcode::CopyAsync) return moved;
  return seq({moved, tile_op(TileOpcode::WaitAsync, {}, op.span)});
}

Stmt keep_boxes(const TileOp& op, const LoweringContext& context, std::string* declined) {
  const std::optional<CopyRegions> copy = copy_regions(op, context, declined);
  if (!copy) return {};
  *declined = why_no_tma(context, *copy);
  if (!declined->empty() || !is_box_copy(op, copy->pad, *context.facts, declined)) return {};
  return kept(op);
}

}  // namespace helve::cuda
