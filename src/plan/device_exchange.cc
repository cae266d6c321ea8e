// Boxes of one process as work on its GPU.
// Whether a step is a collective of NCCL follows from what all members of a group know alike, so that none of them
// calls what another one does not.
#include "helve/plan/device_exchange.h"

#include <algorithm>

#include "helve/runtime/nccl/nccl_types.h"
#include "rank_plan.h"

namespace helve {

namespace {

using runtime::DLDataType;
using runtime::ReduceOp;
using namespace runtime::nccl;

/// Does NCCL reduce it as helve does?
bool reduces_by_nccl(DLDataType dtype, std::optional<ReduceOp> op) { return op && is_reduced_by_nccl(dtype, *op); }

}  // namespace

/// Makes a collective of NCCL where a step is one.
class CollectivePlan : RankPlan<DeviceMoves> {
 public:
  CollectivePlan(const RankExchange& exchange, const LocalPart& source, const LocalPart& target, DLDataType dtype,
                 DeviceMoves& out)
      : RankPlan(exchange, source, target, dtype, out), dtype_(dtype) {}

  /// False where it is none; then nothing was made.
  bool make() {
    if (x_.members_.size() < 2 || (x_.sent_.empty() && x_.received_.empty())) return false;
    switch (x_.form_) {
      case CollectiveForm::AllGather: return all_gather();
      case CollectiveForm::ReduceScatter: return reduces_by_nccl(dtype_, x_.op_) && reduce_scatter();
      case CollectiveForm::AllReduce: return reduces_by_nccl(dtype_, x_.op_) && all_reduce();
      case CollectiveForm::Broadcast: return broadcast();
      case CollectiveForm::Reduce: return reduces_by_nccl(dtype_, x_.op_) && reduce();
      default: return false;
    }
  }

 private:
  using Extents = std::vector<int64_t>;
  using Begin = std::vector<int64_t>;

  /// Blocks of one extent, one of each member: where each begins, in the order of members. Empty if they are not so.
  template <class Add>
  std::vector<const Begin*> blocks(const Extents& extents, Add&& add) const {
    std::vector<const Begin*> out(x_.members_.size(), nullptr);
    bool fits = true;
    add([&](int64_t member, const Begin& begin, const Extents& its) {
      const auto place = static_cast<size_t>(std::ranges::find(x_.members_, member) - x_.members_.begin());
      fits = fits && place < out.size() && out[place] == nullptr && its == extents;
      if (fits) out[place] = &begin;
    });
    if (!fits || std::ranges::find(out, nullptr) != out.end()) out.clear();
    return out;
  }

  /// Where blocks lie one after the other in a part, or null.
  std::byte* in_order(const std::vector<const Begin*>& blocks, const Extents& extents, const LocalPart& part) const {
    if (!in_one_piece(extents, part.strides)) return nullptr;
    std::byte* const first = address(*blocks.front(), part);
    for (size_t k = 0; k < blocks.size(); ++k) {
      if (address(*blocks[k], part) != first + static_cast<int64_t>(k) * count_of(extents) * bytes_) return nullptr;
    }
    return first;
  }

  /// What a block that is received goes to: its place, or memory that is unpacked at the end.
  std::byte* received(Round& round, const Begin& begin, const Extents& extents) {
    if (in_one_piece(extents, target_.strides)) return address(begin, target_);
    std::byte* const out = room(count_of(extents));
    unpack(round, begin, extents, out);
    return out;
  }

  void unpack(Round& round, const Begin& begin, const Extents& extents, const std::byte* from) {
    // A reduction of one source is a copy.
    copy(round.finish, extents, from, compact_strides(extents), address(begin, target_), target_.strides);
  }

  bool end(const std::byte* sent, std::byte* received, const Extents& extents) {
    // What is not reduced moves as bytes, whatever it is.
    const bool reduces = x_.op_.has_value();
    out_.named_ = {sent, received, count_of(extents) * (reduces ? 1 : bytes_),
                   reduces ? *nccl_type_of(dtype_) : kNcclInt8, reduces ? nccl_op_of(*x_.op_) : kNcclSum};
    return true;
  }

