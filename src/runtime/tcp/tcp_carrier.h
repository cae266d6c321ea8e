// Messages between connected processes.
// A message is its length and its bytes, so that a process that sends something else than is expected is known.
#pragma once

#include <memory>
#include <vector>

#include "helve/runtime/carrier.h"
#include "sockets.h"

namespace helve::runtime::tcp {

/// `connections`: with the others, by number.
std::unique_ptr<Carrier> make_carrier(int64_t rank, std::vector<Socket> connections);

}  // namespace helve::runtime::tcp
