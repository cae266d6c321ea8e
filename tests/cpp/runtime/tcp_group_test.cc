// Processes that meet by TCP, as threads of this one; and strangers who come to where they meet.
// Whoever comes, and whoever does not, all processes end, with one reason.
#include "helve/runtime/tcp/tcp_group.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "helve/support/diagnostic.h"

namespace helve::runtime {
namespace {

int bound_socket(uint16_t& port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  any.sin_port = htons(port);
  EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&any), sizeof any), 0);
  socklen_t length = sizeof any;
  getsockname(fd, reinterpret_cast<sockaddr*>(&any), &length);
  port = ntohs(any.sin_port);
  return fd;
}

uint16_t free_port() {
  uint16_t port = 0;
  close(bound_socket(port));
  return port;
}

std::string at(uint16_t port) { return "127.0.0.1:" + std::to_string(port); }

using Code = std::function<void(ProcessGroup&)>;

/// Runs the code on a thread for each place; what each threw, as a user reads it. One that throws stays a moment, as
/// processes do, so that others read what it has told them.
std::vector<std::string> run(const std::vector<TcpPlace>& places, const Code& code, double timeout = 20) {
  std::vector<std::string> out(places.size());
  std::vector<std::thread> threads;
  for (size_t k = 0; k < places.size(); ++k) {
    threads.emplace_back([&, k] {
      InterruptPoll poll;
      std::shared_ptr<ProcessGroup> group;
      try {
        group = tcp_group(places[k], {timeout, true}, poll);
        code(*group);
      } catch (const UserError& error) {
        out[k] = error.what();
        if (group) finalize_tcp(*group);
      }
    });
  }
  for (std::thread& each : threads) each.join();
  return out;
}

std::vector<TcpPlace> places(int64_t size, const std::string& address) {
  std::vector<TcpPlace> out;
  for (int64_t rank = 0; rank < size; ++rank) out.push_back({rank, size, address});
  return out;
}

/// All send all of them so many bytes, which tell who sent them.
void exchange(ProcessGroup& group, size_t bytes) {
  InterruptPoll poll;
  const auto size = static_cast<size_t>(group.size());
  std::vector<std::vector<std::byte>> sent(size), came(size);
  std::vector<Message> sends, receives;
  const auto message = [&](size_t from, size_t to) {
    std::vector<std::byte> out(bytes);
    for (size_t k = 0; k < bytes; ++k) out[k] = static_cast<std::byte>((from * 31 + to * 7 + k * (k >> 16 | 1)) & 0xff);
    return out;
  };
  const auto me = static_cast<size_t>(group.rank());
  for (size_t other = 0; other < size; ++other) {
    if (other == me) continue;
    sent[other] = message(me, other);
    came[other].resize(bytes);
    sends.push_back({static_cast<int64_t>(other), sent[other].data(), static_cast<int64_t>(bytes)});
    receives.push_back({static_cast<int64_t>(other), came[other].data(), static_cast<int64_t>(bytes)});
  }
  group.run(step_of("an exchange"), poll, [&] { group.exchange(sends, receives, {}, poll); });
  for (size_t other = 0; other < size; ++other) {
    if (other == me) continue;
    EXPECT_TRUE(came[other] == message(other, me)) << other << " to " << me;
  }
}

TEST(TcpGroup, ProcessesMeetAndSendAllLengths) {
  for (const int64_t size : {1, 2, 5}) {
    const auto faults = run(places(size, at(free_port())), [](ProcessGroup& group) {
      for (const size_t bytes : {0, 1, 1000, 3 << 20}) exchange(group, bytes);
    });
    EXPECT_EQ(faults, std::vector<std::string>(static_cast<size_t>(size)));
  }
}