  bool all_gather() {
    if (x_.received_.empty()) return false;
    const Extents& extents = x_.received_.front().extents;
    const Begin* mine = nullptr;
    const auto all = blocks(extents, [&](auto&& add) {
      for (const RankExchange::Received& each : x_.received_) {
        add(each.senders.size() == 1 ? each.senders.front() : -1, each.begin, each.extents);
        if (each.senders.front() == x_.rank_) mine = &each.own;
      }
    });
    if (all.empty() || mine == nullptr) return false;
    Round& round = out_.add_round();
    const std::byte* const sent = piece(round, *mine, extents);
    if (std::byte* const place = in_order(all, extents, target_)) return end(sent, place, extents);
    const int64_t block = count_of(extents);
    std::byte* const came = room(block * static_cast<int64_t>(all.size()));
    for (size_t k = 0; k < all.size(); ++k)
      unpack(round, *all[k], extents, came + static_cast<int64_t>(k) * block * bytes_);
    return end(sent, came, extents);
  }

  bool reduce_scatter() {
    if (x_.received_.size() != 1 || x_.received_.front().senders.size() != x_.members_.size()) return false;
    const RankExchange::Received& mine = x_.received_.front();
    const auto all = blocks(mine.extents, [&](auto&& add) {
      add(x_.rank_, mine.own, mine.extents);
      for (const RankExchange::Sent& each : x_.sent_) add(each.peer, each.begin, each.extents);
    });
    if (all.empty()) return false;
    Round& round = out_.add_round();
    std::byte* sent = in_order(all, mine.extents, source_);
    if (sent == nullptr) {
      const int64_t block = count_of(mine.extents);
      sent = room(block * static_cast<int64_t>(all.size()));
      for (size_t k = 0; k < all.size(); ++k) {
        copy(round.pack, mine.extents, address(*all[k], source_), source_.strides,
             sent + static_cast<int64_t>(k) * block * bytes_, compact_strides(mine.extents));
      }
    }
    return end(sent, received(round, mine.begin, mine.extents), mine.extents);
  }

  bool all_reduce() {
    if (x_.received_.size() != 1 || x_.received_.front().senders.size() != x_.members_.size()) return false;
    const RankExchange::Received& mine = x_.received_.front();
    Round& round = out_.add_round();
    const std::byte* const sent = piece(round, mine.own, mine.extents);
    return end(sent, received(round, mine.begin, mine.extents), mine.extents);
  }

  bool broadcast() {
    // All get one box, so that it is enough to look at the own one.
    if (x_.received_.size() != 1 || x_.received_.front().senders != std::vector<int64_t>{x_.root_}) return false;
    const RankExchange::Received& mine = x_.received_.front();
    Round& round = out_.add_round();
    const std::byte* const sent = x_.rank_ == x_.root_ ? piece(round, mine.own, mine.extents) : nullptr;
    return end(sent, received(round, mine.begin, mine.extents), mine.extents);
  }

  bool reduce() {
    const bool is_root = x_.rank_ == x_.root_;
    if (is_root ? x_.received_.size() != 1 || x_.received_.front().senders.size() != x_.members_.size()
                : x_.sent_.size() != 1 || !x_.received_.empty())
      return false;
    const Extents& extents = is_root ? x_.received_.front().extents : x_.sent_.front().extents;
    Round& round = out_.add_round();
    const std::byte* const sent = piece(round, is_root ? x_.received_.front().own : x_.sent_.front().begin, extents);
    return end(sent, is_root ? received(round, x_.received_.front().begin, extents) : nullptr, extents);
  }

