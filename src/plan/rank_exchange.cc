// Boxes of one process as messages and moves.
// A device finds its own boxes by the layouts; how they become messages is in rank_plan.h.
#include "helve/plan/rank_exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "boxes.h"
#include "helve/plan/describe.h"
#include "helve/plan/redistribution.h"
#include "helve/support/text.h"
#include "rank_plan.h"
#include "reduce_op.h"

namespace helve {

namespace {

bool is_empty(const TransferBox& box) { return std::ranges::find(box.extents, 0) != box.extents.end(); }

}  // namespace

RankExchange::RankExchange(const CollectiveStep& step, int64_t rank)
    : form_(step.form), what_(to_text(step)), rank_(rank) {
  const Transfer& transfer = step.transfer;
  const std::vector<MeshAxis>& mesh = transfer.from().mesh;
  described_ = fmt::format("{} of {} over {} from {}", what_, shape_text(transfer.from().shape), mesh_text(mesh),
                           quoted_notation(transfer.from()));
  if (transfer.terms() > 1) op_ = reduce_op(transfer.op());
  const std::vector<int64_t> device = device_of(rank, mesh);
  const Box old = box_of(transfer.from(), device), mine = box_of(transfer.to(), device);

  std::vector<int64_t> counts;
  for (size_t a : step.axes) counts.push_back(mesh[a].extent);
  for_each_index(counts, [&](const std::vector<int64_t>& index) {
    std::vector<int64_t> member = device;
    for (size_t k = 0; k < index.size(); ++k) member[step.axes[k]] = index[k];
    members_.push_back(rank_of(member, mesh));
  });
  if (step.root >= 0) root_ = members_[static_cast<size_t>(step.root)];

  // Both sides list boxes by their first element, so that the k-th box from one process to another is the same.
  std::vector<TransferBox> boxes = transfer.sent(device);
  std::ranges::stable_sort(boxes, {}, &TransferBox::begin);
  for (const TransferBox& box : boxes) {
    const int64_t peer = rank_of(box.peer, mesh);
    if (peer != rank && !is_empty(box)) sent_.push_back({peer, within(box.begin, old), box.extents});
  }
  boxes = transfer.received(device);
  std::ranges::stable_sort(boxes, {}, &TransferBox::begin);
  for (const TransferBox& box : boxes) {
    if (is_empty(box)) continue;
    const std::vector<int64_t> begin = within(box.begin, mine);
    if (received_.empty() || received_.back().begin != begin || received_.back().extents != box.extents)
      received_.push_back({begin, box.extents, {}, {}});
    Received& last = received_.back();
    last.senders.push_back(rank_of(box.peer, mesh));
    if (last.senders.back() == rank) last.own = within(box.begin, old);
  }
}

runtime::ProcessStep RankExchange::step_on(runtime::DLDataType dtype) const {
  const std::string of = " of " + runtime::to_text(dtype);
  return {what_ + of, runtime::step_of(described_ + of).hash};
}

RankMoves RankExchange::prepare(const LocalPart& source, const LocalPart& target, runtime::DLDataType dtype) const {
  RankMoves out(step_on(dtype), dtype, op_);
  RankPlan(*this, source, target, dtype, out).make();
  return out;
}

void RankMoves::run(runtime::ProcessGroup& processes, runtime::InterruptPoll& poll) {
  processes.run(step_, poll, [&] {
    for (Round& round : rounds_) {
      round.pack.run(&poll);
      processes.exchange(round.sends, round.receives, memory_, poll, [&] { round.meanwhile.run(&poll); });
      round.finish.run(&poll);
    }
  });
}

}  // namespace helve
