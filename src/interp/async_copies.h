// The asynchronous copies of one executor.
// They are numbered in the order in which they begin, and complete in that order, so that one number says which are
// unfinished.
#pragma once

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

  /// Completes all committed copies but the `pending` youngest.
  void wait(int64_t pending) {
    while (static_cast<int64_t>(committed_.size()) > pending) {
      completed_ = committed_.front().number;
      committed_.erase(committed_.begin());
    }
  }

  /// The number of the last complete copy.
  int64_t completed() const { return completed_; }
  bool is_complete(int64_t number) const { return number <= completed_; }

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
  Group open_;
  int64_t begun_ = 0;
  int64_t completed_ = 0;
};

}  // namespace helve::interp
