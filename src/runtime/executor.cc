// The executor of plans.
// It interprets steps; a step is a launch or a collective, so that interpreting costs nothing that a user could
// measure.
#include "helve/runtime/executor.h"

#include <fmt/format.h>

#include <mutex>

#include "arguments.h"
#include "frame.h"
#include "helve/runtime/thread_pool.h"
#include "helve/support/diagnostic.h"

namespace helve::runtime {

namespace {

/// One call: the steps of a plan on a frame.
class Run {
 public:
  Run(const Plan& plan, const std::vector<KernelEntry>& kernels, Communicator& communicator, Frame& frame,
      InterruptPoll& poll)
      : plan_(plan), kernels_(kernels), communicator_(communicator), frame_(frame), poll_(poll) {}

  void steps(const std::vector<Step>& list) {
    for (const Step& s : list) {
      if (poll_.active()) poll_.throw_if_requested();
      std::visit([this](const auto& node) { step(node); }, s.node);
    }
  }

 private:
  int64_t value(const ScalarProgram& program) const { return evaluate(program, frame_.slots, &plan_.slots); }
  void values(const std::vector<ScalarProgram>& programs, std::vector<int64_t>& out) const {
    out.clear();
    for (const ScalarProgram& program : programs) out.push_back(value(program));
  }
  const BufferState& buffer(int64_t id) const {
    const BufferState& state = frame_.buffers[static_cast<size_t>(id)];
    HELVE_CHECK(state.ready, fmt::format("buffer {} is used before its Allocate", id));
    return state;
  }

  void step(const Check& s) {
    if (evaluate_defined(s.condition, frame_.slots).value_or(0) == 0) fail(s);
  }

  [[noreturn]] void fail(const Check& s) const {
    Diagnostic fault = s.fault;
    std::string all;
    for (const CheckValue& each : s.values) {
      const int64_t known = value(each.value);
      fault.args.emplace_back(each.name, known);
      all += fmt::format("{}{}={}", all.empty() ? "" : ", ", each.name, known);
    }
    fault.args.emplace_back("values", all);
    throw UserError(std::move(fault));
  }

  void step(const Allocate& s) {
    const size_t index = static_cast<size_t>(s.buffer) - plan_.params.size();
    const BufferDecl& decl = plan_.buffers[index];
    const int64_t elements = value(decl.elements);
    if (elements < 0) {
      throw UserError(
          Code::BufferSize, {},
          {{"buffer", decl.name}, {"elements", elements}, {"expression", to_text(decl.elements, &plan_.slots)}});
    }
    // Sizes are computed in 128 bits: what does not fit memory is reported with its true size.
    const __int128 bytes = static_cast<__int128>(elements) * element_bytes(decl.dtype);
    const __int128 stride = (bytes + kInstanceAlignment - 1) / kInstanceAlignment * kInstanceAlignment;
    const __int128 total = decl.per_core ? stride * core_count(plan_) : bytes;
    constexpr __int128 kLimit = int64_t{1} << 62;
    const int64_t size = static_cast<int64_t>(std::min(std::max<__int128>(total, 1), kLimit));
    if (total > kLimit || !frame_.blocks[index].reserve(size, std::max(decl.alignment, kInstanceAlignment))) {
      const std::string text =
          total > kLimit ? fmt::format("more than {}", static_cast<int64_t>(kLimit)) : fmt::format("{}", size);
      throw UserError(Code::OutOfMemory, {}, {{"buffer", decl.name}, {"bytes", text}});
    }
    frame_.buffers[static_cast<size_t>(s.buffer)] = {frame_.blocks[index].data(),
                                                     decl.per_core ? static_cast<int64_t>(stride) : 0, 0,
                                                     static_cast<int64_t>(bytes), true};
  }

  void step(const Launch& s) {
    const int64_t blocks = value(s.blocks);
    if (blocks <= 0) return;
    frame_.pointers.clear();
    values(s.scalars, frame_.scalars);
    for (int64_t id : s.buffers) {
      const BufferState& state = buffer(id);
      frame_.pointers.push_back(state.base);
      if (is_per_core(id)) frame_.scalars.push_back(state.stride);
    }
    const KernelEntry entry = kernels_[static_cast<size_t>(s.kernel)];
    auto task = [this, entry, &s](int64_t begin, int64_t end, int) {
      ScratchLease scratch(s.scratch_bytes);
      entry(frame_.pointers.data(), frame_.scalars.data(), begin, end, scratch.data());
    };
    if (blocks <= s.grain) return task(0, blocks, 0);
    parallel_for(blocks, s.grain, task, &poll_);
  }

