// Processes that do the same steps together.
// Before a step they compare what they are about to do, and no wait is longer than the deadline: where one process does
// something else, or nothing, all of them end with an error that names it, instead of waiting for ever.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "helve/runtime/carrier.h"
#include "helve/runtime/interrupt.h"

namespace helve::runtime {

/// What all processes do next. The hash is of all that must be equal; errors show the text.
struct ProcessStep {
  std::string what;
  uint64_t hash;
};

/// A step that is known by its text alone.
ProcessStep step_of(const std::string& text);

class ProcessGroup {
 public:
  struct Options {
    double timeout = 60;  ///< seconds without any message after which a wait ends
    bool check = true;  ///< are steps compared?
  };

  ProcessGroup(std::unique_ptr<Carrier> carrier, Options options);

  int64_t rank() const { return carrier_->rank(); }
  int64_t size() const { return carrier_->size(); }

  /// UserError ProcessCount unless there is one process for each of so many devices.
  void require_size(int64_t devices) const;

  /// Does this process take part in the next step, or has it an error of its own, which the others are told of?
  enum class Part { Takes, Refuses };

  /// Begins the next step, which its members, ascending ranks (empty: all), compare if `always` or the options say so.
  /// UserError ProcessesDiffer, ProcessRefused (not where this process refuses), ProcessLate, ProcessLost,
  /// ProcessesBroken. After any of these but ProcessRefused, and after an interrupt, the group is broken: processes may
  /// stand at different steps.
  void begin(const ProcessStep& step, InterruptPoll& poll, Part part = Part::Takes, bool always = false,
             std::span<const int64_t> members = {});

  /// Begins a step and runs its body, in which this process exchanges messages. Errors as of `begin`, and what the body
  /// throws, which breaks the group.
  void run(const ProcessStep& step, InterruptPoll& poll, const std::function<void()>& body,
           std::span<const int64_t> members = {}, bool always = false);

  /// Sends and receives messages of the step, which lie in `memory`; does `meanwhile` while they are under way. Errors
  /// as of `begin`, and what `meanwhile` throws. After an error the memory is held for good: messages that are given up
  /// may still be read or written by others.
  void exchange(std::span<const Message> sends, std::span<const Message> receives, std::shared_ptr<const void> memory,
                InterruptPoll& poll, const std::function<void()>& meanwhile = {});

  /// Has an error left the processes at different steps?
  bool is_broken() const;
  /// The processes may stand at different steps, after what is named.
  void break_off(const std::string& after);
  /// The group takes no more steps; for the end of the process.
  void end() { break_off("its end"); }
  bool checks() const { return options_.check; }

  /// Of all that this process does with the others, one thing at a time.
  std::recursive_mutex& mutex() const { return mutex_; }

 private:
  /// What a process tells the referee, the first member.
  struct Record {
    uint64_t hash;
    uint32_t step;  ///< of those of all processes; 0 for other steps, of which the hash has the number
    uint32_t refuses;
  };
  static_assert(sizeof(Record) == 16);
  /// What all are answered.
  struct Verdict {
    enum Kind : int64_t { Agreed, Differs, Refused, Late, Lost };
    Kind kind = Agreed;
    int64_t process = 0;  ///< that differs, refuses, is late or lost
  };

  void require_whole() const;
  /// On the referee: reads all records.
  Verdict judge(std::span<const int64_t> members, InterruptPoll& poll);
  /// The process that refuses, if one does.
  std::optional<int64_t> agree(const ProcessStep& step, InterruptPoll& poll, Part part,
                               std::span<const int64_t> members);
  /// Ends so many seconds after the last message; if not `restarts`, after the first look.
  void await(Transmission& messages, double seconds, InterruptPoll& poll, bool restarts = true) const;
  /// `waiting`: the process that they were too late for.
  [[noreturn]] void fail_late(const std::vector<int64_t>& others, int64_t waiting, double seconds) const;
  /// Runs the code; the group is broken if it throws.
  template <class F>
  void or_broken(F&& code);

  std::unique_ptr<Carrier> carrier_;
  const Options options_;
  mutable std::recursive_mutex mutex_;  ///< of the step that is being done
  int64_t step_ = 0;  ///< of this process: members of other groups may have done more
  int64_t steps_of_all_ = 0;
  std::string what_;
  std::vector<int64_t> all_ = {};  ///< ranks
  std::vector<Record> records_;  ///< of all members on the referee, else of this process
  Verdict verdict_;
  std::string broken_by_;  ///< the code of the error, empty: whole
  std::vector<std::shared_ptr<const void>> given_up_;  ///< memory of messages
};

}  // namespace helve::runtime
