// Bytes in and out of the connections of one process.
// Nothing waits here: each call moves what the system takes, and counts what is left in pieces, so that a long message
// that goes on is not taken for one that does not.
#include "tcp_carrier.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <map>
#include <optional>

#include "helve/support/diagnostic.h"

namespace helve::runtime::tcp {

namespace {

constexpr int64_t kPiece = int64_t{1} << 20;  ///< bytes by which messages are counted
constexpr int64_t kTurn = int64_t{4} << 20;   ///< that one connection moves before the next one has its turn
constexpr const char* kClosed = "its connection is closed";

/// What precedes a message.
struct Header {
  static constexpr uint64_t kWord = 0x6d65737361676521;  // any: it tells a message from the middle of one

  uint64_t word = kWord;
  int64_t bytes = 0;
};
static_assert(sizeof(Header) == 16);

/// A message of which some bytes have moved, those of its header first.
struct Parcel {
  Header header;
  std::byte* data;
  int64_t bytes;
  int64_t moved = 0;

  static constexpr int64_t kHead = sizeof(Header);
  bool is_over() const { return moved == kHead + bytes; }
  bool is_in_head() const { return moved < kHead; }
  std::byte* at() { return is_in_head() ? reinterpret_cast<std::byte*>(&header) + moved : data + (moved - kHead); }
  int64_t rest() const { return is_in_head() ? kHead - moved : bytes - (moved - kHead); }
  size_t pieces() const { return static_cast<size_t>((kHead + bytes - moved + kPiece - 1) / kPiece); }
};

/// With one process, both ways.
struct Flow {
  const Socket* socket = nullptr;
  std::deque<Parcel> sends, receives;
  bool cannot_send = false;  ///< what it has sent before may still be read

  bool is_over() const { return sends.empty() && receives.empty(); }
  size_t pieces() const {
    size_t out = 0;
    for (const auto* list : {&sends, &receives}) {
      for (const Parcel& each : *list) out += each.pieces();
    }
    return out;
  }
};

class TcpTransmission final : public Transmission {
 public:
  explicit TcpTransmission(const std::vector<Socket>& connections) : connections_(connections) {}

  void add(const Message& message, bool receives) {
    HELVE_CHECK(message.peer >= 0 && message.peer < static_cast<int64_t>(connections_.size()), "no such process");
    const Socket& socket = connections_[static_cast<size_t>(message.peer)];
    HELVE_CHECK(socket.is_open(), "a message to this process itself");
    Flow& flow = flows_[message.peer];
    flow.socket = &socket;
    Parcel parcel{{}, message.data, message.bytes};
    if (!receives) parcel.header.bytes = message.bytes;
    (receives ? flow.receives : flow.sends).push_back(parcel);
  }

  size_t advance() override {
    std::optional<CarrierFault> fault;
    size_t left = 0;
    for (auto each = flows_.begin(); each != flows_.end();) {
      if (std::string reason = advance(each->second); !reason.empty() && !fault)
        fault = CarrierFault{each->first, std::move(reason)};
      left += each->second.pieces();
      each = each->second.is_over() ? flows_.erase(each) : std::next(each);
    }
    if (fault) throw std::move(*fault);
    return left;
  }

  std::vector<int64_t> awaited() const override {
    std::vector<int64_t> out;
    for (const auto& [peer, flow] : flows_) out.push_back(peer);
    return out;
  }

 private:
  /// Why no more can be moved; empty where more can, or nothing has to be.
  static std::string advance(Flow& flow) {
    int64_t turn = kTurn;
    while (!flow.cannot_send && !flow.sends.empty() && turn > 0) {
      Parcel& parcel = flow.sends.front();
      const int64_t sent = send_some(*flow.socket, parcel.at(), parcel.rest());
      if (sent < 0) flow.cannot_send = true;
      if (sent <= 0 && parcel.rest() > 0) break;
      parcel.moved += sent;
      turn -= sent;
      if (parcel.is_over()) flow.sends.pop_front();
    }
    turn = kTurn;
    while (!flow.receives.empty() && turn > 0) {
      Parcel& parcel = flow.receives.front();
      const int64_t came = receive_some(*flow.socket, parcel.at(), parcel.rest());
      if (came < 0) return kClosed;
      if (came == 0) break;
      parcel.moved += came;
      turn -= came;
      if (parcel.moved == Parcel::kHead && parcel.header.word != Header::kWord) return "what it sends is no message";
      if (parcel.moved == Parcel::kHead && parcel.header.bytes != parcel.bytes)
        return fmt::format("it sent {} bytes where {} were expected", parcel.header.bytes, parcel.bytes);
      if (parcel.is_over()) flow.receives.pop_front();
    }
    return flow.cannot_send && flow.receives.empty() ? kClosed : "";
  }

  const std::vector<Socket>& connections_;
  std::map<int64_t, Flow> flows_;
};

class TcpCarrier final : public Carrier {
 public:
  TcpCarrier(int64_t rank, std::vector<Socket> connections) : rank_(rank), connections_(std::move(connections)) {}

  int64_t rank() const override { return rank_; }
  int64_t size() const override { return static_cast<int64_t>(connections_.size()); }
  std::unique_ptr<Transmission> start(std::span<const Message> sends, std::span<const Message> receives) override {
    auto out = std::make_unique<TcpTransmission>(connections_);
    for (const Message& each : receives) out->add(each, true);
    for (const Message& each : sends) out->add(each, false);
    return out;
  }

 private:
  int64_t rank_;
  std::vector<Socket> connections_;
};

}  // namespace

std::unique_ptr<Carrier> make_carrier(int64_t rank, std::vector<Socket> connections) {
  return std::make_unique<TcpCarrier>(rank, std::move(connections));
}

}  // namespace helve::runtime::tcp
