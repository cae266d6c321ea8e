// The asynchronous copies of one executor.
// Those of a queue are numbered in the order in which they begin, and complete in that order, so that for each queue
// one number says which are unfinished, and another which have read their sources.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "helve/support/span.h"

namespace helve::interp {

struct Site;

/// A copy: its number in its queue, from 1. The number 0 is no copy.
struct CopyNumber {
  int64_t number = 0;
  size_t queue = 0;

  explicit operator bool() const { return number != 0; }
  bool operator==(const CopyNumber&) const = default;
};

/// A copy that an element takes part in, on a core.
struct Flight {
  CopyNumber copy;
  int64_t core = 0;
  const Site* site = nullptr;
};

/// Which copies are complete.
struct Completed {
  /// Of a queue: the number of the last copy that is complete, what it writes to global memory aside, and of the last
  /// that has written it.
  struct Last {
    int64_t complete = 0;
    int64_t arrived = 0;
  };
  std::vector<Last> queues;

  bool contains(const CopyNumber& copy, bool arrives) const {
    if (!copy) return true;
    if (copy.queue >= queues.size()) return false;
    return copy.number <= (arrives ? queues[copy.queue].arrived : queues[copy.queue].complete);
  }
};

class AsyncCopies {
 public:
  /// Begins a copy, which no wait covers before the commit.
  CopyNumber begin(size_t queue, const Span& span) {
    Queue& q = at(queue);
    if (q.open.number == 0) q.open.span = span;
    return {q.open.number = ++q.begun, queue};
  }

  /// What began since the last commit, if only nothing, is one group; `span` is the place of the commit.
  void commit(size_t queue, const Span& span) {
    Queue& q = at(queue);
    q.committed.push_back({q.begun, q.open.number ? q.open.span : span});
    q.open = {};
  }

  /// Begins a copy that is waited for at once, until it has read its source; no count includes it.
  CopyNumber begin_alone(size_t queue) { return {++at(queue).begun, queue}; }

  /// Completes all committed groups but the `pending` youngest; with `sources`, what they write to global memory stays
  /// on its way.
  void wait(size_t queue, int64_t pending, bool sources = false) {
    Queue& q = at(queue);
    Completed::Last& last = completed_.queues[queue];
    const int64_t count = static_cast<int64_t>(q.committed.size()) - pending;
    if (count > 0) {
      const int64_t number = q.committed[static_cast<size_t>(count) - 1].number;
      last.complete = std::max(last.complete, number);
      q.finished = std::max(q.finished, count);
      if (sources) return;
      last.arrived = number;
      q.committed.erase(q.committed.begin(), q.committed.begin() + count);
      q.finished -= count;
    }
    if (!sources && q.committed.empty() && !q.open.number) last.arrived = q.begun;
  }

  /// The kernel ends.
  void finish() {
    for (size_t i = 0; i < queues_.size(); ++i) {
      Queue& q = queues_[i];
      q.committed.clear();
      q.finished = 0;
      completed_.queues[i] = {q.begun, q.begun};
    }
  }

  const Completed& completed() const { return completed_; }

  /// The first queue with unfinished copies, and where the oldest of them began; nothing where all are complete.
  std::optional<std::pair<size_t, Span>> unfinished() const {
    for (size_t i = 0; i < queues_.size(); ++i) {
      const Queue& q = queues_[i];
      const bool waits = q.finished < static_cast<int64_t>(q.committed.size());
      if (waits) return std::pair{i, q.committed[static_cast<size_t>(q.finished)].span};
      if (q.open.number) return std::pair{i, q.open.span};
    }
    return std::nullopt;
  }

 private:
  /// Copies that complete together: up to this number.
  struct Group {
    int64_t number = 0;
    Span span;
  };
  struct Queue {
    std::vector<Group> committed;  ///< that have not arrived
    int64_t finished = 0;  ///< of these, how many have been waited for, until their sources were read
    Group open;
    int64_t begun = 0;
  };

  Queue& at(size_t queue) {
    if (queue >= queues_.size()) {
      queues_.resize(queue + 1);
      completed_.queues.resize(queue + 1);
    }
    return queues_[queue];
  }

  std::vector<Queue> queues_;
  Completed completed_;
};

}  // namespace helve::interp
