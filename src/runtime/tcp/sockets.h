// Connections and addresses of TCP, without exceptions: a call that fails says why.
// No call waits: who waits does so under a deadline, and asks for Ctrl-C meanwhile.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace helve::runtime::tcp {

/// A file descriptor that is closed at the end.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  ~Socket() { close(); }
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }

  int fd() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  void close();

 private:
  int fd_ = -1;
};

/// An address of a process.
struct Endpoint {
  sockaddr_storage storage = {};
  socklen_t length = 0;

  int family() const { return storage.ss_family; }
  bool is_loopback() const;
  uint16_t port() const;
  Endpoint with_port(uint16_t port) const;
  /// The same family and port, of any interface.
  Endpoint of_any_interface() const;
};

/// Splits "host:port" and "[host]:port". False for a text of another form.
bool split_address(const std::string& text, std::string& host, uint16_t& port);

/// Is the host this machine itself by its very name: "localhost", "127.0.0.1", "::1"?
bool names_loopback(const std::string& host);

/// The endpoints of a name; none with a reason.
std::vector<Endpoint> resolve(const std::string& host, uint16_t port, std::string& reason);

Endpoint local_end(const Socket& socket);
Endpoint remote_end(const Socket& socket);

/// Listens there; closed with a reason where it cannot.
Socket listen_at(const Endpoint& endpoint, std::string& reason);
/// The next connection, closed if there is none.
Socket accept_one(const Socket& listener);
/// Begins to connect; closed with a reason where that fails at once.
Socket begin_connection(const Endpoint& endpoint, std::string& reason);
/// Waits up to so many milliseconds for a connection that was begun: 1 connected, 0 not yet, -1 refused, with a reason.
int connection_state(const Socket& socket, int milliseconds, std::string& reason);

/// Waits until one can be read, or so many milliseconds.
void wait_readable(const std::vector<const Socket*>& sockets, int milliseconds);

/// Bytes that moved; 0: none now; -1: the connection is over.
int64_t receive_some(const Socket& socket, std::byte* data, int64_t bytes);
int64_t send_some(const Socket& socket, const std::byte* data, int64_t bytes);
/// Has the other side closed its end, with nothing left to read?
bool is_closed(const Socket& socket);

/// What errno means.
std::string error_text(int error);

}  // namespace helve::runtime::tcp