TEST(TcpGroup, ANameAndSixBytesOfVersionSixAreAddresses) {
  EXPECT_EQ(run(places(2, "localhost:" + std::to_string(free_port())), [](ProcessGroup& g) { exchange(g, 10); }),
            std::vector<std::string>(2));
  const int fd = socket(AF_INET6, SOCK_STREAM, 0);
  sockaddr_in6 any{};
  any.sin6_family = AF_INET6;
  any.sin6_addr = in6addr_loopback;
  const bool has_six = fd >= 0 && bind(fd, reinterpret_cast<sockaddr*>(&any), sizeof any) == 0;
  close(fd);
  if (!has_six) GTEST_SKIP() << "no IPv6 here";
  EXPECT_EQ(run(places(3, "[::1]:" + std::to_string(free_port())), [](ProcessGroup& g) { exchange(g, 10); }),
            std::vector<std::string>(3));
}

TEST(TcpGroup, OneThatNeverComesIsNamed) {
  const std::string address = at(free_port());
  auto some = places(4, address);
  some.erase(some.begin() + 2);
  for (size_t k = 0; k < 3; ++k) {
    const std::string faults = run(some, {}, 0.4)[k];
    EXPECT_EQ(faults, "error[HV0426]: process " + std::to_string(some[k].rank) + " of 4 does not meet the others at " +
                          address +
                          ": process 2 did not come within 0.4 s\nhelp: see that all processes are started, with one "
                          "address; if they only take longer, set HELVE_COMM_TIMEOUT to more seconds");
  }
}

TEST(TcpGroup, NobodyListens) {
  const std::string address = at(free_port());
  EXPECT_EQ(run({{1, 2, address}}, {}, 0.3)[0],
            "error[HV0426]: process 1 of 2 does not meet the others at " + address +
                ": process 0 does not answer there within 0.3 s: Connection refused\nhelp: see that all processes are "
                "started, with one address; if they only take longer, set HELVE_COMM_TIMEOUT to more seconds");
}

TEST(TcpGroup, WhatCannotBeAnAddressOrANumber) {
  const auto text = [](const TcpPlace& place) { return run({place}, {}, 0.3)[0]; };
  for (const char* address : {"", "host", "host:", ":29500", "host:0", "host:70000", "::1:29500", "host:29500x"}) {
    EXPECT_EQ(text({0, 2, address}), "error[HV0426]: process 0 of 2 does not meet the others at " +
                                         std::string(*address == 0 ? "no address" : address) +
                                         ": that is no address\nhelp: give it as host:port, such as 10.0.0.1:29500");
  }
  EXPECT_EQ(text({2, 2, at(1)}),
            "error[HV0426]: process 2 of 2 does not meet the others at 127.0.0.1:1: that is no number of a "
            "process\nhelp: give each process its number from 0, and how many there are");
  EXPECT_TRUE(text({0, 2, "no-such-host.invalid:1"}).find("the name cannot be resolved: ") != std::string::npos);
}

TEST(TcpGroup, APortThatIsTaken) {
  uint16_t port = 0;
  const int fd = bound_socket(port);
  listen(fd, 1);
  EXPECT_EQ(run({{0, 2, at(port)}}, {}, 0.3)[0],
            "error[HV0426]: process 0 of 2 does not meet the others at " + at(port) +
                ": process 0 cannot listen there: Address already in use\nhelp: give a free port of its machine, the "
                "same to all processes");
  close(fd);
}

TEST(TcpGroup, TwoOfOneNumber) {
  const std::string address = at(free_port());
  for (const std::string& text : run({{0, 3, address}, {1, 3, address}, {1, 3, address}}, {}, 5)) {
    EXPECT_TRUE(
        text.ends_with(": two processes have the number 1\nhelp: give each process a number of its own, from 0"))
        << text;
  }
}

TEST(TcpGroup, ASizeThatDiffers) {
  const std::string address = at(free_port());
  for (const std::string& text : run({{0, 2, address}, {1, 4, address}}, {}, 5)) {
    EXPECT_TRUE(text.ends_with(": process 1 was started as one of 4, process 0 as one of 2\nhelp: start all processes "
                               "with one size"))
        << text;
  }
}

/// Connects to where processes meet, says something, and stays.
void visit(uint16_t port, const std::string& says) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in end{};
  end.sin_family = AF_INET;
  end.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  end.sin_port = htons(port);
  for (int turn = 0; turn < 200 && connect(fd, reinterpret_cast<sockaddr*>(&end), sizeof end) != 0; ++turn)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  (void)!send(fd, says.data(), says.size(), MSG_NOSIGNAL);  // which may have been closed already
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  close(fd);
}

