// Calls of the system for TCP.
// Interrupted calls are repeated, and no signal is raised where the other side is gone.
#include "sockets.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <system_error>

namespace helve::runtime::tcp {

namespace {

constexpr int kBacklog = 4096;

sockaddr* address_of(Endpoint& endpoint) { return reinterpret_cast<sockaddr*>(&endpoint.storage); }
const sockaddr* address_of(const Endpoint& endpoint) { return reinterpret_cast<const sockaddr*>(&endpoint.storage); }

sockaddr_in& four(Endpoint& endpoint) { return reinterpret_cast<sockaddr_in&>(endpoint.storage); }
const sockaddr_in& four(const Endpoint& endpoint) { return reinterpret_cast<const sockaddr_in&>(endpoint.storage); }
sockaddr_in6& six(Endpoint& endpoint) { return reinterpret_cast<sockaddr_in6&>(endpoint.storage); }
const sockaddr_in6& six(const Endpoint& endpoint) { return reinterpret_cast<const sockaddr_in6&>(endpoint.storage); }

Socket make_socket(int family, std::string& reason) {
  Socket out(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!out.is_open()) reason = error_text(errno);
  return out;
}

void set_option(const Socket& socket, int level, int option, int value) {
  setsockopt(socket.fd(), level, option, &value, sizeof value);
}

/// Small messages leave at once; a machine that is gone is noticed in the end.
void tune(const Socket& socket) {
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
}

bool may_come_later(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

}  // namespace

void Socket::close() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

bool Endpoint::is_loopback() const {
  if (family() == AF_INET) return (ntohl(four(*this).sin_addr.s_addr) >> 24) == 127;
  const in6_addr& address = six(*this).sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&address) || (IN6_IS_ADDR_V4MAPPED(&address) && address.s6_addr[12] == 127);
}

uint16_t Endpoint::port() const { return ntohs(family() == AF_INET ? four(*this).sin_port : six(*this).sin6_port); }

Endpoint Endpoint::with_port(uint16_t port) const {
  Endpoint out = *this;
  (family() == AF_INET ? four(out).sin_port : six(out).sin6_port) = htons(port);
  return out;
}

Endpoint Endpoint::of_any_interface() const {
  Endpoint out = *this;
  if (family() == AF_INET) {
    four(out).sin_addr.s_addr = htonl(INADDR_ANY);
  } else {
    six(out).sin6_addr = in6addr_any;
    six(out).sin6_scope_id = 0;
  }
  return out;
}

bool split_address(const std::string& text, std::string& host, uint16_t& port) {
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) return false;
  host = text.substr(0, colon);
  if (host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string::npos) {
    return false;
  }
  const char *begin = text.data() + colon + 1, *end = text.data() + text.size();
  const auto [stop, fault] = std::from_chars(begin, end, port);
  return !host.empty() && fault == std::errc() && stop == end && port != 0;
}

bool names_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

std::vector<Endpoint> resolve(const std::string& host, uint16_t port, std::string& reason) {
  addrinfo wanted{};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), nullptr, &wanted, &found); error != 0) {
    reason = gai_strerror(error);
    return {};
  }
  std::vector<Endpoint> out;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    if (each->ai_family != AF_INET && each->ai_family != AF_INET6) continue;
    Endpoint endpoint;
    std::memcpy(&endpoint.storage, each->ai_addr, each->ai_addrlen);
    endpoint.length = each->ai_addrlen;
    out.push_back(endpoint.with_port(port));
  }
  freeaddrinfo(found);
  if (out.empty()) reason = "it has no address";
  return out;
}

Endpoint local_end(const Socket& socket) {
  Endpoint out;
  out.length = sizeof out.storage;
  getsockname(socket.fd(), address_of(out), &out.length);
  return out;
}

Endpoint remote_end(const Socket& socket) {
  Endpoint out;
  out.length = sizeof out.storage;
  getpeername(socket.fd(), address_of(out), &out.length);
  return out;
}

Socket listen_at(const Endpoint& endpoint, std::string& reason) {
  Socket out = make_socket(endpoint.family(), reason);
  if (!out.is_open()) return out;
  set_option(out, SOL_SOCKET, SO_REUSEADDR, 1);
  if (endpoint.family() == AF_INET6) set_option(out, IPPROTO_IPV6, IPV6_V6ONLY, 0);
  if (bind(out.fd(), address_of(endpoint), endpoint.length) == 0 && listen(out.fd(), kBacklog) == 0) return out;
  reason = error_text(errno);
  return Socket();
}

Socket accept_one(const Socket& listener) {
  Socket out(accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (out.is_open()) tune(out);
  return out;
}

Socket begin_connection(const Endpoint& endpoint, std::string& reason) {
  Socket out = make_socket(endpoint.family(), reason);
  if (!out.is_open()) return out;
  tune(out);
  if (connect(out.fd(), address_of(endpoint), endpoint.length) == 0 || errno == EINPROGRESS || errno == EINTR)
    return out;
  reason = error_text(errno);
  return Socket();
}

int connection_state(const Socket& socket, int milliseconds, std::string& reason) {
  pollfd each{socket.fd(), POLLOUT, 0};
  if (poll(&each, 1, milliseconds) <= 0) return 0;
  int error = 0;
  socklen_t length = sizeof error;
  getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &length);
  if (error == 0) return 1;
  reason = error_text(error);
  return -1;
}

void wait_readable(const std::vector<const Socket*>& sockets, int milliseconds) {
  std::vector<pollfd> all;
  all.reserve(sockets.size());
  for (const Socket* each : sockets) all.push_back({each->fd(), POLLIN, 0});
  poll(all.data(), all.size(), milliseconds);
}

int64_t receive_some(const Socket& socket, std::byte* data, int64_t bytes) {
  const ssize_t got = recv(socket.fd(), data, static_cast<size_t>(bytes), MSG_DONTWAIT);
  if (got > 0) return got;
  return got < 0 && may_come_later(errno) ? 0 : -1;
}

int64_t send_some(const Socket& socket, const std::byte* data, int64_t bytes) {
  const ssize_t sent = send(socket.fd(), data, static_cast<size_t>(bytes), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent >= 0) return sent;
  return may_come_later(errno) ? 0 : -1;
}

bool is_closed(const Socket& socket) {
  std::byte one{};
  const ssize_t got = recv(socket.fd(), &one, 1, MSG_DONTWAIT | MSG_PEEK);
  return got == 0 || (got < 0 && !may_come_later(errno));
}

std::string error_text(int error) { return std::generic_category().message(error); }

}  // namespace helve::runtime::tcp
