// Processes of tests: threads of this process, with mailboxes in place of a network.
// Messages are as late as the test says, and a process may die.
#pragma once

#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "helve/runtime/carrier.h"
#include "helve/runtime/process_group.h"

namespace helve::runtime::test {

/// What the threads share.
class Network {
 public:
  explicit Network(int64_t size) : size(size), dead(static_cast<size_t>(size)) {}

  const int64_t size;
  std::mutex mutex;
  std::map<std::pair<int64_t, int64_t>, std::deque<std::vector<std::byte>>> mail;  ///< by sender and receiver
  std::vector<std::atomic<bool>> dead;
  std::atomic<int64_t> messages{0};
  std::atomic<int64_t> bytes{0};
};

class ThreadTransmission final : public Transmission {
 public:
  ThreadTransmission(Network& network, int64_t rank, std::span<const Message> receives)
      : network_(network), rank_(rank), open_(receives.begin(), receives.end()) {}

  size_t advance() override {
    if (turns_-- > 0) return open_.size() + 1;
    const std::lock_guard<std::mutex> lock(network_.mutex);
    std::vector<int64_t> blocked;  // of which an earlier message has not come
    std::vector<Message> left;
    for (const Message& each : open_) {
      auto& box = network_.mail[{each.peer, rank_}];
      if (std::ranges::find(blocked, each.peer) == blocked.end() && !box.empty()) {
        const std::vector<std::byte> message = std::move(box.front());
        box.pop_front();
        if (static_cast<int64_t>(message.size()) != each.bytes) throw CarrierFault{each.peer, "another length"};
        std::ranges::copy(message, each.data);
        continue;
      }
      if (network_.dead[static_cast<size_t>(each.peer)]) throw CarrierFault{each.peer, "it is dead"};
      blocked.push_back(each.peer);
      left.push_back(each);
    }
    open_ = std::move(left);
    return open_.size();
  }

  std::vector<int64_t> awaited() const override {
    std::vector<int64_t> out;
    for (const Message& each : open_) out.push_back(each.peer);
    std::ranges::sort(out);
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
  }

  void delay(int turns) { turns_ = turns; }

 private:
  Network& network_;
  int64_t rank_;
  std::vector<Message> open_;
  int turns_ = 0;
};

class ThreadCarrier final : public Carrier {
 public:
  ThreadCarrier(Network& network, int64_t rank)
      : network_(network), rank_(rank), random_(static_cast<unsigned>(rank)) {}

  int64_t rank() const override { return rank_; }
  int64_t size() const override { return network_.size; }
  std::unique_ptr<Transmission> start(std::span<const Message> sends, std::span<const Message> receives) override {
    {
      const std::lock_guard<std::mutex> lock(network_.mutex);
      for (const Message& each : sends) {
        network_.mail[{rank_, each.peer}].emplace_back(each.data, each.data + each.bytes);
        ++network_.messages;
        network_.bytes += each.bytes;
      }
    }
    auto out = std::make_unique<ThreadTransmission>(network_, rank_, receives);
    out->delay(static_cast<int>(random_() % 4));
    return out;
  }

 private:
  Network& network_;
  int64_t rank_;
  std::minstd_rand random_;
};

/// Runs `code(group)` on as many threads as the network has processes; what one throws stays in its place.
inline std::vector<std::exception_ptr> on_processes(Network& network, ProcessGroup::Options options,
                                                    const std::function<void(ProcessGroup&)>& code) {
  std::vector<std::exception_ptr> out(static_cast<size_t>(network.size));
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < network.size; ++rank) {
    threads.emplace_back([&, rank] {
      ProcessGroup group(std::make_unique<ThreadCarrier>(network, rank), options);
      try {
        code(group);
      } catch (...) {
        out[static_cast<size_t>(rank)] = std::current_exception();
      }
    });
  }
  for (std::thread& each : threads) each.join();
  return out;
}

}  // namespace helve::runtime::test
