// The executor of plans on a CUDA device.
// Everything beyond a call's arguments is created once: code per device, memory per stream.
#include "helve/runtime/cuda/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <optional>

#include "arguments.h"
#include "call_place.h"
#include "collectives.h"
#include "device_frame.h"
#include "fault_memory.h"
#include "helve/support/diagnostic.h"
#include "plan_walker.h"
#include "program.h"
#include "staging.h"

namespace helve::runtime::cuda {

namespace {

constexpr const char* kWarmUp = "call the kernel once with arguments of these shapes before capturing";

[[noreturn]] void forbid(const Plan& plan, std::string action, std::string remedy) {
  throw UserError(Code::ForbiddenInCapture, {},
                  {{"kernel", plan.name}, {"action", std::move(action)}, {"remedy", std::move(remedy)}});
}

/// Steps on a device: everything is enqueued on one stream.
class Run final : public PlanWalker<Run> {
 public:
  /// `unaligned` gives the program of the unaligned variant, which has no tensor maps.
  /// `communicator` may be null.
  Run(const Plan& plan, const Program& program, std::function<const Program&()> unaligned,
      DeviceCommunicator* communicator, DeviceFrame& frame, const Situation& where, InterruptPoll& poll)
      : PlanWalker(plan, frame, poll, communicator != nullptr ? communicator->cores() : std::span<const int64_t>()),
        program_(program),
        unaligned_(std::move(unaligned)),
        communicator_(communicator),
        device_frame_(frame),
        where_(where) {}

  std::byte* reserve(size_t index, int64_t bytes, int64_t alignment) {
    return memory(device_frame_.device_blocks[index], bytes, alignment);
  }

  /// One launch per range of blocks: kernels of a mesh get the number of their first core.
  void launch(const Launch& s) {
    for (const BlockRange& range : frame_.ranges) launch(s, range.begin, range.end - range.begin);
  }

  void launch(const Launch& s, int64_t first, int64_t blocks) {
    const bool aligned = is_aligned(s) && device_frame_.maps.make(plan_, s, frame_);
    const Program::Site& site = aligned ? program_.site(s) : unaligned_().site(s);
    if (blocks > kGridLimit) {
      throw UserError(Code::GridSize, {}, {{"kernel", s.name}, {"blocks", blocks}, {"limit", kGridLimit}});
    }
    HELVE_CHECK(blocks % s.cluster == 0, fmt::format("{} blocks in clusters of {}", blocks, s.cluster));
    std::vector<void*>& parameters = device_frame_.parameters;
    parameters.clear();
    for (void*& pointer : frame_.pointers) parameters.push_back(&pointer);
    for (int64_t& scalar : frame_.scalars) parameters.push_back(&scalar);
    int64_t first_core = first / frame_.core_blocks;
    if (!plan_.mesh.empty()) parameters.push_back(&first_core);
    LaunchAttribute attributes[2];
    unsigned count = 0;
    if (s.cluster > 1) {
      attributes[count] = {kLaunchClusterDimension, 0, {}};
      attributes[count].cluster[0] = static_cast<unsigned>(s.cluster);
      attributes[count].cluster[1] = attributes[count].cluster[2] = 1;
      ++count;
    }
    std::byte* workspace = nullptr;
    if (s.cooperative) {
      workspace = zeroed_workspace(s, site, blocks);
      parameters.push_back(&workspace);
      attributes[count] = {kLaunchCooperative, 0, {}};
      attributes[count++].cooperative = 1;
    }
    int64_t* fault = nullptr;
    if (has_faults(s.reports)) {
      fault = device_frame_.faults->of(s);
      parameters.push_back(&fault);
    }
    for (size_t i = 0; aligned && i < s.maps.size(); ++i) parameters.push_back(&device_frame_.maps.find(s.maps[i]));
    const LaunchConfig config{{static_cast<unsigned>(blocks), 1, 1},
                              {static_cast<unsigned>(site.threads), 1, 1},
                              static_cast<unsigned>(s.shared_bytes),
                              where_.stream,
                              attributes,
                              count};
    driver().launch(&config, site.function, parameters.data(), nullptr);
  }

