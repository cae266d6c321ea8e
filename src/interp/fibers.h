// The roles of a block, which run by turns on one thread.
// A role runs until it waits for a ring, so that every order of what roles do is a choice of who goes on; a program
// whose roles are ordered by rings does the same in all of them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "scope.h"

namespace helve::interp {

class Fibers {
 public:
  /// `order`: 0: the first role that can goes on; 1: the last one; else one that is drawn, beginning with this seed.
  Fibers(Frame& frame, int64_t order);
  ~Fibers();
  Fibers(const Fibers&) = delete;
  Fibers& operator=(const Fibers&) = delete;

  /// Runs all of them to their ends. What one throws ends the others, and is thrown here.
  void run(const std::vector<std::function<void()>>& bodies);

  /// Called by one of them: others run until `ready` holds. False if none is left that could make it hold.
  bool await(const std::function<bool()>& ready);

 private:
  struct Fiber;
  void resume(Fiber& fiber);
  void suspend();
  Fiber* choose();
  static void enter();

  Frame& frame_;
  uint64_t draw_;
  int64_t order_;
  std::vector<std::unique_ptr<Fiber>> all_;
  Fiber* running_ = nullptr;
  bool stuck_ = false;     ///< all that are left wait for what does not come
  bool unwinding_ = false;  ///< one has thrown
};

}  // namespace helve::interp