  bool is_per_core(int64_t id) const {
    const auto index = static_cast<size_t>(id);
    return index >= plan_.params.size() && plan_.buffers[index - plan_.params.size()].per_core;
  }

  void step(const Collective& s) {
    CollectiveRequest request;
    request.poll = &poll_;
    request.mesh = plan_.mesh;
    request.axes = s.axes;
    if (s.kind == CollectiveKind::Barrier) return communicator_.run(s.kind, request);
    values(s.extents, frame_.extents);
    values(s.src_strides, frame_.src_strides);
    values(s.dst_strides, frame_.dst_strides);
    const BufferState &src = buffer(s.src), &dst = buffer(s.dst);
    request.dtype = s.dtype;
    request.op = s.op;
    request.src = {src.base, src.stride};
    request.dst = {dst.base, dst.stride};
    request.src_offset = value(s.src_offset);
    request.dst_offset = value(s.dst_offset);
    request.extents = frame_.extents;
    request.src_strides = frame_.src_strides;
    request.dst_strides = frame_.dst_strides;
    request.member_stride_src = value(s.member_stride_src);
    request.member_stride_dst = value(s.member_stride_dst);
    request.root = value(s.root);
    request.peers = s.peers;
    const int64_t members = group_size(plan_.mesh, s.axes);
    const bool strided_src = s.kind == CollectiveKind::ReduceScatter || s.kind == CollectiveKind::AllToAll;
    const bool strided_dst = s.kind == CollectiveKind::AllGather || s.kind == CollectiveKind::AllToAll;
    check_box(src, request.src_offset, frame_.extents, frame_.src_strides, strided_src ? members : 1,
              request.member_stride_src, s);
    check_box(dst, request.dst_offset, frame_.extents, frame_.dst_strides, strided_dst ? members : 1,
              request.member_stride_dst, s);
    communicator_.run(s.kind, request);
  }

  /// A box outside its buffer is a fault of whoever built the plan, and would overwrite foreign memory.
  static void check_box(const BufferState& state, int64_t offset, const std::vector<int64_t>& extents,
                        const std::vector<int64_t>& strides, int64_t members, int64_t member_stride,
                        const Collective& s) {
    __int128 low = offset, high = offset;
    for (size_t d = 0; d < extents.size(); ++d) {
      if (extents[d] <= 0) return;
      const __int128 reach = static_cast<__int128>(extents[d] - 1) * strides[d];
      (reach < 0 ? low : high) += reach;
    }
    const __int128 reach = static_cast<__int128>(members - 1) * member_stride;
    (reach < 0 ? low : high) += reach;
    const int64_t bytes = element_bytes(s.dtype);
    HELVE_CHECK(low * bytes >= state.low && (high + 1) * bytes <= state.high,
                fmt::format("the box of {} leaves its buffer", name_of(s.kind)));
  }

  void step(const Loop& s) {
    const int64_t begin = value(s.begin), extent = value(s.extent);
    for (int64_t i = 0; i < extent; ++i) {
      frame_.slots[static_cast<size_t>(s.slot)] = begin + i;
      steps(s.body);
    }
  }

  void step(const Branch& s) { steps(value(s.condition) != 0 ? s.then_steps : s.else_steps); }

  const Plan& plan_;
  const std::vector<KernelEntry>& kernels_;
  Communicator& communicator_;
  Frame& frame_;
  InterruptPoll& poll_;
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
    try {
      bind_arguments(plan_, tensors, scalars, *lease.frame);
      for (size_t b = plan_.params.size(); b < lease.frame->buffers.size(); ++b) lease.frame->buffers[b].ready = false;
      InterruptPoll poll(options.interrupt);
      Run(plan_, kernels_, *communicator_, *lease.frame, poll).steps(plan_.steps);
    } catch (const UserError& error) {
      if (error.diagnostic().span.known() || !options.span.known()) throw;
      Diagnostic located = error.diagnostic();
      located.span = options.span;
      throw UserError(std::move(located));
    }
  }

  const Plan& plan() const { return plan_; }

  void release_memory() {
    std::lock_guard<std::mutex> lock(mutex_);
    free_.clear();
  }

 private:
  /// A frame of this call's own; the last one given back is taken first, as its memory is warm.
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
