// Processes that meet at an address, without MPI.
// Any launcher that numbers its processes will do: torchrun, Slurm, Ray, or a shell.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "helve/runtime/interrupt.h"
#include "helve/runtime/process_group.h"

namespace helve::runtime {

/// Which of the processes this one is, and where they meet: process 0 listens there.
struct TcpPlace {
  int64_t rank = 0;
  int64_t size = 1;
  std::string address;  ///< "host:port", "[::1]:29500"; one process alone needs none
};

/// The processes of the place, each connected with every other one. Called on all of them, each of which waits as long
/// as the options say for the others. UserError ProcessesUnmet.
std::shared_ptr<ProcessGroup> tcp_group(const TcpPlace& place, ProcessGroup::Options options, InterruptPoll& poll);

/// Ends a group that tcp_group made. Where it is broken, it lets the others come to their own errors before the end of
/// this process has a launcher end them.
void finalize_tcp(ProcessGroup& group);

}  // namespace helve::runtime
