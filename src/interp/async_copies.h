// The asynchronous copies of one executor.
// They are numbered in the order in which they begin, and complete in that order, so that one number says which are
// unfinished, and another which have read their sources.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "helve/support/span.h"

namespace helve::interp {

struct Site;

/// A copy that an element takes part in. Numbers count from 1 on each core; 0 is no copy.
struct Flight {
  int64_t number = 0;
  int64_t core = 0;
  const Site* site = nullptr;
};

class AsyncCopies {
 public:
  /// Begins a copy, which no wait covers before the commit.
  int64_t begin(const Span& span) {
    if (open_.number == 0) open_.span = span;
    return open_.number = ++begun_;
  }

  /// What began since the last commit, if only nothing, is one copy; `span` is the place of the commit.
  void commit(const Span& span) {
    committed_.push_back({begun_, open_.number ? open_.span : span});
    open_ = {};
  }

  /// Begins a copy that is waited for at once, until it has read its source; no count includes it.
  int64_t begin_alone() { return ++begun_; }

  /// Completes all committed copies but the `pending` youngest; with `sources`, what they write to global memory stays
  /// on its way.
  void wait(int64_t pending, bool sources = false) {
    const int64_t count = static_cast<int64_t>(committed_.size()) - pending;
    if (count > 0) {
      const int64_t last = committed_[static_cast<size_t>(count) - 1].number;
      completed_ = std::max(completed_, last);
      finished_ = std::max(finished_, count);
      if (sources) return;
      arrived_ = last;
      committed_.erase(committed_.begin(), committed_.begin() + count);
      finished_ -= count;
    }
    if (!sources && committed_.empty() && !open_.number) arrived_ = begun_;
  }

  /// The kernel ends.
  void finish() {
    committed_.clear();
    finished_ = 0;
    completed_ = arrived_ = begun_;
  }

  /// The number of the last copy that is complete, what it writes to global memory aside.
  int64_t completed() const { return completed_; }
  bool is_complete(int64_t number) const { return number <= completed_; }
  /// The number of the last copy that has written global memory.
  int64_t arrived() const { return arrived_; }
  bool has_arrived(int64_t number) const { return number <= arrived_; }

  /// Where the oldest unfinished copy began; null where all are complete.
  const Span* unfinished() const {
    if (finished_ < static_cast<int64_t>(committed_.size())) return &committed_[static_cast<size_t>(finished_)].span;
    return open_.number ? &open_.span : nullptr;
  }

 private:
  /// Copies that complete together: up to this number.
  struct Group {
    int64_t number = 0;
    Span span;
  };
  std::vector<Group> committed_;  ///< that have not arrived
  int64_t finished_ = 0;  ///< of these, how many have been waited for, until their sources were read
  Group open_;
  int64_t begun_ = 0;
  int64_t completed_ = 0, arrived_ = 0;
};

}  // namespace helve::interp