TEST(TcpGroup, StrangersAreSentAway) {
  const uint16_t port = free_port();
  std::mt19937 random(7);
  std::vector<std::string> sayings = {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "", "helve", std::string(100, '\0')};
  for (int k = 0; k < 20; ++k) {
    std::string noise = k % 2 == 0 ? "helvetcp" : "";
    if (k % 4 == 0) noise += std::string("\x01\0\0\0", 4);  // of this version
    for (int b = 0; b < 60; ++b) noise += static_cast<char>(random());
    if (k % 2 == 1) sayings.push_back(noise);
    // A kind that is none, a number that is none: of the version they are sent away, and no other says so.
    if (k % 4 == 0) sayings.push_back(noise.substr(0, 12) + std::string("\x63\0\0\0", 4) + noise.substr(16));
  }
  std::vector<std::thread> visitors;
  for (const std::string& each : sayings) visitors.emplace_back([&, each] { visit(port, each); });
  const auto faults = run(places(3, at(port)), [](ProcessGroup& group) {
    std::this_thread::sleep_for(std::chrono::milliseconds(400));
    exchange(group, 100);
  });
  for (std::thread& each : visitors) each.join();
  EXPECT_EQ(faults, std::vector<std::string>(3));
}

TEST(TcpGroup, AnotherVersionIsNamed) {
  const uint16_t port = free_port();
  std::string hello("helvetcp", 8);
  hello += std::string("\x09\0\0\0\x01\0\0\0", 8) + std::string("\x01\0\0\0\0\0\0\0", 8) + std::string(16, '\0');
  std::thread visitor([&] { visit(port, hello); });
  const std::string text = run({{0, 2, at(port)}}, {}, 5)[0];
  visitor.join();
  EXPECT_TRUE(
      text.ends_with(": process 1 has another version of helve than process 0\nhelp: install one version on all "
                     "machines"))
      << text;
}

TEST(TcpGroup, AnAnswerOfAStranger) {
  uint16_t port = 0;
  const int fd = bound_socket(port);
  listen(fd, 1);
  std::thread host([&] {
    const int guest = accept(fd, nullptr, nullptr);
    (void)!write(guest, "220 mail ready\r\n", 16);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    close(guest);
  });
  const std::string text = run({{1, 2, at(port)}}, {}, 5)[0];
  host.join();
  close(fd);
  EXPECT_TRUE(
      text.ends_with(": what listens there is no process of helve\nhelp: give the address at which process 0 is "
                     "to listen"))
      << text;
}

TEST(TcpGroup, OneThatEndsIsNamedAtOnce) {
  const auto begin = std::chrono::steady_clock::now();
  const auto faults = run(places(4, at(free_port())), [](ProcessGroup& group) {
    exchange(group, 100);
    if (group.rank() != 2) exchange(group, 100);
  });
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
  EXPECT_EQ(faults[2], "");
  for (const size_t rank : {0, 1, 3}) {
    EXPECT_EQ(
        faults[rank],
        "error[HV0421]: process 2 cannot be reached in step 2, an exchange: process 0 does not reach it\nhelp: see "
        "why it ended, and start again");
  }
}

TEST(TcpGroup, AMessageOfAnotherLength) {
  const auto faults = run(places(2, at(free_port())), [](ProcessGroup& group) {
    InterruptPoll poll;
    std::vector<std::byte> data(64);
    const Message message{1 - group.rank(), data.data(), group.rank() == 0 ? 64 : 32};
    group.run(step_of("a message"), poll, [&] {
      if (group.rank() == 0) {
        group.exchange({&message, 1}, {}, {}, poll);
      } else {
        group.exchange({}, {&message, 1}, {}, poll);
      }
    });
  });
  EXPECT_EQ(faults[0], "");
  EXPECT_NE(faults[1].find("it sent 64 bytes where 32 were expected"), std::string::npos) << faults[1];
}

}  // namespace
}  // namespace helve::runtime
