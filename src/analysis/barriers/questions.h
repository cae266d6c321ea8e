// Do two accesses of threads touch one element?
// What ranges of indices decide is decided by them; of the rest each question is put to isl once, and no access asks
// more of them than a fixed number, so that the work is in proportion to the program.
#pragma once

#include <unordered_map>

#include "access_table.h"
#include "helve/analysis/barriers.h"
#include "helve/arith/relation.h"

namespace helve::barriers {

/// What is known of two accesses that conflict if they meet.
enum class Meeting {
  Never,
  Somewhere,  ///< there are two threads that meet
  Perhaps,    ///< what data decides, or is not affine
  Undecided,  ///< the budget did not suffice
};

/// The questions of one function, with their answers.
class Questions {
 public:
  Questions(const FunctionRef& f, AccessTable& table);

  /// Variables that all accesses share are the kernel's now.
  void begin(const Kernel& kernel) { kernel_ = &kernel; }

  /// Does `a`, made earlier, meet `b` of another thread? Seen from the innermost loop around both; with `carried`, `a`
  /// is of an earlier iteration of that loop, which must be the innermost around `a`.
  Meeting ask(AccessId a, AccessId b, bool carried);

  const BarrierWork& work() const { return work_; }

 private:
  static bool conflict(const Access& a, const Access& b);
  bool places_apart(AccessId a, AccessId b, bool carried) const;

  FunctionRef function_;
  AccessTable& table_;
  const Kernel* kernel_ = nullptr;
  ExactEngine engine_;
  std::unordered_map<uint64_t, Meeting> answers_;
  std::unordered_map<AccessId, int> asked_;  ///< of isl, by the later access
  BarrierWork work_;
};

}  // namespace helve::barriers
