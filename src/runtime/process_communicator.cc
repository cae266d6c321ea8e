// The moves of a collective that concern one process.
// All members list the same moves in the same order, so the k-th message from one to another is the same on both sides.
// Boxes are packed before anything is received: source and destination may be one buffer.
#include "helve/runtime/process_communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "collective_moves.h"
#include "helve/runtime/box_moves.h"
#include "helve/support/hash.h"
#include "helve/support/text.h"

namespace helve::runtime {

namespace {

/// Collects what one process sends, receives and combines.
class OwnMoves {
 public:
  OwnMoves(const CollectiveRequest& request, int64_t own, bool reduces)
      : r_(request),
        own_(own),
        bytes_(element_bytes(request.dtype)),
        compact_(compact_strides(request.extents)),
        pack_(request.dtype, std::nullopt),
        finish_(request.dtype, reduces ? std::optional(request.op) : std::nullopt) {
    for (int64_t extent : r_.extents) count_ *= std::max<int64_t>(extent, 0);
    pack_.add_box(r_.extents, r_.src_strides, compact_);
    finish_.add_box(r_.extents, compact_, r_.dst_strides);
  }

  void add_source(int64_t core, int64_t elements) { sources_.push_back({core, elements}); }
  void add_target(int64_t core, int64_t elements) { targets_.push_back({core, elements}); }

  void end_move() {
    const bool sends = std::ranges::find(sources_, own_, &End::core) != sources_.end();
    for (const End& target : targets_) {
      if (target.core != own_ && sends) {
        for (const End& source : sources_) {
          if (source.core == own_) sends_.push_back({target.core, packed(source.elements), count_ * bytes_});
        }
      }
      if (target.core != own_) continue;
      for (const End& source : sources_) {
        std::byte* place = source.core == own_ ? packed(source.elements) : room();
        if (source.core != own_) receives_.push_back({source.core, place, count_ * bytes_});
        finish_.add_source(place);
      }
      finish_.add_target(r_.dst.base + own_ * r_.dst.stride + (r_.dst_offset + target.elements) * bytes_);
      finish_.end_move(kBox);
    }
    sources_.clear();
    targets_.clear();
  }

  void run(ProcessGroup& processes, InterruptPoll& poll) {
    if (count_ == 0) return;
    pack_.run(&poll);
    processes.exchange(sends_, receives_, memory_, poll);
    finish_.run(&poll);
  }

 private:
  static constexpr size_t kBox = 0;  ///< all moves have one

  struct End {
    int64_t core;
    int64_t elements;
  };

  std::byte* room() { return memory_->emplace_back(static_cast<size_t>(count_ * bytes_)).data(); }

  std::byte* packed(int64_t elements) {
    std::byte*& place = packed_[elements];
    if (place != nullptr) return place;
    place = room();
    pack_.add_source(r_.src.base + own_ * r_.src.stride + (r_.src_offset + elements) * bytes_);
    pack_.add_target(place);
    pack_.end_move(kBox);
    return place;
  }

  const CollectiveRequest& r_;
  int64_t own_;
  int64_t bytes_;
  int64_t count_ = 1;
  std::vector<int64_t> compact_;
  BoxMoves pack_, finish_;
  std::vector<End> sources_, targets_;
  std::vector<Message> sends_, receives_;
  std::map<int64_t, std::byte*> packed_;
  std::shared_ptr<std::deque<std::vector<std::byte>>> memory_ = std::make_shared<std::deque<std::vector<std::byte>>>();
};

}  // namespace

ProcessCommunicator::ProcessCommunicator(std::shared_ptr<ProcessGroup> processes, const std::string& plan)
    : processes_(std::move(processes)), own_(processes_->rank()), plan_(step_of(plan).hash) {}

void ProcessCommunicator::begin_call() {
  processes_->mutex().lock();
  count_.clear();
}

void ProcessCommunicator::end_call(bool is_well) {
  if (is_well) {
    ++calls_;
  } else if (!count_.empty() || !processes_->checks()) {
    processes_->break_off("an error of its own");
  }
  processes_->mutex().unlock();
}

/// What collectives of one form have in common.
struct ProcessCommunicator::Form {
  CoreGroups group;  ///< of this process
  std::vector<int64_t> members;
  ProcessStep step;
};

ProcessCommunicator::~ProcessCommunicator() = default;

const ProcessCommunicator::Form& ProcessCommunicator::form_of(CollectiveKind kind, const CollectiveRequest& r) {
  std::vector<int64_t> key = {static_cast<int64_t>(kind),
                              static_cast<int64_t>(r.axes),
                              r.dtype.code,
                              r.dtype.bits,
                              static_cast<int64_t>(r.op),
                              r.root};
  key.insert(key.end(), r.extents.begin(), r.extents.end());
  key.insert(key.end(), r.sources.begin(), r.sources.end());
  constexpr size_t kForms = 1024;  // of plans whose extents differ from call to call
  if (forms_.size() >= kForms) forms_.clear();
  const auto [place, is_new] = forms_.try_emplace(std::move(key));
  if (!is_new) return *place->second;
  Form& form = *(place->second = std::make_unique<Form>());
  form.group.members = corners(r.mesh, r.axes);
  for (int64_t base : corners(r.mesh, ~r.axes)) {
    for (int64_t member : form.group.members) {
      if (base + member == own_) form.group.bases = {base};
    }
  }
  for (int64_t member : form.group.members) form.members.push_back(form.group.bases.front() + member);
  const std::vector<int64_t> extents(r.extents.begin(), r.extents.end());
  const std::string what =
      fmt::format("{} of {} {} over processes {}", name_of(kind), to_text(r.dtype), shape_text(extents),
                  join(form.members, ", ", [](int64_t member) { return fmt::format("{}", member); }));
  uint64_t hash = step_of(fmt::format("{} {} {} of {}", what, name_of(r.op), r.root, plan_)).hash;
  for (int64_t source : r.sources) hash = hash_mix(hash, static_cast<uint64_t>(source));
  form.step = {what, hash};
  return form;
}

void ProcessCommunicator::run(CollectiveKind kind, const CollectiveRequest& r) {
  const Form& form = form_of(kind, r);
  ProcessStep step = form.step;
  step.hash = hash_mix(hash_mix(step.hash, calls_), ++count_[r.axes]);
  InterruptPoll nobody;
  InterruptPoll& poll = r.poll != nullptr ? *r.poll : nobody;
  // What nothing moves in still keeps the members together.
  if (kind == CollectiveKind::Barrier)
    return processes_->begin(step, poll, ProcessGroup::Part::Takes, true, form.members);
  CollectiveRequest of_all = r;  // this process makes its side of the moves of others too
  of_all.cores = {};
  OwnMoves moves(r, own_, reduces(kind));
  list_moves(kind, of_all, form.group, moves);
  processes_->run(step, poll, [&] { moves.run(*processes_, poll); }, form.members);
}

}  // namespace helve::runtime
