// What processes tell each other until they are connected: notes of a fixed form.
// A note begins with a word that no other protocol begins with, so that strangers are known by it.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>

#include "sockets.h"

namespace helve::runtime::tcp {

enum class NoteKind : uint32_t {
  Hello = 1,  ///< to process 0: number, size, and the port at which it listens
  Table = 2,  ///< from process 0: where all listen; the word of this meeting
  Peer = 3,   ///< to another process: number, and the word of the meeting
  Ready = 4,  ///< to process 0: connected with all
  Go = 5,     ///< from process 0: all are
  Fail = 6,   ///< why they do not meet, and the remedy
};

struct Note {
  static constexpr std::array<char, 8> kMagic = {'h', 'e', 'l', 'v', 'e', 't', 'c', 'p'};
  static constexpr uint32_t kVersion = 1;  ///< of all that is said by TCP, in any byte order

  std::array<char, 8> magic = kMagic;
  uint32_t version = kVersion;
  NoteKind kind = NoteKind::Hello;
  int64_t number = 0;
  int64_t word = 0;   ///< Hello: the size; Table, Peer: of the meeting
  uint32_t port = 0;
  uint32_t bytes = 0;  ///< that follow
};
static_assert(sizeof(Note) == 40);

/// Where a process listens.
struct TableEntry {
  enum Family : uint16_t { HostOfFirst = 0, Four = 4, Six = 6 };

  uint16_t family = HostOfFirst;
  uint16_t port = 0;
  std::array<uint8_t, 16> address = {};
};
static_assert(sizeof(TableEntry) == 20);

/// A note that is being read, with what follows it.
class NoteReader {
 public:
  explicit NoteReader(int64_t most_bytes) : most_bytes_(most_bytes) {}

  enum class State { Open, Done, Stranger, Closed };

  /// Reads what is there.
  State advance(const Socket& socket) {
    for (;;) {
      if (have_ == kHead && note_.bytes == body_.size()) return State::Done;
      const bool in_head = have_ < kHead;
      std::byte* at = in_head ? reinterpret_cast<std::byte*>(&note_) + have_
                              : reinterpret_cast<std::byte*>(bytes_.data()) + body_.size();
      const int64_t wanted = in_head ? kHead - have_ : static_cast<int64_t>(note_.bytes - body_.size());
      const int64_t got = receive_some(socket, at, in_head ? wanted : std::min<int64_t>(wanted, kChunk));
      if (got <= 0) return got == 0 ? State::Open : State::Closed;
      if (!in_head) {
        body_.append(bytes_.data(), static_cast<size_t>(got));
        continue;
      }
      have_ += got;
      const auto known = static_cast<size_t>(std::min<int64_t>(have_, sizeof note_.magic));
      if (std::memcmp(note_.magic.data(), Note::kMagic.data(), known) != 0) return State::Stranger;
      if (have_ == kHead && note_.version == Note::kVersion && note_.bytes > most_bytes_) return State::Stranger;
      if (have_ == kHead && note_.version != Note::kVersion) note_.bytes = 0;  // what follows has another form
    }
  }

  const Note& note() const { return note_; }
  const std::string& body() const { return body_; }

 private:
  static constexpr int64_t kHead = sizeof(Note);
  static constexpr int64_t kChunk = 4096;

  int64_t most_bytes_;
  int64_t have_ = 0;
  Note note_;
  std::array<char, kChunk> bytes_ = {};
  std::string body_;
};

}  // namespace helve::runtime::tcp
