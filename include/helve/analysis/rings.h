// Roles and rings of a kernel, judged together.
// Two roles that are slices of one program hold the same loops and branches, and the same events of each ring in the
// same places: the one fills what the other takes. That is decided by putting the slices together again. What results
// is a sequential program, in which use u of a ring is filled right before it is taken. If there every access of a slot
// stands between the events that give it to its side, and at most as many uses are open as the ring has slots, then
// - fill u precedes take u, and release u precedes fill u + S, by the mbarriers of the slot, in every order of the
// roles;
// - no role waits for ever, since the sequential program is a schedule of the roles, and in a network where each waits
//   for one ring at a time what one schedule reaches every schedule reaches (Kahn, "The semantics of a simple language
//   for parallel programming", 1974);
// - the roles do what the sequential program does, since they share no other memory that one of them writes.
// All of this holds for every number of iterations: a loop stands for itself.
// Blocks of a cluster that fill slots for each other are further processes of that network. Their programs have the
// same events of a shared ring, since no bound or condition around them depends on the block's place in the cluster,
// and use u of it is the same copy in all: in step with each other the sequential programs are a schedule of the
// cluster, in which each slot is filled when all have released it. The blocks are there from the first such copy to the
// last one by T.sync_cluster.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "helve/ir/tensor/function.h"

namespace helve {

/// What is wrong with a kernel's roles or rings.
struct RingFault {
  Span span;
  std::string reason;
};

/// The kernel as one sequential program: the statements of the first role, in which those of the second stand where the
/// first takes what they fill. The kernel itself if it has no roles. Nothing, with the reason, if the roles are no two
/// slices of one program.
std::optional<Ref<const Kernel>> joined_roles(const Ref<const Kernel>& kernel, RingFault* fault);

/// What contradicts the above in a kernel, with roles or without; nothing if it is proved.
std::optional<RingFault> ring_fault(const Function& f, const Ref<const Kernel>& kernel);

/// Is the statement, or is below it, an event of a ring?
bool has_ring_events(const Stmt& s);

/// The statements at the begin of a kernel's body that the whole block executes before its roles part: allocations of
/// shared memory, the initialization of mbarriers and barriers. How many there are.
size_t common_statements(const std::vector<Stmt>& body);

}  // namespace helve
