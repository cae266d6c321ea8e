// Communicators of the world, and calls that end.
// NCCL's own non-blocking communicators start a thread for every call; here only what may wait for others, the first
// use of each connection, has one, and later calls put their work on the stream at once.
#include "helve/runtime/nccl/nccl_world.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <exception>
#include <thread>

#include "helve/support/diagnostic.h"
#include "watch.h"

namespace helve::runtime::nccl {

namespace {

constexpr auto kLook = std::chrono::milliseconds(5);
constexpr auto kAfterAbort = std::chrono::seconds(2);  ///< in which a call that was aborted returns
constexpr double kSecondsOfEnd = 5;
constexpr int kTurnsOfLock = 1000;

/// A call on a thread of its own.
struct Errand {
  std::function<void()> code;
  std::mutex mutex;
  std::condition_variable over;
  bool is_over = false;
  std::exception_ptr fault;

  void run() {
    std::exception_ptr thrown;
    try {
      code();
    } catch (...) {
      thrown = std::current_exception();
    }
    const std::lock_guard<std::mutex> lock(mutex);
    fault = thrown;
    is_over = true;
    over.notify_all();
  }

  template <class Duration>
  bool wait(Duration time) {
    std::unique_lock<std::mutex> lock(mutex);
    return over.wait_for(lock, time, [&] { return is_over; });
  }
};

std::shared_ptr<Errand> send_errand(std::function<void()> code) {
  auto out = std::make_shared<Errand>();
  out->code = std::move(code);
  std::thread([out] { out->run(); }).detach();
  return out;
}

template <class T>
Message message_of(int64_t peer, T& value) {
  return {peer, reinterpret_cast<std::byte*>(&value), sizeof value};
}

}  // namespace

NcclWorld::NcclWorld(std::shared_ptr<ProcessGroup> processes, std::vector<std::string> paths, double timeout)
    : processes_(std::move(processes)), paths_(std::move(paths)), timeout_(timeout) {}

void NcclWorld::take(int ordinal) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (ordinal_ < 0) ordinal_ = ordinal;
  if (ordinal_ == ordinal) return;
  throw UserError(Code::PartDevice, {},
                  {{"rank", processes_->rank()},
                   {"given", fmt::format("cuda:{}", ordinal)},
                   {"expected", fmt::format("cuda:{}, where its first one was", ordinal_)},
                   {"remedy", fmt::format("keep one GPU for a process, by torch.cuda.set_device({0}) or "
                                          "CUDA_VISIBLE_DEVICES, or pass tensor.to('cuda:{0}')",
                                          ordinal_)}});
}

NcclWorld::~NcclWorld() = default;

void NcclWorld::check(const char* function, NcclResult result, NcclComm comm) const {
  if (result == kNcclSuccess || result == kNcclInProgress) return;
  const char* last = library().get_last_error(comm);
  const std::string more = last != nullptr ? last : "";
  throw UserError(Code::NcclCallFailed, {},
                  {{"call", std::string(function)},
                   {"rank", processes_->rank()},
                   {"result", std::string(library().get_error_string(result))},
                   {"text", more.empty() ? std::string("NCCL says no more") : more}});
}

void NcclWorld::call(const std::string& what, bool may_wait, InterruptPoll& poll, const std::function<void()>& code) {
  if (!may_wait) {
    const cuda::ContextScope scope(device());
    return code();
  }
  const std::shared_ptr<Errand> errand = send_errand([code, &gpu = device()] {
    const cuda::ContextScope scope(gpu);
    code();
  });
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(timeout_);
  while (!errand->wait(kLook)) {
    const bool is_late = std::chrono::steady_clock::now() >= end;
    if (!is_late && !(poll.active() && poll.requested())) continue;
    abort();
    errand->wait(kAfterAbort);
    if (is_late) fail_late(what, poll);
    processes_->break_off("an interrupt");
    poll.throw_if_requested();
  }
  if (errand->fault) std::rethrow_exception(errand->fault);
}

UserError NcclWorld::late(const std::string& what, const std::string& reason) const {
  return UserError(Code::DeviceStepLate, {},
                   {{"what", what},
                    {"rank", processes_->rank()},
                    {"seconds", fmt::format("{:g}", timeout_)},
                    {"reason", reason},
                    {"remedy", "run it with NCCL_DEBUG=WARN; if it only takes longer, set HELVE_COMM_TIMEOUT to more "
                               "seconds"}});
}

void NcclWorld::fail_late(const std::string& what, InterruptPoll& poll) {
  // Who does not come to this step, and is no dead one, is what the others wait for.
  processes_->begin(step_of(what + ", which did not end"), poll, ProcessGroup::Part::Takes, true);
  processes_->break_off("HV0431");
  throw late(what, "all processes wait in it");
}

void NcclWorld::abort() {
  std::vector<NcclComm> all;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    all.swap(all_);
    of_.clear();
  }
  for (NcclComm each : all) library().comm_abort(each);
}

NcclResult NcclWorld::async_error() {
  const std::lock_guard<std::mutex> lock(mutex_);  // another thread may give the communicators up
  NcclResult error = kNcclSuccess;
  if (!all_.empty()) library().comm_get_async_error(all_.front(), &error);
  return error;
}