  void communicate(const Collective& s, const CollectiveRequest& request) {
    if (communicator_ != nullptr) {
      const int64_t bytes = communicator_->room_of(s.kind, request);
      std::byte* room = bytes > 0 ? needed(device_frame_.exchanged, bytes, "exchanged elements") : nullptr;
      return communicator_->run(s.kind, request, room, where_.stream, where_.captured);
    }
    if (s.kind == CollectiveKind::Barrier) return;  // the stream orders the steps
    const ExchangeSize size = exchange_size(s, request);
    std::byte* exchange = nullptr;
    if (size.exchange_bytes > 0) exchange = needed(device_frame_.exchanged, size.exchange_bytes, "exchanged elements");
    launch_collective(request, size, exchange, program_.collective(s), where_.device, where_.stream);
  }

  void fetch(std::byte* to, std::span<const std::byte* const> places, int64_t bytes) {
    if (where_.captured) {
      forbid(plan_, "decides by a value of the device what comes next", "leave this call out of the captured graph");
    }
    for (const std::byte* place : places) {
      driver().copy_to_host(to, reinterpret_cast<DeviceAddress>(place), static_cast<size_t>(bytes), where_.stream);
      to += bytes;
    }
    wait_for(where_.stream, poll_);
    if (device_frame_.faults) device_frame_.faults->throw_fault();  // before what it left decides anything
  }

 private:
  /// Do the buffers of the launch have the alignments that the aligned variant requires?
  bool is_aligned(const Launch& s) const {
    for (size_t i = 0; i < s.alignments.size(); ++i) {
      if (reinterpret_cast<uintptr_t>(frame_.pointers[i]) % static_cast<uintptr_t>(s.alignments[i]) != 0) return false;
    }
    return true;
  }

  std::byte* memory(DeviceBlock& block, int64_t bytes, int64_t alignment) {
    if (where_.captured && !block.fits(bytes, alignment)) {
      forbid(plan_, fmt::format("allocates {} bytes", bytes), kWarmUp);
    }
    return block.reserve(bytes, alignment) ? block.data() : nullptr;
  }

  std::byte* needed(DeviceBlock& block, int64_t bytes, const char* what) {
    std::byte* base = memory(block, bytes, kInstanceAlignment);
    if (base == nullptr) {
      throw UserError(Code::OutOfMemory, {}, {{"buffer", std::string(what)}, {"bytes", fmt::format("{}", bytes)}});
    }
    return base;
  }

  std::byte* zeroed_workspace(const Launch& s, const Program::Site& site, int64_t blocks) {
    if (blocks > site.resident) {
      throw UserError(
          Code::ResidentBlocks, {},
          {{"kernel", s.name}, {"blocks", blocks}, {"limit", site.resident}, {"device", where_.device.text()}});
    }
    const int64_t bytes = s.barrier_words * 4;
    std::byte* base = needed(device_frame_.workspace, bytes, "workspace");
    driver().fill_bytes(reinterpret_cast<DeviceAddress>(base), 0, bytes, where_.stream);
    return base;
  }

  const Program& program_;
  const std::function<const Program&()> unaligned_;
  DeviceCommunicator* const communicator_;
  DeviceFrame& device_frame_;
  const Situation& where_;
};

/// The device of all arguments; nullopt if all are host arrays. UserError DeviceArgument, MixedDevices.
std::optional<int> device_of(const Plan& plan, std::span<const TensorArgument> tensors) {
  const auto is_cuda = [](DLDevice d) { return d.device_type == kDLCUDA || d.device_type == kDLCUDAManaged; };
  const auto name = [&](size_t p) {
    return p < plan.params.size() ? plan.params[p].name : fmt::format("argument {}", p);
  };
  for (size_t p = 0; p < tensors.size(); ++p) {
    HELVE_CHECK(tensors[p].tensor != nullptr, "a call with a null tensor");
    const DLDevice given = tensors[p].tensor->device, first = tensors[0].tensor->device;
    if (!is_cuda(given) && !is_host_memory(given)) {
      throw UserError(Code::DeviceArgument, {},
                      {{"kernel", plan.name}, {"parameter", name(p)}, {"given", to_text(given)}});
    }
    if (is_cuda(given) != is_cuda(first) || (is_cuda(given) && given.device_id != first.device_id)) {
      throw UserError(Code::MixedDevices, {},
                      {{"first", name(0)},
                       {"second", name(p)},
                       {"first_device", to_text(first)},
                       {"second_device", to_text(given)}});
    }
  }
  if (tensors.empty() || !is_cuda(tensors[0].tensor->device)) return std::nullopt;
  return tensors[0].tensor->device.device_id;
}

/// The parts of a plan whose collectives a communicator does, in memory of the calls.
PlanParts without_collectives(PlanParts parts) {
  parts.collectives.clear();
  parts.allocates = true;
  return parts;
}

/// A call between processes, while it lasts.
class CallOfCores {
 public:
  CallOfCores(DeviceCommunicator* communicator, const Plan& plan, const Situation& where, InterruptPoll& poll)
      : communicator_(communicator) {
    if (communicator_ != nullptr) communicator_->begin_call(plan, where.device, where.captured, poll);
  }
  CallOfCores(const CallOfCores&) = delete;
  CallOfCores& operator=(const CallOfCores&) = delete;
  ~CallOfCores() {
    if (communicator_ != nullptr) communicator_->end_call(is_well_);
  }
  void succeed() { is_well_ = true; }

