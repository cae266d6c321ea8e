// The side of one process in collectives between GPUs.
// Whether a collective is one of NCCL follows from its kind, its type and the number of members, which all of them know
// alike; what must be packed and where, each process knows for itself. Moves are made once for each form and place.
#include "helve/runtime/nccl/nccl_communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "collective_moves.h"
#include "helve/runtime/box_moves.h"
#include "helve/runtime/cuda/device_boxes.h"
#include "helve/runtime/nccl/nccl_types.h"
#include "helve/support/hash.h"
#include "helve/support/text.h"

namespace helve::runtime::nccl {

namespace {

constexpr int64_t kAlignment = 256;  ///< bytes, of a piece of the room
constexpr size_t kWorks = 1024;  ///< of plans whose extents differ from call to call

/// Do the elements of a box lie one after the other, in row-major order?
bool in_one_piece(std::span<const int64_t> extents, std::span<const int64_t> strides) {
  int64_t inner = 1;
  for (size_t d = extents.size(); d-- > 0; inner *= extents[d]) {
    if (extents[d] != 1 && strides[d] != inner) return false;
  }
  return true;
}

}  // namespace

/// The members over some axes that this process is one of.
struct NcclCommunicator::Group {
  CoreGroups cores;
  std::vector<int64_t> members;
  NcclComm comm = nullptr;
  int64_t steps = 0;  ///< in this call: members of other groups may do more or fewer

  int place_of(int64_t core) const { return static_cast<int>(std::ranges::find(members, core) - members.begin()); }
};

/// What a process does in collectives of one form between the same places.
struct NcclCommunicator::Work {
  /// An address, or an offset in the room of a collective.
  struct Place {
    std::byte* at = nullptr;
    int64_t in_room = -1;

    std::byte* address(std::byte* room) const { return in_room < 0 ? at : room + in_room; }
  };

  struct Copy {
    const std::byte* source;
    Place target;
  };
  struct Transfer {
    int64_t peer;
    Place place;
  };
  struct Finish {
    std::vector<Place> sources;
    std::byte* target;
  };

  Work(CollectiveKind of, const CollectiveRequest& request, Group& of_group)
      : kind(of), op(reduces(of) ? std::optional(request.op) : std::nullopt), dtype(request.dtype), group(of_group) {}

  CollectiveKind kind;
  std::optional<ReduceOp> op;
  DLDataType dtype;
  Group& group;
  ProcessStep step;
  std::vector<int64_t> extents, compact, src_strides, dst_strides;
  int64_t bytes = 0;  ///< of a box
  std::vector<Copy> packs;
  std::vector<Transfer> sends, receives;
  std::vector<Finish> finishes;
  bool named = false;
  Place sent, received;  ///< of the collective of NCCL
  int root = 0;
  int64_t room = 0;  ///< bytes
  std::byte* placed = nullptr;  ///< the room that `pack` and `finish` are made for
  bool is_first = true;
  std::optional<cuda::DeviceBoxes> pack, finish;

  Place reserve(int64_t size) {
    const Place out{nullptr, room};
    room += (size + kAlignment - 1) / kAlignment * kAlignment;
    return out;
  }

  /// The launches that pack and finish, for this room.
  void place(std::byte* at, const cuda::Device& device, const std::vector<std::string>& site_packages) {
    if (pack && placed == at) return;
    placed = at;
    pack.emplace(dtype, std::nullopt);
    const size_t to_compact = pack->add_box(extents, src_strides, compact);
    for (const Copy& each : packs) {
      pack->add_source(each.source);
      pack->add_target(each.target.address(at));
      pack->end_move(to_compact);
    }
    // What NCCL has reduced is copied.
    finish.emplace(dtype, named ? std::nullopt : op);
    const size_t from_compact = finish->add_box(extents, compact, dst_strides);
    for (const Finish& each : finishes) {
      for (const Place& source : each.sources) finish->add_source(source.address(at));
      finish->add_target(each.target);
      finish->end_move(from_compact);
    }
    pack->load(device, site_packages);
    finish->load(device, site_packages);
  }
};

namespace {

/// Lists what one process does; `Work` is NcclCommunicator's.
template <class Work>
class WorkMaker {
  using Place = typename Work::Place;

