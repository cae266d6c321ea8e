// How processes that know a number, a size and an address come to know each other.
// Process 0 listens at the address; it tells all where the others listen, and when everyone is connected.
#pragma once

#include <vector>

#include "helve/runtime/interrupt.h"
#include "helve/runtime/tcp/tcp_group.h"
#include "sockets.h"

namespace helve::runtime::tcp {

/// Connections with the others, by number; the own place is closed. Ends within so many seconds. UserError
/// ProcessesUnmet, with one reason on all processes that have met. Strangers who connect are sent away.
std::vector<Socket> meet(const TcpPlace& place, double seconds, InterruptPoll& poll);

}  // namespace helve::runtime::tcp