 private:
  DeviceCommunicator* const communicator_;
  bool is_well_ = false;
};

void verify_launches(const PlanParts& parts) {
  for (const Launch* launch : parts.launches) {
    HELVE_CHECK(launch->threads > 0, fmt::format("launch {} has no threads", launch->name));
  }
}

}  // namespace

class Executor::Impl {
 public:
  Impl(Plan plan, Cubin cubin, std::vector<std::string> kernels, const CompileOptions& toolchain,
       std::function<Cubin()> unaligned, std::shared_ptr<DeviceCommunicator> communicator)
      : plan_(std::move(plan)),
        communicator_(std::move(communicator)),
        parts_(communicator_ != nullptr ? without_collectives(parts_of(plan_)) : parts_of(plan_)),
        compile_unaligned_(std::move(unaligned)) {
    verify(plan_, static_cast<int64_t>(kernels.size()));
    verify_launches(parts_);
    if (!parts_.collectives.empty()) {
      code_.collectives =
          compile_cubin(collective_source(plan_.mesh, parts_.collectives), "collectives.cu", cubin.arch, toolchain);
    }
    code_.kernels = std::move(cubin);
    code_.names = std::move(kernels);
  }

  void call(std::span<const TensorArgument> tensors, std::span<const ScalarArgument> scalars, CudaStream stream,
            const CallOptions& options) {
    report_at(options.span, [&] {
      const std::optional<int> given = device_of(plan_, tensors);
      run(tensors, scalars, {device(given.value_or(0)), stream}, !given && !tensors.empty(), options);
    });
  }

  const Plan& plan() const { return plan_; }
  const Cubin& cubin() const { return code_.kernels; }
  void release_memory() { frames_.clear(); }

 private:
  void run(std::span<const TensorArgument> tensors, std::span<const ScalarArgument> scalars, Situation where,
           bool staged, const CallOptions& options) {
    const ContextScope context(where.device);
    const std::shared_ptr<const FaultMemory> faults = fault_memory();
    if (faults) faults->throw_fault();  // of an earlier call, which had returned before it ran
    const bool holds_memory = parts_.allocates || staged;
    if (holds_memory) look_at(where);
    if (staged && where.captured) forbid(plan_, "copies host arrays", "pass tensors of the device");
    InterruptPoll poll(options.interrupt);
    CallOfCores during(communicator_.get(), plan_, where, poll);
    Lease lease(*this, where, holds_memory);
    DeviceFrame& frame = *lease.frame;
    bind_arguments(plan_, tensors, scalars, where.device.multiprocessors, frame, ArgumentMemory::Anywhere);
    frame.may_have_written = options.may_have_written;
    frame.faults = faults;
    for (size_t b = plan_.params.size(); b < frame.buffers.size(); ++b) frame.buffers[b].ready = false;
    const Program& program = program_on(where);
    std::optional<Staging> staging;
    if (staged) staging.emplace(plan_, frame, where.stream);
    const auto unaligned = [&]() -> const Program& { return unaligned_program_on(where); };
    try {
      Run(plan_, program, unaligned, communicator_.get(), frame, where, poll).steps(plan_.steps);
      if (staging) staging->finish(poll);
      during.succeed();
    } catch (const UserError& error) {
      // What a program asserts explains a fault of the device that comes of it.
      if (faults && error.diagnostic().code == Code::CudaCallFailed) faults->throw_fault();
      throw;
    }
    if (staged && faults) faults->throw_fault();
  }

