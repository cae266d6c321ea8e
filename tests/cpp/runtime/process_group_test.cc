// What processes do when one of them does not do as the others.
// Threads stand for them; every process must end, with the error that names the one.
#include "helve/runtime/process_group.h"

#include <gtest/gtest.h>

#include "helve/support/diagnostic.h"
#include "runtime/thread_carrier.h"

namespace helve::runtime {
namespace {

using test::Network;
using test::on_processes;

/// What a process threw, as a user reads it; empty: nothing.
std::vector<std::string> texts(const std::vector<std::exception_ptr>& faults) {
  std::vector<std::string> out;
  for (const std::exception_ptr& fault : faults) {
    std::string text;
    try {
      if (fault) std::rethrow_exception(fault);
    } catch (const UserError& error) {
      text = error.what();
    }
    out.push_back(text);
  }
  return out;
}

/// Every process sends its rank to all others.
void step(ProcessGroup& processes, const std::string& what, uint64_t hash = 1) {
  InterruptPoll poll;
  processes.run({what, hash}, poll, [&] {
    std::vector<int64_t> came(static_cast<size_t>(processes.size()), -1);
    int64_t mine = processes.rank();
    std::vector<Message> sends, receives;
    for (int64_t other = 0; other < processes.size(); ++other) {
      if (other == mine) continue;
      sends.push_back({other, reinterpret_cast<std::byte*>(&mine), sizeof mine});
      receives.push_back({other, reinterpret_cast<std::byte*>(&came[static_cast<size_t>(other)]), sizeof mine});
    }
    processes.exchange(sends, receives, {}, poll);
    for (int64_t other = 0; other < processes.size(); ++other) {
      if (other != mine && came[static_cast<size_t>(other)] != other) throw std::logic_error("another's message");
    }
  });
}

TEST(ProcessGroup, AllDoTheSame) {
  for (const int64_t size : {1, 2, 5}) {
    Network network(size);
    const auto faults = on_processes(network, {}, [](ProcessGroup& processes) {
      for (int k = 0; k < 50; ++k) step(processes, "a step", static_cast<uint64_t>(k));
    });
    EXPECT_EQ(texts(faults), std::vector<std::string>(static_cast<size_t>(size)));
  }
}

TEST(ProcessGroup, SomeMayDoMoreStepsThanOthers) {
  Network network(4);
  const auto faults = on_processes(network, {}, [](ProcessGroup& processes) {
    InterruptPoll poll;
    const std::vector<int64_t> row = {processes.rank() / 2 * 2, processes.rank() / 2 * 2 + 1};
    if (row[0] == 0) processes.run({"of a row", 5}, poll, [] {}, row);
    step(processes, "of all");
  });
  EXPECT_EQ(texts(faults), std::vector<std::string>(4));
}

TEST(ProcessGroup, NamesTheProcessThatDiffers) {
  for (const int64_t odd : {1, 3}) {
    Network network(4);
    const auto faults = texts(on_processes(network, {}, [&](ProcessGroup& processes) {
      step(processes, "the first");
      const bool differs = processes.rank() == odd;
      step(processes, differs ? "another" : "the second", differs ? 8 : 9);
    }));
    for (int64_t rank = 0; rank < 4; ++rank) {
      const std::string what = rank == odd ? "another" : "the second";
      EXPECT_EQ(faults[static_cast<size_t>(rank)],
                "error[HV0419]: process " + std::to_string(odd) + " differs from process 0 in step 2, which is " +
                    what + " on this process, " + std::to_string(rank) +
                    "\nhelp: let all processes do the same steps, in the same order, with the same shapes and dtypes");
    }
  }
}

TEST(ProcessGroup, NamesTheProcessThatIsLate) {
  for (const int64_t late : {0, 2}) {
    Network network(3);
    const auto faults = texts(on_processes(network, {.timeout = 0.2}, [&](ProcessGroup& processes) {
      if (processes.rank() == late) return;
      step(processes, "a step");
    }));
    for (int64_t rank = 0; rank < 3; ++rank) {
      if (rank == late) continue;
      EXPECT_TRUE(faults[static_cast<size_t>(rank)].starts_with("error[HV0420]: process " + std::to_string(late) +
                                                                " did not reach step 1, a step, within 0."))
          << faults[static_cast<size_t>(rank)];
    }
  }
}

TEST(ProcessGroup, NamesTheProcessThatDied) {
  for (const int64_t dead : {0, 2}) {
    Network network(3);
    const auto faults = texts(on_processes(network, {.timeout = 20}, [&](ProcessGroup& processes) {
      step(processes, "the first");
      if (processes.rank() == dead) {
        network.dead[static_cast<size_t>(dead)] = true;
        return;
      }
      step(processes, "the second");
    }));
    for (int64_t rank = 0; rank < 3; ++rank) {
      if (rank == dead) continue;
      EXPECT_TRUE(faults[static_cast<size_t>(rank)].starts_with("error[HV0421]: process " + std::to_string(dead) +
                                                                " cannot be reached in step 2, the second: "))
          << faults[static_cast<size_t>(rank)];
    }
  }
}

TEST(ProcessGroup, TellsTheOthersOfAnErrorOfItsOwn) {
  Network network(3);
  const auto faults = texts(on_processes(network, {}, [&](ProcessGroup& processes) {
    InterruptPoll poll;
    const bool refuses = processes.rank() == 1;
    const auto part = refuses ? ProcessGroup::Part::Refuses : ProcessGroup::Part::Takes;
    std::exception_ptr told;
    try {
      processes.begin({"a step", 1}, poll, part, true);
    } catch (const UserError&) {
      told = std::current_exception();
    }
    step(processes, "the next");  // all of them know it, and go on
    if (told) std::rethrow_exception(told);
  }));
  EXPECT_EQ(faults[0],
            "error[HV0423]: process 1 has an error of its own before step 1, which is a step on this process, 0\n"
            "help: see the message of that process");
  EXPECT_EQ(faults[1], "");
}

TEST(ProcessGroup, IsAsLargeAsItsMesh) {
  Network network(2);
  const auto faults = texts(on_processes(network, {}, [](ProcessGroup& processes) {
    processes.require_size(2);
    processes.require_size(4);
  }));
  EXPECT_EQ(faults[0], "error[HV0418]: a mesh of 4 devices cannot lie on 2 processes\n"
                       "help: start one process for each device: helve launch -n 4 program.py");
}

TEST(ProcessGroup, IsBrokenAfterAnError) {
  Network network(2);
  const auto faults = texts(on_processes(network, {.timeout = 0.2}, [&](ProcessGroup& processes) {
    if (processes.rank() == 1) return;
    EXPECT_THROW(step(processes, "a step"), UserError);
    EXPECT_TRUE(processes.is_broken());
    step(processes, "the next");
  }));
  EXPECT_EQ(faults[0],
            "error[HV0422]: process 0 takes no more steps with the others, after HV0420 in step 1\nhelp: start again");
}

TEST(ProcessGroup, EndsAtAnInterrupt) {
  Network network(2);
  const auto faults = on_processes(network, {.timeout = 60}, [&](ProcessGroup& processes) {
    if (processes.rank() == 1) return;
    const InterruptHook hook = [] { return true; };
    InterruptPoll poll(&hook);
    EXPECT_THROW(processes.begin({"a step", 1}, poll), Interrupted);
    EXPECT_TRUE(processes.is_broken());
  });
  EXPECT_EQ(texts(faults), std::vector<std::string>(2));
}

TEST(ProcessGroup, FindsAMessageOfAnotherLengthWhereStepsAreNotCompared) {
  Network network(2);
  const auto faults = texts(on_processes(network, {.timeout = 1, .check = false}, [&](ProcessGroup& processes) {
    InterruptPoll poll;
    std::vector<std::byte> mine(8), theirs(processes.rank() == 0 ? 8 : 16);
    const Message send{1 - processes.rank(), mine.data(), 8};
    const Message receive{1 - processes.rank(), theirs.data(), static_cast<int64_t>(theirs.size())};
    processes.run({"a step", 1}, poll, [&] { processes.exchange({&send, 1}, {&receive, 1}, {}, poll); });
  }));
  EXPECT_EQ(faults[0], "");
  EXPECT_EQ(faults[1], "error[HV0421]: process 0 cannot be reached in step 1, a step: another length\n"
                       "help: see why it ended, and start again");
}

}  // namespace
}  // namespace helve::runtime
