// The coordinates of a thread's iterations as expressions.
// Every digit of a layout is either computed from the thread's number or is a loop over registers.
#pragma once

#include <optional>

#include "helve/arith/facts.h"
#include "helve/ir/tensor/stmt.h"
#include "helve/threads/thread_layout.h"

namespace helve {

/// The loops of one thread over its part of `extents` divided by a layout.
class Digits {
 public:
  Digits(const ThreadLayout& layout, const std::vector<Expr>& extents, const Expr& tx, const Facts& facts);

  const std::vector<Expr>& coords() const { return coords_; }
  /// The facts that hold inside the loops.
  const Facts& facts() const { return facts_; }
  /// The variable over the fastest registers if these are contiguous along the last dimension, else null.
  const VarRef& lane() const { return lane_; }
  int64_t lanes() const { return lanes_; }

  /// The number of a fragment's register: its dimension k is dimension dims[k] of the loop (-1: extent 1).
  Expr register_of(const ThreadLayout& fragment, const std::vector<int>& dims) const;

  /// `body` in all loops, guarded by the condition that the element exists. The lanes are a Vectorized loop, or an
  /// unrolled one unless `vector`.
  Stmt nest(const Stmt& body, bool vector) const;
  /// `body` in the loops over registers of the dimensions `kept`, without guards.
  Stmt register_nest(const Stmt& body, const std::vector<size_t>& kept) const;

 private:
  struct Loop {
    VarRef var;
    Expr extent;
    size_t dim;
    bool unrolled;
  };

  void add_dimension(size_t d, const Iters& iters, bool last);
  void add_guard(size_t d, const Expr& extent, int64_t domain, const std::optional<int64_t>& passes);
  Stmt vectorized(const Stmt& s, bool vector) const;
  Expr over_lanes(const Expr& condition) const;

  Expr tx_;
  int64_t threads_;
  Facts facts_;
  std::vector<Expr> coords_;
  std::vector<std::vector<Expr>> digits_;  ///< of each dimension, slowest first; null for those of threads
  std::vector<Loop> loops_;
  VarRef lane_;
  int64_t lanes_ = 1;
  Expr guard_;  ///< null: every iteration exists
};

/// The digit of an iter on `tx`; `threads` is the number of threads of the block.
Expr thread_digit(const Iter& iter, const Expr& tx, int64_t threads);

/// The condition that a thread is the first of those that hold the same elements; null if there are no others.
Expr is_first_replica(const ThreadLayout& layout, const Expr& tx, int64_t threads);

/// The number of threads of a layout.
int64_t threads_of(const ThreadLayout& layout);

}  // namespace helve
