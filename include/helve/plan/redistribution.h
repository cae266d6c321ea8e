// How a tensor gets from one distribution to another.
// The direct exchange always exists and receives the fewest bytes. Collectives, and chains of up to three, compete with
// it by latency and bandwidth; what is chosen is proved step by step (collective.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "helve/plan/collective.h"

namespace helve {

/// What messages between devices cost.
struct Network {
  double latency = 5e-6;  ///< seconds from one device to another, for the least message
  double bandwidth = 10e9;  ///< bytes per second that a device receives
};

/// Steps from one distribution to another, the first to the last; none where they are equal.
struct Redistribution {
  Distribution from;
  Distribution to;
  int64_t element_bytes = 0;
  std::vector<CollectiveStep> steps;
  double seconds = 0;  ///< by the network's figures; of corners of the mesh, so an estimate
};

/// The cheapest steps that were found. Throws Redistribution, as Transfer does. Takes time and memory that do not grow
/// with the mesh.
Redistribution redistribute(const Distribution& from, const Distribution& to, int64_t element_bytes,
                            const Network& network = {});

/// Bytes that devices receive from others.
struct Volume {
  int64_t most = 0;  ///< of one device
  int64_t total = 0;  ///< of all
};
/// Exact, counted device by device. An all_reduce counts as the reduce_scatter and the all_gather of even parts.
Volume volume(const CollectiveStep& step, int64_t element_bytes);
Volume volume(const Redistribution& plan);

/// "all_gather over y, to 'i j -> j *'".
std::string to_text(const CollectiveStep& step);
/// The steps as text, a line each, with what each moves.
std::string to_text(const Redistribution& plan);

}  // namespace helve
