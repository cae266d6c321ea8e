// The asynchronous copies of one executor.
// They are numbered in the order in which they begin, and complete in that order, so that one number says which are
// unfinished.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
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

  /// Completes all committed copies but the `pending` youngest, at an instant of the run.
  void wait(int64_t pending, int64_t time = 0) {
    const int64_t before = completed_;
    while (static_cast<int64_t>(committed_.size()) > pending) {
      completed_ = committed_.front().number;
      committed_.erase(committed_.begin());
    }
    if (completed_ != before) waits_.emplace_back(completed_, time);
  }

  bool is_complete(int64_t number) const { return number <= completed_; }

  /// When a complete copy was waited for.
  int64_t completed_at(int64_t number) const {
    const auto wait = std::lower_bound(waits_.begin(), waits_.end(), number,
                                       [](const auto& each, int64_t sought) { return each.first < sought; });
    return wait == waits_.end() ? 0 : wait->second;
  }

  /// Where the oldest unfinished copy began; null where all are complete.
  const Span* unfinished() const {
    if (!committed_.empty()) return &committed_.front().span;
    return open_.number ? &open_.span : nullptr;
  }

 private:
  /// Copies that complete together: up to this number.
  struct Group {
    int64_t number = 0;
    Span span;
  };
  std::vector<Group> committed_;
  std::vector<std::pair<int64_t, int64_t>> waits_;  ///< the last copy that each completed, and when
  Group open_;
  int64_t begun_ = 0;
  int64_t completed_ = 0;
};

}  // namespace helve::interp