 public:
  WorkMaker(Work& work, const CollectiveRequest& request, int64_t own) : work_(work), r_(request), own_(own) {
    bytes_ = element_bytes(r_.dtype);
    for (int64_t extent : r_.extents) count_ *= std::max<int64_t>(extent, 0);
    work_.extents.assign(r_.extents.begin(), r_.extents.end());
    work_.src_strides.assign(r_.src_strides.begin(), r_.src_strides.end());
    work_.dst_strides.assign(r_.dst_strides.begin(), r_.dst_strides.end());
    work_.compact = compact_strides(r_.extents);
    work_.bytes = count_ * bytes_;
  }

  void make(bool named) {
    work_.named = named;
    if (work_.kind == CollectiveKind::Barrier) {
      if (named) work_.sent = work_.received = work_.reserve(1);
      return;
    }
    if (count_ == 0) {
      work_.named = false;
      return;
    }
    meet_ = sides_meet();
    if (named) return make_named();
    CollectiveRequest of_all = r_;  // this process makes its side of the moves of others too
    of_all.cores = {};
    list_moves(work_.kind, of_all, work_.group.cores, *this);
  }

  // Moves, for list_moves.
  void add_source(int64_t core, int64_t elements) { sources_.push_back({core, elements}); }
  void add_target(int64_t core, int64_t elements) { targets_.push_back({core, elements}); }
  void end_move() {
    for (const End& target : targets_) {
      if (target.core != own_) {
        for (const End& source : sources_) {
          if (source.core == own_) work_.sends.push_back({target.core, piece(source.elements)});
        }
        continue;
      }
      typename Work::Finish finish{{}, destination(target.elements)};
      for (const End& source : sources_) {
        const Place place = source.core == own_ ? piece(source.elements) : work_.reserve(work_.bytes);
        if (source.core != own_) work_.receives.push_back({source.core, place});
        finish.sources.push_back(place);
      }
      work_.finishes.push_back(std::move(finish));
    }
    sources_.clear();
    targets_.clear();
  }

 private:
  struct End {
    int64_t core;
    int64_t elements;
  };

  std::byte* source(int64_t elements) const {
    return r_.src.base + own_ * r_.src.stride + (r_.src_offset + elements) * bytes_;
  }
  std::byte* destination(int64_t elements) const {
    return r_.dst.base + own_ * r_.dst.stride + (r_.dst_offset + elements) * bytes_;
  }

  /// The bytes from the first to the last one that a side touches, of this process.
  static std::pair<const std::byte*, const std::byte*> reach(const std::byte* first, std::span<const int64_t> extents,
                                                             std::span<const int64_t> strides, int64_t members,
                                                             int64_t member_stride, int64_t bytes) {
    int64_t low = 0, high = 0;
    for (size_t d = 0; d < extents.size(); ++d) (strides[d] < 0 ? low : high) += (extents[d] - 1) * strides[d];
    (member_stride < 0 ? low : high) += (members - 1) * member_stride;
    return {first + low * bytes, first + (high + 1) * bytes};
  }

  bool sides_meet() const {
    const auto members = static_cast<int64_t>(work_.group.members.size());
    const auto from = reach(source(0), r_.extents, r_.src_strides, parts_source(work_.kind) ? members : 1,
                            r_.member_stride_src, bytes_);
    const auto to = reach(destination(0), r_.extents, r_.dst_strides, parts_target(work_.kind) ? members : 1,
                          r_.member_stride_dst, bytes_);
    return from.first < to.second && to.first < from.second;
  }

  /// A box of the source in one piece: where it is, if nothing writes there before it is read.
  Place piece(int64_t elements) {
    if (!meet_ && in_one_piece(r_.extents, r_.src_strides)) return {source(elements)};
    const auto [known, is_new] = pieces_.try_emplace(elements);
    if (is_new) {
      known->second = work_.reserve(work_.bytes);
      work_.packs.push_back({source(elements), known->second});
    }
    return known->second;
  }