void NcclWorld::check_devices(InterruptPoll& poll) {
  const auto size = static_cast<size_t>(processes_->size()), me = static_cast<size_t>(processes_->rank());
  const auto known = std::make_shared<std::vector<cuda::DeviceUuid>>(size);
  cuda::driver().device_get_uuid(&(*known)[me], ordinal_);
  std::vector<Message> sends, receives;
  for (size_t other = 0; other < size; ++other) {
    if (other == me) continue;
    sends.push_back(message_of(static_cast<int64_t>(other), (*known)[me]));
    receives.push_back(message_of(static_cast<int64_t>(other), (*known)[other]));
  }
  processes_->run(
      step_of("the GPUs of the processes"), poll, [&] { processes_->exchange(sends, receives, known, poll); }, {},
      true);
  for (size_t second = 1; second < size; ++second) {
    for (size_t first = 0; first < second; ++first) {
      if (std::memcmp(&(*known)[first], &(*known)[second], sizeof(cuda::DeviceUuid)) != 0) continue;
      throw UserError(Code::SharedDevice, {},
                      {{"first", static_cast<int64_t>(first)},
                       {"second", static_cast<int64_t>(second)},
                       {"device", device().text()},
                       {"rank", processes_->rank()}});
    }
  }
}

void NcclWorld::connect(InterruptPoll& poll) {
  const ProcessStep step = step_of("the connection of the GPUs");
  try {
    library();
    device();
  } catch (const UserError&) {
    try {
      processes_->begin(step, poll, ProcessGroup::Part::Refuses, true);
    } catch (const UserError&) {  // the own error is the one to be seen
    }
    throw;
  }
  processes_->begin(step, poll, ProcessGroup::Part::Takes, true);
  check_devices(poll);
  const auto id = std::make_shared<NcclUniqueId>();
  const int64_t size = processes_->size(), rank = processes_->rank();
  if (rank == 0) check("ncclGetUniqueId", library().get_unique_id(id.get()), nullptr);
  std::vector<Message> sends, receives;
  for (int64_t other = 1; rank == 0 && other < size; ++other) sends.push_back(message_of(other, *id));
  if (rank != 0) receives.push_back(message_of(0, *id));
  processes_->run(
      step_of("the name of NCCL's communicator"), poll, [&] { processes_->exchange(sends, receives, id, poll); }, {},
      true);
  const auto made = std::make_shared<NcclComm>(nullptr);
  call("ncclCommInitRank", true, poll, [this, id, made, size, rank] {
    NcclConfig config;
    check("ncclCommInitRank",
          library().comm_init_rank_config(made.get(), static_cast<int>(size), *id, static_cast<int>(rank), &config),
          nullptr);
  });
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    all_.push_back(*made);
  }
  watch_ = std::make_unique<Watch>(
      device(), timeout_,
      [this](const std::string& what) {
        std::string text;
        try {
          InterruptPoll nobody;
          if (what.empty()) {
            check("the work of NCCL", async_error(), nullptr);
            return;  // who gave the communicators up meanwhile says why
          }
          // Where this process is inside of another step, it has the lock and says itself what is wrong there.
          for (int turn = 0; turn < kTurnsOfLock && !processes_->mutex().try_lock(); ++turn) {
            if (turn + 1 == kTurnsOfLock) throw late(what, "this process is inside of another step");
            std::this_thread::sleep_for(kLook);
          }
          fail_late(what, nobody);
        } catch (const UserError& fault) {
          text = fault.what();
        }
        std::fprintf(stderr, "%s\nnote: process %lld ends here, since its GPU has not what comes after it\n",
                     text.c_str(), static_cast<long long>(processes_->rank()));
        std::fflush(nullptr);
        _exit(1);
      },
      [this]() -> std::string {
        const NcclResult error = async_error();
        return error == kNcclSuccess || error == kNcclInProgress ? "" : library().get_error_string(error);
      });
}

NcclComm NcclWorld::communicator(std::span<const int64_t> members, InterruptPoll& poll) {
  if (members.size() < 2) return nullptr;
  std::vector<int64_t> key(members.begin(), members.end());
  if (const auto known = of_.find(key); known != of_.end()) return known->second;
  if (all_.empty()) connect(poll);
  NcclComm out = all_.front();
  const bool is_world = static_cast<int64_t>(key.size()) == processes_->size() && std::ranges::is_sorted(key);
  if (!is_world) {
    const auto made = std::make_shared<NcclComm>(nullptr);
    const int color = static_cast<int>(*std::ranges::min_element(key));
    const int place = static_cast<int>(std::ranges::find(key, processes_->rank()) - key.begin());
    call("ncclCommSplit", true, poll, [this, made, color, place, world = out] {
      NcclConfig config;
      check("ncclCommSplit", library().comm_split(world, color, place, made.get(), &config), world);
    });
    out = *made;
    const std::lock_guard<std::mutex> lock(mutex_);
    all_.push_back(out);
  }
  return of_[std::move(key)] = out;
}

void NcclWorld::begin_step(cuda::CudaStream stream) {
  if (watch_ != nullptr) watch_->begin(stream);
}

void NcclWorld::end_step(const std::string& what, cuda::CudaStream stream) {
  if (watch_ != nullptr) watch_->end(what, stream);
}

void NcclWorld::end() {
  watch_.reset();
  if (processes_->is_broken()) return abort();
  std::vector<NcclComm> all;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    all.swap(all_);
    of_.clear();
  }
  if (all.empty()) return;
  // Another process may have ended in another way: then the end of this one does it.
  send_errand([all, &nccl = library(), &gpu = device()] {
    const cuda::ContextScope scope(gpu);
    for (size_t k = all.size(); k-- > 0;) nccl.comm_destroy(all[k]);
  })->wait(std::chrono::duration<double>(kSecondsOfEnd));
}

}  // namespace helve::runtime::nccl
