// What carries bytes from one process to another.
// Processes agree and wait in one place (process_group.h), whatever moves their messages: MPI, or threads in tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace helve::runtime {

/// Bytes for another process, or room for those from one.
struct Message {
  int64_t peer;
  std::byte* data;
  int64_t bytes;
};

/// Thrown where a message can neither arrive nor leave.
struct CarrierFault {
  int64_t peer;
  std::string reason;
};

/// Messages under way. The end of the object gives up those that have not arrived; their memory must last as long as
/// the process then.
class Transmission {
 public:
  virtual ~Transmission() = default;

  /// Moves what can be moved now; the number of messages that have not arrived or left. Throws CarrierFault.
  virtual size_t advance() = 0;
  /// The processes from which, or to which, messages have not moved, ascending.
  virtual std::vector<int64_t> awaited() const = 0;
};

class Carrier {
 public:
  virtual ~Carrier() = default;

  virtual int64_t rank() const = 0;
  virtual int64_t size() const = 0;
  /// Messages from one process to another arrive in the order in which they are started. Throws CarrierFault.
  virtual std::unique_ptr<Transmission> start(std::span<const Message> sends, std::span<const Message> receives) = 0;
};

}  // namespace helve::runtime