  /// Where a box arrives that is to come to the target.
  Place arrival(int64_t elements) {
    if (in_one_piece(r_.extents, r_.dst_strides)) return {destination(elements)};
    const Place out = work_.reserve(work_.bytes);
    work_.finishes.push_back({{out}, destination(elements)});
    return out;
  }

  void make_named() {
    const auto members = static_cast<int64_t>(work_.group.members.size());
    switch (work_.kind) {
      case CollectiveKind::AllGather: {
        work_.sent = piece(0);
        if (in_one_piece(r_.extents, r_.dst_strides) && r_.member_stride_dst == count_) {
          work_.received = {destination(0)};
          return;
        }
        work_.received = {nullptr, work_.room};
        work_.reserve(work_.bytes * members);
        for (int64_t k = 0; k < members; ++k) {
          const Place came{nullptr, work_.received.in_room + k * work_.bytes};
          work_.finishes.push_back({{came}, destination(k * r_.member_stride_dst)});
        }
        return;
      }
      case CollectiveKind::ReduceScatter: {
        if (!meet_ && in_one_piece(r_.extents, r_.src_strides) && r_.member_stride_src == count_) {
          work_.sent = {source(0)};
        } else {
          work_.sent = {nullptr, work_.room};
          work_.reserve(work_.bytes * members);
          for (int64_t k = 0; k < members; ++k) {
            const Place to{nullptr, work_.sent.in_room + k * work_.bytes};
            work_.packs.push_back({source(k * r_.member_stride_src), to});
          }
        }
        work_.received = arrival(0);
        return;
      }
      case CollectiveKind::AllReduce:
      case CollectiveKind::Reduce: {
        work_.root = static_cast<int>(r_.root);
        if (work_.kind == CollectiveKind::Reduce && work_.group.members[static_cast<size_t>(r_.root)] != own_) {
          work_.sent = work_.received = piece(0);  // nothing is received
          return;
        }
        // In place is a way of NCCL's own.
        const bool in_place = source(0) == destination(0) && in_one_piece(r_.extents, r_.src_strides) &&
                              in_one_piece(r_.extents, r_.dst_strides);
        work_.sent = in_place ? Place{source(0)} : piece(0);
        work_.received = arrival(0);
        return;
      }
      case CollectiveKind::Broadcast:
        work_.root = static_cast<int>(r_.root);
        work_.received = arrival(0);
        work_.sent = work_.group.members[static_cast<size_t>(r_.root)] == own_ ? piece(0) : work_.received;
        return;
      default: HELVE_FAIL("no collective of NCCL");
    }
  }

