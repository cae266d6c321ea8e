// The processor of this process and the machinery that makes code for it.
// Set up once: detection, target machines and the JIT session cost more than a small kernel.
#pragma once

#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/Target/TargetMachine.h>

#include <memory>
#include <string>

#include "arithmetic.h"

namespace helve::cpu {

/// What code is made for, detected at the first use.
struct HostTarget {
  std::string triple;
  std::string cpu;
  std::string features;
  std::string prefer_vector_width;  ///< bits, as the attribute wants it: those that passes plan for (target/machine.h)
  Features arithmetic;

  std::string text() const { return triple + " " + cpu + " " + features; }
};
/// This processor, or (not native) the baseline of its architecture.
const HostTarget& host_target(bool native);

/// A target machine for the use of one thread; goes back to a pool.
class MachineLease {
 public:
  MachineLease(bool native, int optimization);
  ~MachineLease();
  MachineLease(const MachineLease&) = delete;
  MachineLease& operator=(const MachineLease&) = delete;
  llvm::TargetMachine& operator*() const { return *machine_; }
  llvm::TargetMachine* get() const { return machine_.get(); }

 private:
  std::vector<std::unique_ptr<llvm::TargetMachine>>* home_;
  std::unique_ptr<llvm::TargetMachine> machine_;
};

/// The process's JIT session. Never destroyed: code may be released by destructors that run at exit.
llvm::orc::LLJIT& jit_session();

/// The value, or an InternalError with LLVM's message.
void check_llvm(llvm::Error error, const char* what);
template <class T>
T take(llvm::Expected<T> value, const char* what) {
  if (!value) check_llvm(value.takeError(), what);
  if constexpr (std::is_reference_v<T>) {
    return *value;
  } else {
    return std::move(*value);
  }
}

}  // namespace helve::cpu
