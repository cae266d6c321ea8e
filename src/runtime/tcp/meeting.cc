// The meeting, on process 0 and on the others.
// What cannot become a group ends at once, and process 0 tells the reason to all that have come.
#include "meeting.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <list>
#include <optional>
#include <random>

#include "helve/support/diagnostic.h"
#include "notes.h"

namespace helve::runtime::tcp {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kLook = 20;  ///< milliseconds between looks at the clock, and for Ctrl-C
constexpr int64_t kMostText = 1024;
constexpr size_t kMostGuests = 1024;  ///< connections that have not said who they are
constexpr const char* kSeeStart = "see that all processes are started, with one address; if they only take longer, set "
                                  "HELVE_COMM_TIMEOUT to more seconds";

/// Why a meeting fails. Process 0 sends it to the others as it is.
struct Failure {
  std::string reason, remedy;
};

std::string printable(std::string text) {
  for (char& each : text) {
    if (static_cast<unsigned char>(each) < 0x20 || each == 0x7f) each = '?';
  }
  return text;
}

Failure failure_of(const std::string& body) {
  const size_t end = body.find('\n');
  return {printable(body.substr(0, end)), end == std::string::npos ? "" : printable(body.substr(end + 1))};
}

class Meeting {
 public:
  Meeting(const TcpPlace& place, double seconds, InterruptPoll& poll)
      : place_(place),
        seconds_(seconds),
        end_(Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds))),
        poll_(poll),
        members_(static_cast<size_t>(place.size)) {
    if (!split_address(place.address, host_, port_))
      throw Failure{"that is no address", "give it as host:port, such as 10.0.0.1:29500"};
    std::string reason;
    ends_ = resolve(host_, port_, reason);
    if (ends_.empty())
      throw Failure{fmt::format("the name cannot be resolved: {}", reason),
                    "give a name or number of process 0's machine"};
  }

  std::vector<Socket> run() { return place_.rank == 0 ? as_first() : as_other(); }

 private:
  /// Someone who connected and has not said who it is.
  struct Guest {
    Socket socket;
    NoteReader reader{0};
  };

  bool is_late() {
    if (poll_.active()) poll_.throw_if_requested();
    return Clock::now() >= end_;
  }

  void send_all(const Socket& socket, const Note& note, const std::string& body) {
    std::string text(reinterpret_cast<const char*>(&note), sizeof note);
    text += body;
    for (size_t at = 0; at < text.size();) {
      const int64_t sent = send_some(socket, reinterpret_cast<const std::byte*>(text.data()) + at,
                                     static_cast<int64_t>(text.size() - at));
      if (sent < 0) return;  // who is gone is missed where it is waited for
      at += static_cast<size_t>(sent);
      if (sent == 0 && is_late()) return;
      if (sent == 0) wait_readable({}, 1);
    }
  }

  static Note note_of(NoteKind kind, int64_t number = 0, int64_t word = 0, size_t bytes = 0) {
    Note out;
    out.kind = kind;
    out.number = number;
    out.word = word;
    out.bytes = static_cast<uint32_t>(bytes);
    return out;
  }

  /// Tells all that have come, and ends.
  [[noreturn]] void fail_all(const Failure& failure, const Socket* also = nullptr) {
    const std::string body = (failure.reason + "\n" + failure.remedy).substr(0, kMostText);
    const Note note = note_of(NoteKind::Fail, 0, 0, body.size());
    for (const Socket& each : members_) {
      if (each.is_open()) send_all(each, note, body);
    }
    if (also != nullptr) send_all(*also, note, body);
    throw failure;
  }

  /// Takes new connections and reads what they say; `admit` gets those that said a whole note.
  template <class Admit>
  void receive_guests(const Socket& listener, Admit&& admit) {
    for (Socket next = accept_one(listener); next.is_open(); next = accept_one(listener)) {
      if (guests_.size() >= kMostGuests) guests_.pop_front();
      guests_.emplace_back().socket = std::move(next);
    }
    for (auto guest = guests_.begin(); guest != guests_.end();) {
      const NoteReader::State state = guest->reader.advance(guest->socket);
      if (state == NoteReader::State::Open) {
        ++guest;
        continue;
      }
      if (state == NoteReader::State::Done) admit(guest->socket, guest->reader.note());
      guest = guests_.erase(guest);
    }
  }

  void wait_with(const Socket& listener) const {
    std::vector<const Socket*> all = {&listener};
    for (const Guest& each : guests_) all.push_back(&each.socket);
    wait_readable(all, kLook);
  }

  /// Of a member: a note of this kind. Throws Failure where it says another one, or is gone.
  std::optional<std::string> note_from(const Socket& socket, NoteReader& reader, NoteKind kind, int64_t rank) {
    const NoteReader::State state = reader.advance(socket);
    if (state == NoteReader::State::Open) return std::nullopt;
    if (state == NoteReader::State::Done && reader.note().version != Note::kVersion) throw other_version(rank);
    if (state == NoteReader::State::Done && reader.note().kind == kind) return reader.body();
    if (state == NoteReader::State::Done && reader.note().kind == NoteKind::Fail) throw failure_of(reader.body());
    if (state == NoteReader::State::Stranger)
      throw Failure{"what listens there is no process of helve", "give the address at which process 0 is to listen"};
    throw Failure{fmt::format("process {} ended while processes were connected", rank), "see why it ended"};
  }

  static Failure other_version(int64_t rank) {
    return {fmt::format("process {} has another version of helve than process 0", rank),
            "install one version on all machines"};
  }

  Failure missing() const {
    std::vector<int64_t> out;
    int64_t count = 0;
    for (size_t k = 1; k < members_.size(); ++k) {
      if (members_[k].is_open()) continue;
      if (++count <= 8) out.push_back(static_cast<int64_t>(k));
    }
    const std::string more = count > 8 ? fmt::format(" and {} more", count - 8) : "";
    return {fmt::format("{} {}{} did not come within {:g} s", count == 1 ? "process" : "processes",
                        fmt::join(out, ", "), more, seconds_),
            kSeeStart};
  }

  Socket listen_as_first() {
    std::string reason;
    // A name of this machine may mean its loopback here, and another interface to the others.
    const Endpoint& end = ends_.front();
    Socket out = listen_at(end.is_loopback() && !names_loopback(host_) ? end.of_any_interface() : end, reason);
    if (!out.is_open() && !names_loopback(host_)) out = listen_at(end.of_any_interface(), reason);
    if (out.is_open()) return out;
    throw Failure{fmt::format("process 0 cannot listen there: {}", reason),
                  "give a free port of its machine, the same to all processes"};
  }

  void admit(Socket& socket, const Note& note, std::vector<uint16_t>& ports) {
    if (note.version != Note::kVersion) fail_all(other_version(note.number), &socket);
    if (note.kind != NoteKind::Hello) return;
    if (note.word != place_.size) {
      fail_all({fmt::format("process {} was started as one of {}, process 0 as one of {}", note.number, note.word,
                            place_.size),
                "start all processes with one size"},
               &socket);
    }
    if (note.number < 0 || note.number >= place_.size) return;
    Socket& place = members_[static_cast<size_t>(note.number)];
    if (note.number == 0 || (place.is_open() && !is_closed(place))) {
      fail_all({fmt::format("two processes have the number {}", note.number),
                "give each process a number of its own, from 0"},
               &socket);
    }
    place = std::move(socket);
    ports[static_cast<size_t>(note.number)] = static_cast<uint16_t>(note.port);
  }

  std::vector<Socket> as_first() {
    const Socket listener = listen_as_first();
    std::vector<uint16_t> ports(members_.size());
    const auto is_missing = [&](const Socket& each) { return &each != &members_.front() && !each.is_open(); };
    while (std::ranges::any_of(members_, is_missing)) {
      wait_with(listener);
      receive_guests(listener, [&](Socket& socket, const Note& note) { admit(socket, note, ports); });
      for (Socket& each : members_) {
        if (each.is_open() && is_closed(each)) each.close();  // it may come again
      }
      if (is_late() && std::ranges::any_of(members_, is_missing)) fail_all(missing());
    }
    std::string table;
    for (size_t k = 0; k < members_.size(); ++k) {
      TableEntry entry;
      if (k > 0) entry = entry_of(remote_end(members_[k]), ports[k]);
      table.append(reinterpret_cast<const char*>(&entry), sizeof entry);
    }
    std::random_device random;
    const auto word = static_cast<int64_t>(uint64_t{random()} << 32 | random());
    for (size_t k = 1; k < members_.size(); ++k)
      send_all(members_[k], note_of(NoteKind::Table, 0, word, table.size()), table);
    std::vector<NoteReader> readers(members_.size(), NoteReader(kMostText));
    std::vector<bool> is_ready(members_.size());
    is_ready[0] = true;
    while (std::ranges::find(is_ready, false) != is_ready.end()) {
      std::vector<const Socket*> open;
      for (size_t k = 1; k < members_.size(); ++k) {
        if (!is_ready[k]) open.push_back(&members_[k]);
      }
      wait_readable(open, kLook);
      try {
        for (size_t k = 1; k < members_.size(); ++k) {
          if (!is_ready[k])
            is_ready[k] = note_from(members_[k], readers[k], NoteKind::Ready, static_cast<int64_t>(k)).has_value();
        }
        if (is_late()) throw Failure{fmt::format("they were not connected within {:g} s", seconds_), kSeeStart};
      } catch (const Failure& failure) {
        fail_all(failure);
      }
    }
    for (size_t k = 1; k < members_.size(); ++k) send_all(members_[k], note_of(NoteKind::Go), "");
    return std::move(members_);
  }

  static TableEntry entry_of(const Endpoint& end, uint16_t port) {
    TableEntry out;
    out.port = port;
    if (end.is_loopback()) return out;
    if (end.family() == AF_INET) {
      out.family = TableEntry::Four;
      std::memcpy(out.address.data(), &reinterpret_cast<const sockaddr_in&>(end.storage).sin_addr, 4);
    } else {
      out.family = TableEntry::Six;
      std::memcpy(out.address.data(), &reinterpret_cast<const sockaddr_in6&>(end.storage).sin6_addr, 16);
    }
    return out;
  }

  Endpoint end_of(const TableEntry& entry) const {
    Endpoint out = remote_end(members_.front());
    if (entry.family == TableEntry::Four) {
      auto& address = reinterpret_cast<sockaddr_in&>(out.storage);
      address.sin_family = AF_INET;
      std::memcpy(&address.sin_addr, entry.address.data(), 4);
      out.length = sizeof(sockaddr_in);
    } else if (entry.family == TableEntry::Six) {
      auto& address = reinterpret_cast<sockaddr_in6&>(out.storage);
      address.sin6_family = AF_INET6;
      std::memcpy(&address.sin6_addr, entry.address.data(), 16);
      out.length = sizeof(sockaddr_in6);
    }
    return out.with_port(entry.port);
  }

  /// Connects with one of the endpoints, again and again until the deadline.
  Socket connect_to(const std::vector<Endpoint>& ends, const std::string& whom) {
    std::string reason = "no answer";
    for (;;) {
      for (const Endpoint& end : ends) {
        Socket out = begin_connection(end, reason);
        while (out.is_open()) {
          const int state = connection_state(out, kLook, reason);
          if (state > 0) return out;
          if (state < 0) out.close();
          if (is_late()) break;
        }
      }
      if (is_late()) {
        throw Failure{fmt::format("{} does not answer there within {:g} s: {}", whom, seconds_, reason), kSeeStart};
      }
      wait_readable({}, kLook);
    }
  }

  /// Waits for a note of process 0, and does `meanwhile`.
  template <class F>
  std::string await_first(NoteKind kind, Note& note, F&& meanwhile) {
    NoteReader reader(std::max<int64_t>(kMostText, place_.size * static_cast<int64_t>(sizeof(TableEntry))));
    for (;;) {
      wait_readable({&members_.front()}, kLook);
      if (const auto body = note_from(members_.front(), reader, kind, 0)) {
        note = reader.note();
        return *body;
      }
      meanwhile();
      // Process 0 may be late by as much as this process was early, and then knows the better reason.
      if (is_late() && Clock::now() >= end_ + (end_ - begin_))
        throw Failure{fmt::format("process 0 does not go on within {:g} s", 2 * seconds_), kSeeStart};
    }
  }

  std::vector<Socket> as_other() {
    Socket& first = members_.front();
    first = connect_to(ends_, "process 0");
    std::string reason;
    const Endpoint local = local_end(first).with_port(0);
    const bool is_alone = local.is_loopback() && names_loopback(host_);  // all are on this machine
    const Socket listener = listen_at(is_alone ? local : local.of_any_interface(), reason);
    if (!listener.is_open())
      throw Failure{fmt::format("it cannot listen: {}", reason), "see the limits of this machine"};
    Note hello = note_of(NoteKind::Hello, place_.rank, place_.size);
    hello.port = local_end(listener).port();
    send_all(first, hello, "");
    Note table_note;
    const std::string table = await_first(NoteKind::Table, table_note, [] {});
    if (table.size() != members_.size() * sizeof(TableEntry))
      throw Failure{"what listens there is no process of helve", "give the address at which process 0 is to listen"};
    const auto rank = static_cast<size_t>(place_.rank);
    for (size_t k = 1; k < rank; ++k) {
      TableEntry entry;
      std::memcpy(&entry, table.data() + k * sizeof entry, sizeof entry);
      members_[k] = connect_to({end_of(entry)}, fmt::format("process {}", k));
      send_all(members_[k], note_of(NoteKind::Peer, place_.rank, table_note.word), "");
    }
    bool said = false;
    Note go;
    const auto connect_rest = [&] {
      if (said) return;
      receive_guests(listener, [&](Socket& socket, const Note& note) {
        const bool is_member = note.version == Note::kVersion && note.kind == NoteKind::Peer &&
                               note.word == table_note.word && note.number > place_.rank && note.number < place_.size;
        if (is_member) members_[static_cast<size_t>(note.number)] = std::move(socket);
      });
      for (size_t k = rank + 1; k < members_.size(); ++k) {
        if (!members_[k].is_open()) return;
      }
      send_all(first, note_of(NoteKind::Ready, place_.rank), "");
      said = true;
    };
    connect_rest();
    await_first(NoteKind::Go, go, connect_rest);
    return std::move(members_);
  }

  const TcpPlace& place_;
  double seconds_;
  Clock::time_point begin_ = Clock::now();
  Clock::time_point end_;
  InterruptPoll& poll_;
  std::string host_;
  uint16_t port_ = 0;
  std::vector<Endpoint> ends_;
  std::list<Guest> guests_;
  std::vector<Socket> members_;  ///< by number
};

}  // namespace

std::vector<Socket> meet(const TcpPlace& place, double seconds, InterruptPoll& poll) {
  const auto fail = [&](const Failure& failure) {
    throw UserError(Code::ProcessesUnmet, {},
                    {{"rank", place.rank},
                     {"size", place.size},
                     {"address", place.address.empty() ? std::string("no address") : place.address},
                     {"reason", failure.reason},
                     {"remedy", failure.remedy}});
  };
  if (place.size < 1 || place.size > int64_t{1} << 20 || place.rank < 0 || place.rank >= place.size)
    fail({"that is no number of a process", "give each process its number from 0, and how many there are"});
  if (place.size == 1) return std::vector<Socket>(1);
  try {
    return Meeting(place, seconds, poll).run();
  } catch (const Failure& failure) {
    fail(failure);
  }
  __builtin_unreachable();
}

}  // namespace helve::runtime::tcp
