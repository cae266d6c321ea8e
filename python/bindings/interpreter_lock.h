// Leaving and taking the interpreter lock. An interpreter that ends takes the lock for good: CPython before 3.14 ends a
// thread that still asks for it by unwinding its stack, which C++ destructors turn into an abort. Such a thread stays
// here instead, until the process is gone.
#pragma once

#include <pybind11/pybind11.h>

#include <cxxabi.h>
#include <unistd.h>

namespace helve::python {

/// Runs `take`, which takes the lock, or never returns.
template <class F>
void or_stay(F&& take) {
  try {
    take();
  } catch (abi::__forced_unwind&) {
    while (true) pause();
  }
}

/// Without the lock for as long as it lives; made by a thread that has it.
class Unlocked {
 public:
  Unlocked() : state_(PyEval_SaveThread()) {}
  ~Unlocked() {
    or_stay([this] { PyEval_RestoreThread(state_); });
  }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* state_;
};

/// With the lock for as long as it lives.
class Locked {
 public:
  Locked() {
    or_stay([this] { state_ = PyGILState_Ensure(); });
  }
  ~Locked() { PyGILState_Release(state_); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  PyGILState_STATE state_;
};

}  // namespace helve::python
