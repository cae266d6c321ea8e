// Steps that processes do together.
// Process 0 is the referee: it gets the 16 bytes of each process, and answers all with one verdict, so that every one
// of them knows which process differs.
#include "helve/runtime/process_group.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>

#include <array>
#include <chrono>
#include <numeric>
#include <optional>
#include <thread>
#include <vector>

#include "helve/support/diagnostic.h"
#include "helve/support/sha256.h"

namespace helve::runtime {

namespace {

using Clock = std::chrono::steady_clock;

/// Lets answers leave that somebody waits for. Those who are late are not waited for: they may never come.
void settle(Transmission& answers) {
  constexpr int kTurns = 200;
  for (int turn = 0; turn < kTurns && answers.advance() > 0; ++turn)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

template <class T>
Message message_of(int64_t peer, T& value) {
  return {peer, reinterpret_cast<std::byte*>(&value), sizeof value};
}

std::string processes_text(const std::vector<int64_t>& ranks) {
  constexpr size_t kNamed = 8;
  const std::span<const int64_t> named(ranks.data(), std::min(ranks.size(), kNamed));
  return fmt::format("{} {}{}", ranks.size() == 1 ? "process" : "processes", fmt::join(named, ", "),
                     ranks.size() > kNamed ? fmt::format(" and {} more", ranks.size() - kNamed) : "");
}

}  // namespace

ProcessStep step_of(const std::string& text) {
  const auto digest = sha256(text);
  uint64_t hash = 0;
  for (size_t k = 0; k < sizeof hash; ++k) hash = hash << 8 | static_cast<uint8_t>(digest[k]);
  return {text, hash};
}

template <class F>
void ProcessGroup::or_broken(F&& code) {
  try {
    code();
  } catch (const CarrierFault& fault) {
    broken_by_ = "HV0421";
    throw UserError(Code::ProcessLost, {},
                    {{"other", fault.peer}, {"step", step_}, {"what", what_}, {"reason", fault.reason}});
  } catch (const UserError& error) {
    broken_by_ = error.diagnostic().code_text();
    throw;
  } catch (...) {
    broken_by_ = "an interrupt";
    throw;
  }
}

ProcessGroup::ProcessGroup(std::unique_ptr<Carrier> carrier, Options options)
    : carrier_(std::move(carrier)), options_(options), all_(static_cast<size_t>(carrier_->size())) {
  std::iota(all_.begin(), all_.end(), int64_t{0});
}

void ProcessGroup::require_size(int64_t devices) const {
  if (size() == devices) return;
  throw UserError(Code::ProcessCount, {}, {{"devices", devices}, {"processes", size()}, {"count", devices}});
}

void ProcessGroup::begin(const ProcessStep& step, InterruptPoll& poll, Part part, bool always,
                         std::span<const int64_t> members) {
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  require_whole();
  ++step_;
  if (members.empty()) ++steps_of_all_;
  what_ = step.what;
  const bool compares = (members.empty() ? size() : static_cast<int64_t>(members.size())) > 1;
  if (!compares || (!options_.check && !always)) return;
  std::optional<int64_t> refusing;
  or_broken([&] { refusing = agree(step, poll, part, members); });
  // All know it, and stand at one step. Where this process refuses, its own error is the one to be seen.
  if (refusing && part == Part::Takes) {
    throw UserError(Code::ProcessRefused, {},
                    {{"other", *refusing}, {"step", step_}, {"what", what_}, {"rank", rank()}});
  }
}

void ProcessGroup::run(const ProcessStep& step, InterruptPoll& poll, const std::function<void()>& body,
                       std::span<const int64_t> members, bool always) {
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  begin(step, poll, Part::Takes, always, members);
  or_broken(body);
}

void ProcessGroup::exchange(std::span<const Message> sends, std::span<const Message> receives,
                            std::shared_ptr<const void> memory, InterruptPoll& poll,
                            const std::function<void()>& meanwhile) {
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  require_whole();
  given_up_.push_back(std::move(memory));  // until it has ended well
  or_broken([&] {
    const std::unique_ptr<Transmission> messages = carrier_->start(sends, receives);
    if (meanwhile) meanwhile();
    await(*messages, options_.timeout, poll);
  });
  given_up_.pop_back();
}

bool ProcessGroup::is_broken() const {
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  return !broken_by_.empty();
}

void ProcessGroup::break_off(const std::string& after) {
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  if (broken_by_.empty()) broken_by_ = after;
}

void ProcessGroup::require_whole() const {
  if (broken_by_.empty()) return;
  throw UserError(Code::ProcessesBroken, {}, {{"rank", rank()}, {"error", broken_by_}, {"step", step_}});
}

ProcessGroup::Verdict ProcessGroup::judge(std::span<const int64_t> members, InterruptPoll& poll) {
  std::vector<Message> others;
  for (size_t k = 1; k < members.size(); ++k) others.push_back(message_of(members[k], records_[k]));
  const std::unique_ptr<Transmission> messages = carrier_->start({}, others);
  try {
    await(*messages, options_.timeout, poll, false);
  } catch (const UserError&) {
    return {Verdict::Late, messages->awaited().front()};
  } catch (const CarrierFault& fault) {
    return {Verdict::Lost, fault.peer};
  }
  for (size_t k = 0; k < members.size(); ++k) {
    if (records_[k].refuses != 0) return {Verdict::Refused, members[k]};
  }
  for (size_t k = 1; k < members.size(); ++k) {
    if (records_[k].hash != records_[0].hash || records_[k].step != records_[0].step)
      return {Verdict::Differs, members[k]};
  }
  return {};
}

std::optional<int64_t> ProcessGroup::agree(const ProcessStep& step, InterruptPoll& poll, Part part,
                                           std::span<const int64_t> members) {
  const auto number = static_cast<uint32_t>(members.empty() ? steps_of_all_ : 0);
  if (members.empty()) members = all_;
  const int64_t referee = members.front();
  // Records and verdicts are members, since messages that are given up may still be read.
  records_.resize(rank() == referee ? members.size() : 1);
  records_.front() = {step.hash, number, part == Part::Refuses};
  if (rank() == referee) {
    verdict_ = judge(members, poll);
    std::vector<Message> all;
    for (int64_t other : members) {
      const bool is_lost = verdict_.kind == Verdict::Lost && other == verdict_.process;
      if (other != referee && !is_lost) all.push_back(message_of(other, verdict_));
    }
    const std::unique_ptr<Transmission> answers = carrier_->start(all, {});
    if (verdict_.kind == Verdict::Agreed || verdict_.kind == Verdict::Refused) {
      await(*answers, options_.timeout, poll);
    } else {
      settle(*answers);
    }
  } else {
    const std::array told = {message_of(referee, records_.front())};
    const std::array answer = {message_of(referee, verdict_)};
    const std::unique_ptr<Transmission> messages = carrier_->start(told, answer);
    // The referee, which may come as late, then waits as long for another process, whose name is the better answer.
    await(*messages, options_.timeout * 2 + 0.5, poll);
  }
  const DiagnosticArgs known = {
      {"other", verdict_.process}, {"referee", referee}, {"step", step_}, {"what", what_}, {"rank", rank()}};
  switch (verdict_.kind) {
    case Verdict::Agreed: return std::nullopt;
    case Verdict::Refused: return verdict_.process;
    case Verdict::Differs: throw UserError(Code::ProcessesDiffer, {}, known);
    case Verdict::Lost: throw CarrierFault{verdict_.process, fmt::format("process {} does not reach it", referee)};
    case Verdict::Late: fail_late({verdict_.process}, referee, options_.timeout);
  }
  __builtin_unreachable();
}

void ProcessGroup::fail_late(const std::vector<int64_t>& others, int64_t waiting, double seconds) const {
  throw UserError(Code::ProcessLate, {},
                  {{"others", processes_text(others)},
                   {"step", step_},
                   {"what", what_},
                   {"rank", waiting},
                   {"seconds", fmt::format("{:g}", seconds)}});
}

void ProcessGroup::await(Transmission& messages, double seconds, InterruptPoll& poll, bool restarts) const {
  // A core that waits gives way at first, since the process it waits for may want it; later it sleeps.
  constexpr int kTurns = 20;  // without giving way
  constexpr int kYields = 2000;
  constexpr int kTurnsOfClock = 16;  // between looks at the clock
  const auto limit = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  size_t left = messages.advance();
  if (left == 0) return;
  Clock::time_point end = Clock::now() + limit;
  for (int turn = 0;; ++turn) {
    const size_t now = messages.advance();
    if (now == 0) return;
    if (now < left) {
      left = now;
      turn = 0;
      if (restarts) end = Clock::now() + limit;
    }
    if (turn > kYields) {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    } else if (turn > kTurns) {
      sched_yield();
    }
    if (turn % kTurnsOfClock != 0) continue;
    if (poll.active()) poll.throw_if_requested();
    if (Clock::now() < end) continue;
    fail_late(messages.awaited(), rank(), seconds);
  }
}

}  // namespace helve::runtime