  DLDataType dtype_;
};

DeviceMoves::DeviceMoves(const RankExchange& exchange, const LocalPart& source, const LocalPart& target,
                         DLDataType dtype, std::vector<std::string> site_packages, const Allocate& allocate)
    : step_(exchange.step_on(dtype)),
      dtype_(dtype),
      op_(exchange.op_),
      form_(exchange.form_),
      members_(exchange.members_),
      root_(exchange.root_),
      site_packages_(std::move(site_packages)),
      allocate_(&allocate) {
  if (!CollectivePlan(exchange, source, target, dtype, *this).make())
    RankPlan<DeviceMoves>(exchange, source, target, dtype, *this).make();
  allocate_ = nullptr;
}

int DeviceMoves::place_of(int64_t rank) const {
  const auto found = std::ranges::find(members_, rank);
  HELVE_CHECK(found != members_.end(), "a message to a process outside of its group");
  return static_cast<int>(found - members_.begin());
}

void DeviceMoves::load(const runtime::cuda::Device& device) {
  const runtime::cuda::ContextScope scope(device);
  for (Round& round : rounds_) {
    for (auto* boxes : {&round.pack, &round.meanwhile, &round.finish}) boxes->load(device, site_packages_);
  }
}

void DeviceMoves::run(NcclWorld& world, runtime::cuda::CudaStream stream, bool compares, runtime::InterruptPoll& poll) {
  runtime::ProcessGroup& processes = world.processes();
  int status = 0;
  unsigned long long id = 0;
  runtime::cuda::CudaGraph graph = nullptr;
  size_t count = 0;
  runtime::cuda::driver().stream_capture_info(stream, &status, &id, &graph, nullptr, &count);
  const bool is_recorded = status != 0;
  if (is_recorded && (is_first_ || compares)) {
    throw UserError(
        Code::ForbiddenInCapture, {},
        {{"kernel", step_.what},
         {"action", std::string(is_first_ ? "connects processes at its first call" : "compares steps")},
         {"remedy", std::string(is_first_ ? "call it once before capturing" : "leave out HELVE_COMM_CHECK")}});
  }
  const std::lock_guard<std::recursive_mutex> lock(processes.mutex());
  // A group that is broken says so.
  if (compares || processes.is_broken()) processes.begin(step_, poll, runtime::ProcessGroup::Part::Takes, true);
  try {
    const NcclComm comm = world.communicator(members_, poll);
    if (is_first_) load(world.device());
    world.call(step_.what, is_first_ && comm != nullptr, poll, [this, &world, comm, stream, is_recorded] {
      if (!is_recorded) world.begin_step(stream);
      put(world, comm, stream);
      if (!is_recorded) world.end_step(step_.what, stream);
    });
  } catch (...) {
    processes.break_off("an error on the GPU");
    throw;
  }
  is_first_ = false;
}

void DeviceMoves::put(const NcclWorld& world, NcclComm comm, runtime::cuda::CudaStream stream) const {
  const NcclLibrary* nccl = comm != nullptr ? &world.library() : nullptr;
  for (const Round& round : rounds_) {
    round.pack.launch(world.device(), stream);
    round.meanwhile.launch(world.device(), stream);
    if (named_) put_named(world, comm, stream);
    if (!round.sends.empty() || !round.receives.empty()) {
      HELVE_CHECK(nccl != nullptr, "messages of a process alone");
      world.check("ncclGroupStart", nccl->group_start(), comm);
      NcclResult result = kNcclSuccess;
      const auto add = [&](NcclResult each) { result = result == kNcclSuccess ? each : result; };
      for (const runtime::Message& each : round.receives)
        add(nccl->recv(each.data, static_cast<size_t>(each.bytes), kNcclInt8, place_of(each.peer), comm, stream));
      for (const runtime::Message& each : round.sends)
        add(nccl->send(each.data, static_cast<size_t>(each.bytes), kNcclInt8, place_of(each.peer), comm, stream));
      add(nccl->group_end());
      world.check("ncclSend and ncclRecv", result, comm);
    }
    round.finish.launch(world.device(), stream);
  }
}

void DeviceMoves::put_named(const NcclWorld& world, NcclComm comm, runtime::cuda::CudaStream stream) const {
  const NcclLibrary& nccl = world.library();
  const auto count = static_cast<size_t>(named_->count);
  const auto [sent, received, elements, type, op] = *named_;
  switch (form_) {
    case CollectiveForm::AllGather:
      return world.check("ncclAllGather", nccl.all_gather(sent, received, count, type, comm, stream), comm);
    case CollectiveForm::ReduceScatter:
      return world.check("ncclReduceScatter", nccl.reduce_scatter(sent, received, count, type, op, comm, stream), comm);
    case CollectiveForm::AllReduce:
      return world.check("ncclAllReduce", nccl.all_reduce(sent, received, count, type, op, comm, stream), comm);
    case CollectiveForm::Broadcast:
      return world.check("ncclBroadcast", nccl.broadcast(sent, received, count, type, place_of(root_), comm, stream),
                         comm);
    case CollectiveForm::Reduce:
      return world.check("ncclReduce", nccl.reduce(sent, received, count, type, op, place_of(root_), comm, stream),
                         comm);
    default: HELVE_FAIL("no collective of NCCL");
  }
}

}  // namespace helve
