// Cancellation of work whose result is no longer needed.
// A compile that its user interrupted continues until it checks; a check costs a load, so that passes and exact queries
// can check often.
#pragma once

#include <atomic>
#include <exception>

namespace helve {

/// Ends cancelled work. Nobody receives it: the caller is gone.
struct Cancelled : std::exception {
  const char* what() const noexcept override { return "cancelled"; }
};

/// For as long as it lives, the work of this thread ends once `flag` is set.
class CancelScope {
 public:
  explicit CancelScope(const std::atomic<bool>& flag);
  ~CancelScope();
  CancelScope(const CancelScope&) = delete;
  CancelScope& operator=(const CancelScope&) = delete;

 private:
  const std::atomic<bool>* outer_;
};

/// Is the work of this thread cancelled?
bool is_cancelled();
/// Throws Cancelled if it is.
void throw_if_cancelled();

}  // namespace helve
