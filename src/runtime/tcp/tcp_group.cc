// The group of processes that have met by TCP.
// Its connections last as long as the process, whose end closes them and so is seen by the others.
#include "helve/runtime/tcp/tcp_group.h"

#include <thread>

#include "meeting.h"
#include "tcp_carrier.h"

namespace helve::runtime {

std::shared_ptr<ProcessGroup> tcp_group(const TcpPlace& place, ProcessGroup::Options options, InterruptPoll& poll) {
  std::vector<tcp::Socket> connections = tcp::meet(place, options.timeout, poll);
  return std::make_shared<ProcessGroup>(tcp::make_carrier(place.rank, std::move(connections)), options);
}

void finalize_tcp(ProcessGroup& group) {
  const bool is_broken = group.is_broken();
  group.end();
  if (is_broken && group.size() > 1) std::this_thread::sleep_for(std::chrono::seconds(1));
}

}  // namespace helve::runtime