  /// Made at the first call, on a machine that has a driver.
  std::shared_ptr<const FaultMemory> fault_memory() {
    if (!can_fail_) return nullptr;
    std::lock_guard<std::mutex> lock(programs_mutex_);
    if (faults_ == nullptr) faults_ = FaultMemory::of(parts_.launches);
    return faults_;
  }

  /// Identifies the stream, and whether it is captured. Handles are reused for later streams, ids are not; the id of a
  /// captured stream must not be queried, but its handle is unique during the capture.
  static void look_at(Situation& where) {
    const Driver& cuda = driver();
    int status = 0;
    cuda.stream_capture_info(where.stream, &status, &where.capture_id, &where.graph, nullptr, nullptr);
    where.captured = status != 0;
    if (where.captured) {
      where.stream_id = reinterpret_cast<uintptr_t>(where.stream);
    } else {
      cuda.stream_get_id(where.stream, &where.stream_id);
    }
  }

  using Programs = std::map<int, std::unique_ptr<Program>>;  ///< by device

  const Program& program_on(const Situation& where) {
    std::lock_guard<std::mutex> lock(programs_mutex_);
    return loaded(programs_, where, [&] { return std::make_unique<Program>(code_, parts_, where.device); });
  }

  /// The unaligned variant of the kernels. The collectives are those of the first program.
  const Program& unaligned_program_on(const Situation& where) {
    std::lock_guard<std::mutex> lock(programs_mutex_);
    return loaded(unaligned_programs_, where, [&] {
      HELVE_CHECK(compile_unaligned_, "a launch has alignments or tensor maps, and no kernel does without them");
      if (unaligned_code_.kernels.bytes.empty()) unaligned_code_ = {compile_unaligned_(), code_.names, {}};
      return std::make_unique<Program>(unaligned_code_, PlanParts{parts_.launches, {}, true, false}, where.device);
    });
  }

  const Program& loaded(Programs& programs, const Situation& where,
                        const std::function<std::unique_ptr<Program>()>& load) {
    std::unique_ptr<Program>& slot = programs[where.device.ordinal];
    if (slot != nullptr) return *slot;
    Situation now = where;
    look_at(now);
    if (now.captured) forbid(plan_, "loads its code", kWarmUp);
    slot = load();
    return *slot;
  }

  /// A frame of this call's own.
  struct Lease {
    Lease(Impl& impl, const Situation& situation, bool memory)
        : owner(impl), where(situation), holds_memory(memory), frame(impl.frames_.take(impl.plan_, situation)) {}
    ~Lease() { owner.frames_.give(std::move(frame), where, holds_memory); }
    Impl& owner;
    const Situation& where;
    bool holds_memory;
    std::unique_ptr<DeviceFrame> frame;
  };

  const Plan plan_;
  const std::shared_ptr<DeviceCommunicator> communicator_;  ///< may be null
  const PlanParts parts_;  ///< points into plan_
  Binary code_;
  std::mutex programs_mutex_;
  Programs programs_;
  Programs unaligned_programs_;
  const std::function<Cubin()> compile_unaligned_;
  Binary unaligned_code_;  ///< compiled when a call needs it
  const bool can_fail_ = std::any_of(parts_.launches.begin(), parts_.launches.end(),
                                     [](const Launch* launch) { return has_faults(launch->reports); });
  std::shared_ptr<const FaultMemory> faults_;
  FramePool frames_;
};

Executor::Executor(Plan plan, Cubin cubin, std::vector<std::string> kernels, const CompileOptions& toolchain,
                   std::function<Cubin()> unaligned, std::shared_ptr<DeviceCommunicator> communicator)
    : impl_(std::make_unique<Impl>(std::move(plan), std::move(cubin), std::move(kernels), toolchain,
                                   std::move(unaligned), std::move(communicator))) {}
Executor::~Executor() = default;

void Executor::call(std::span<const TensorArgument> tensors, std::span<const ScalarArgument> scalars, CudaStream stream,
                    const CallOptions& options) const {
  impl_->call(tensors, scalars, stream, options);
}

const Plan& Executor::plan() const { return impl_->plan(); }
const Cubin& Executor::cubin() const { return impl_->cubin(); }
void Executor::release_memory() const { impl_->release_memory(); }

}  // namespace helve::runtime::cuda
