// The executor of plans.
// It interprets steps; a step is a launch or a collective, so the cost of interpretation is not measurable.
#include "helve/runtime/executor.h"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "arguments.h"
#include "call_place.h"
#include "frame.h"
#include "helve/runtime/kernel_reports.h"
#include "helve/runtime/machine_section.h"
#include "helve/runtime/thread_pool.h"
#include "helve/support/diagnostic.h"
#include "plan_walker.h"

namespace helve::runtime {

namespace {

/// Steps on the CPU: launches on the thread pool, memory of the frame, collectives by the communicator.
class Run final : public PlanWalker<Run> {
 public:
  Run(const Plan& plan, const std::vector<KernelEntry>& kernels, Communicator& communicator, Frame& frame,
      InterruptPoll& poll)
      : PlanWalker(plan, frame, poll, communicator.cores()), kernels_(kernels), communicator_(communicator) {}

  std::byte* reserve(size_t index, int64_t bytes, int64_t alignment) {
    AlignedBlock& block = frame_.blocks[index];
    return block.reserve(bytes, alignment) ? block.data() : nullptr;
  }

  void launch(const Launch& s) {
    const KernelEntry entry = kernels_[static_cast<size_t>(s.kernel)];
    int64_t blocks = 0;
    for (const BlockRange& range : frame_.ranges) blocks += range.end - range.begin;
    // Tasks number the blocks of all ranges consecutively.
    auto task = [this, entry, &s](int64_t begin, int64_t end, int) {
      ScratchLease scratch(s.scratch_bytes);
      const ReportScope reports(s.reports);
      for (const BlockRange& range : frame_.ranges) {
        const int64_t size = range.end - range.begin, first = std::max<int64_t>(begin, 0), last = std::min(end, size);
        const auto code = [&] {
          entry(frame_.pointers.data(), frame_.scalars.data(), range.begin + first, range.begin + last, scratch.data());
        };
        if (first < last && !run_machine_code(poll_, code, !s.reports.empty())) return reports.throw_fault();
        begin -= size;
        end -= size;
      }
    };
    if (blocks > s.grain) return parallel_for(blocks, s.grain, task, &poll_);
    task(0, blocks, 0);
    if (poll_.stopped()) poll_.throw_if_requested();
  }

  void communicate(const Collective& s, const CollectiveRequest& request) { communicator_.run(s.kind, request); }

  void fetch(std::byte* to, std::span<const std::byte* const> places, int64_t bytes) {
    for (const std::byte* place : places) {
      std::memcpy(to, place, static_cast<size_t>(bytes));
      to += bytes;
    }
  }

 private:
  const std::vector<KernelEntry>& kernels_;
  Communicator& communicator_;
};

}  // namespace

class Executor::Impl {
 public:
  Impl(Plan plan, std::vector<KernelEntry> kernels, std::shared_ptr<Communicator> communicator)
      : plan_(std::move(plan)), kernels_(std::move(kernels)), communicator_(std::move(communicator)) {
    if (communicator_ == nullptr) communicator_ = std::make_shared<HostCommunicator>();
    verify(plan_, static_cast<int64_t>(kernels_.size()));
  }

  void call(std::span<const TensorArgument> tensors, std::span<const ScalarArgument> scalars,
            const CallOptions& options) {
    Lease lease(*this);
    CallOfPlan during(*communicator_);
    report_at(options.span, [&] {
      bind_arguments(plan_, tensors, scalars, options.multiprocessors ? options.multiprocessors : num_threads(),
                     *lease.frame);
      lease.frame->may_have_written = options.may_have_written;
      for (size_t b = plan_.params.size(); b < lease.frame->buffers.size(); ++b) lease.frame->buffers[b].ready = false;
      InterruptPoll poll(options.interrupt);
      Run(plan_, kernels_, *communicator_, *lease.frame, poll).steps(plan_.steps);
    });
    during.succeed();
  }

  const Plan& plan() const { return plan_; }

  void release_memory() {
    std::lock_guard<std::mutex> lock(mutex_);
    free_.clear();
  }

 private:
  /// A frame for this call; the most recently returned one is taken first, since its memory is warm.
  struct Lease {
    explicit Lease(Impl& impl) : owner(impl) {
      {
        std::lock_guard<std::mutex> lock(owner.mutex_);
        if (!owner.free_.empty()) {
          frame = std::move(owner.free_.back());
          owner.free_.pop_back();
        }
      }
      if (frame == nullptr) frame = std::make_unique<Frame>(owner.plan_);
    }
    ~Lease() {
      std::lock_guard<std::mutex> lock(owner.mutex_);
      owner.free_.push_back(std::move(frame));
    }
    Impl& owner;
    std::unique_ptr<Frame> frame;
  };

  Plan plan_;
  std::vector<KernelEntry> kernels_;
  std::shared_ptr<Communicator> communicator_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Frame>> free_;
};

Executor::Executor(Plan plan, std::vector<KernelEntry> kernels, std::shared_ptr<Communicator> communicator)
    : impl_(std::make_unique<Impl>(std::move(plan), std::move(kernels), std::move(communicator))) {}
Executor::~Executor() = default;

void Executor::call(std::span<const TensorArgument> tensors, std::span<const ScalarArgument> scalars,
                    const CallOptions& options) const {
  impl_->call(tensors, scalars, options);
}

const Plan& Executor::plan() const { return impl_->plan(); }

void Executor::release_memory() const { impl_->release_memory(); }

}  // namespace helve::runtime