  Work& work_;
  const CollectiveRequest& r_;
  int64_t own_;
  int64_t bytes_;
  int64_t count_ = 1;
  bool meet_ = false;  ///< may source and destination share memory?
  std::vector<End> sources_, targets_;
  std::map<int64_t, Place> pieces_;
};

[[noreturn]] void forbid(const std::string& kernel, std::string action, std::string remedy) {
  throw UserError(Code::ForbiddenInCapture, {},
                  {{"kernel", kernel}, {"action", std::move(action)}, {"remedy", std::move(remedy)}});
}

constexpr const char* kCallFirst = "call it once with arguments of these shapes before capturing";

}  // namespace

NcclCommunicator::NcclCommunicator(std::shared_ptr<NcclWorld> world, const std::string& plan,
                                   std::vector<std::string> site_packages, bool compares)
    : world_(std::move(world)),
      own_(world_->processes().rank()),
      plan_(step_of(plan).hash),
      site_packages_(std::move(site_packages)),
      compares_(compares) {}

NcclCommunicator::~NcclCommunicator() = default;

void NcclCommunicator::begin_call(const Plan& plan, const cuda::Device& device, bool captured, InterruptPoll& poll) {
  std::unique_lock<std::recursive_mutex> lock(world_->processes().mutex());
  world_->take(device.ordinal);
  poll_ = &poll;
  for (const auto& [mask, group] : groups_) group->steps = 0;
  if (is_first_) {
    name_ = plan.name;
    if (captured) forbid(name_, "connects processes at its first call", kCallFirst);
    std::map<uint64_t, bool> axes;
    for_each_step(plan.steps, [&](const Step& step) {
      if (const auto* collective = std::get_if<Collective>(&step.node)) axes[collective->axes] = true;
      // Processes that decide otherwise would wait for each other on their GPUs.
      compares_ = compares_ || std::holds_alternative<Diverge>(step.node) || std::holds_alternative<Repeat>(step.node);
    });
    for (const auto& [mask, unused] : axes) {
      CollectiveRequest over;
      over.mesh = plan.mesh;
      over.axes = mask;
      Group group = group_of(over);
      group.comm = world_->communicator(group.members, poll);
      groups_[mask] = std::make_unique<Group>(std::move(group));
    }
    is_first_ = false;
  }
  if (captured && compares_) forbid(name_, "compares collectives", "leave out HELVE_COMM_CHECK");
  lock.release();  // until end_call
}

void NcclCommunicator::end_call(bool is_well) {
  if (is_well) {
    ++calls_;
  } else if (std::ranges::any_of(groups_, [](const auto& each) { return each.second->steps > 0; })) {
    world_->processes().break_off("an error of its own");
  }
  poll_ = nullptr;
  world_->processes().mutex().unlock();
}

NcclCommunicator::Group NcclCommunicator::group_of(const CollectiveRequest& r) const {
  Group group;
  group.cores.members = corners(r.mesh, r.axes);
  for (int64_t base : corners(r.mesh, ~r.axes)) {
    for (int64_t member : group.cores.members) {
      if (base + member == own_) group.cores.bases = {base};
    }
  }
  for (int64_t member : group.cores.members) group.members.push_back(group.cores.bases.front() + member);
  return group;
}

std::shared_ptr<NcclCommunicator::Work> NcclCommunicator::work_of(CollectiveKind kind, const CollectiveRequest& r) {
  const auto number = [](const void* pointer) { return static_cast<int64_t>(reinterpret_cast<uintptr_t>(pointer)); };
  std::vector<int64_t> key = {static_cast<int64_t>(kind),
                              static_cast<int64_t>(r.axes),
                              r.dtype.code,
                              r.dtype.bits,
                              static_cast<int64_t>(r.op),
                              r.root,
                              number(r.src.base),
                              number(r.dst.base),
                              r.src.stride,
                              r.dst.stride,
                              r.src_offset,
                              r.dst_offset,
                              r.member_stride_src,
                              r.member_stride_dst};
  for (const auto* list : {&r.extents, &r.src_strides, &r.dst_strides, &r.sources})
    key.insert(key.end(), list->begin(), list->end());
  if (const auto known = works_.find(key); known != works_.end()) return known->second;
  Group& group = *groups_.at(r.axes);
  auto made = std::make_shared<Work>(kind, r, group);
  WorkMaker(*made, r, own_).make(is_one_call(kind, r.dtype, r.op, static_cast<int64_t>(group.members.size())));
  const std::vector<int64_t> extents(r.extents.begin(), r.extents.end());
  const std::string what =
      fmt::format("{} of {} {} over processes {}", name_of(kind), to_text(r.dtype), shape_text(extents),
                  join(group.members, ", ", [](int64_t member) { return fmt::format("{}", member); }));
  uint64_t hash = step_of(fmt::format("{} {} {} of {}", what, name_of(r.op), r.root, plan_)).hash;
  for (int64_t source : r.sources) hash = hash_mix(hash, static_cast<uint64_t>(source));
  made->step = {what, hash};
  if (works_.size() >= kWorks) works_.clear();
  return works_.emplace(std::move(key), std::move(made)).first->second;
}

int64_t NcclCommunicator::room_of(CollectiveKind kind, const CollectiveRequest& r) { return work_of(kind, r)->room; }

void NcclCommunicator::run(CollectiveKind kind, const CollectiveRequest& r, std::byte* room, cuda::CudaStream stream,
                           bool captured) {
  const std::shared_ptr<Work> work = work_of(kind, r);
  if (captured && work->is_first) forbid(name_, "makes a collective for the first time", kCallFirst);
  ProcessGroup& processes = world_->processes();
  ++work->group.steps;
  if (compares_ || processes.is_broken()) {
    ProcessStep step = work->step;
    step.hash = hash_mix(hash_mix(step.hash, calls_), work->group.steps);
    processes.begin(step, *poll_, ProcessGroup::Part::Takes, true, work->group.members);
  }
  const NcclComm comm = work->group.comm;
  work->place(room, world_->device(), site_packages_);
  // What is given up may still be at work->
  world_->call(work->step.what, work->is_first && comm != nullptr, *poll_,
               [self = shared_from_this(), work, comm, room, stream, captured] {
                 if (!captured) self->world_->begin_step(stream);
                 self->put(*work, comm, room, stream);
                 if (!captured) self->world_->end_step(work->step.what, stream);
               });
  work->is_first = false;
}

void NcclCommunicator::put(const Work& work, NcclComm comm, std::byte* room, cuda::CudaStream stream) const {
  work.pack->launch(world_->device(), stream);
  if (work.named) put_named(work, comm, room, stream);
  if (!work.sends.empty() || !work.receives.empty()) {
    const NcclLibrary& nccl = world_->library();
    world_->check("ncclGroupStart", nccl.group_start(), comm);
    NcclResult result = kNcclSuccess;
    const auto add = [&](NcclResult each) { result = result == kNcclSuccess ? each : result; };
    const auto bytes = static_cast<size_t>(work.bytes);
    for (const auto& each : work.receives)
      add(nccl.recv(each.place.address(room), bytes, kNcclInt8, work.group.place_of(each.peer), comm, stream));
    for (const auto& each : work.sends)
      add(nccl.send(each.place.address(room), bytes, kNcclInt8, work.group.place_of(each.peer), comm, stream));
    add(nccl.group_end());
    world_->check("ncclSend and ncclRecv", result, comm);
  }
  work.finish->launch(world_->device(), stream);
}

void NcclCommunicator::put_named(const Work& work, NcclComm comm, std::byte* room, cuda::CudaStream stream) const {
  const NcclLibrary& nccl = world_->library();
  const std::byte* const sent = work.sent.address(room);
  std::byte* const received = work.received.address(room);
  const auto bytes = static_cast<size_t>(work.bytes);
  const size_t count = bytes / static_cast<size_t>(element_bytes(work.dtype));
  switch (work.kind) {
    case CollectiveKind::AllGather:
      return world_->check("ncclAllGather", nccl.all_gather(sent, received, bytes, kNcclInt8, comm, stream), comm);
    case CollectiveKind::Broadcast:
      return world_->check("ncclBroadcast", nccl.broadcast(sent, received, bytes, kNcclInt8, work.root, comm, stream),
                           comm);
    case CollectiveKind::AllReduce:
      return world_->check(
          "ncclAllReduce",
          nccl.all_reduce(sent, received, count, *nccl_type_of(work.dtype), nccl_op_of(*work.op), comm, stream), comm);
    case CollectiveKind::Reduce:
      return world_->check(
          "ncclReduce",
          nccl.reduce(sent, received, count, *nccl_type_of(work.dtype), nccl_op_of(*work.op), work.root, comm, stream),
          comm);
    case CollectiveKind::ReduceScatter:
      return world_->check(
          "ncclReduceScatter",
          nccl.reduce_scatter(sent, received, count, *nccl_type_of(work.dtype), nccl_op_of(*work.op), comm, stream),
          comm);
    case CollectiveKind::Barrier:  // all wait for all: a sum of one byte, which nobody reads
      return world_->check("ncclAllReduce", nccl.all_reduce(sent, received, 1, kNcclInt8, kNcclSum, comm, stream),
                           comm);
    default: HELVE_FAIL("no collective of NCCL");
  }
}

}  // namespace helve::runtime::nccl
