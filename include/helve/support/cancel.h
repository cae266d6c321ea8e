// Ending work for which nobody waits any more.
// A compile that its user interrupted goes on alone until it looks; looking costs a load, so that passes and exact
// questions can look often.
#pragma once

#include <atomic>
#include <exception>

namespace helve {

/// Ends abandoned work. Nobody sees it: whoever asked for the result has gone.
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

/// Whether nobody waits for the work of this thread.
bool is_cancelled();
/// Throws Cancelled where that is so.
void throw_if_cancelled();

}  // namespace helve
