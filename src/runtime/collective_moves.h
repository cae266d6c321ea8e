// A collective as moves of one box: which cores' addresses are combined, and which are written.
// Wherever the cores are, the moves of a collective are these.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <vector>

#include "helve/runtime/communicator.h"
#include "helve/support/diagnostic.h"

namespace helve::runtime {

/// Cores as groups: bases x members, both as row-major core numbers that add.
struct CoreGroups {
  std::vector<int64_t> bases;
  std::vector<int64_t> members;
};

/// The core numbers of all coordinates on the axes, 0 on the others.
std::vector<int64_t> corners(std::span<const int64_t> mesh, uint64_t axes);

/// Lists the moves of the groups in order: `out.add_source(core, elements)`, `out.add_target(core, elements)`, where
/// the box begins so many elements behind the buffer's offset, then `out.end_move()`. Of peers, those whose destination
/// takes part. Nothing for a barrier.
template <class Moves>
void list_moves(CollectiveKind kind, const CollectiveRequest& r, const CoreGroups& groups, Moves& out) {
  const std::vector<int64_t>& members = groups.members;
  const auto gather = [&](int64_t base, int64_t elements) {
    for (int64_t k : members) out.add_source(base + k, elements);
  };
  const auto spread = [&](int64_t base, int64_t elements) {
    for (int64_t k : members) out.add_target(base + k, elements);
  };
  for (int64_t base : groups.bases) {
    switch (kind) {
      case CollectiveKind::AllGather:
        for (size_t k = 0; k < members.size(); ++k) {
          out.add_source(base + members[k], 0);
          spread(base, static_cast<int64_t>(k) * r.member_stride_dst);
          out.end_move();
        }
        break;
      case CollectiveKind::Broadcast:
        HELVE_CHECK(r.root >= 0 && r.root < static_cast<int64_t>(members.size()),
                    fmt::format("root {} is no member", r.root));
        out.add_source(base + members[static_cast<size_t>(r.root)], 0);
        spread(base, 0);
        out.end_move();
        break;
      case CollectiveKind::AllReduce:
        gather(base, 0);
        spread(base, 0);
        out.end_move();
        break;
      case CollectiveKind::ReduceScatter:
        for (size_t me = 0; me < members.size(); ++me) {
          gather(base, static_cast<int64_t>(me) * r.member_stride_src);
          out.add_target(base + members[me], 0);
          out.end_move();
        }
        break;
      case CollectiveKind::AllToAll:
        for (size_t me = 0; me < members.size(); ++me) {
          for (size_t k = 0; k < members.size(); ++k) {
            out.add_source(base + members[k], static_cast<int64_t>(me) * r.member_stride_src);
            out.add_target(base + members[me], static_cast<int64_t>(k) * r.member_stride_dst);
            out.end_move();
          }
        }
        break;
      case CollectiveKind::Permute:
      case CollectiveKind::Barrier: break;
    }
  }
  if (kind != CollectiveKind::Permute) return;
  for (const Peer& peer : r.peers) {
    if (!takes_part(r, peer.destination)) continue;
    out.add_source(peer.source, 0);
    out.add_target(peer.destination, 0);
    out.end_move();
  }
}

}  // namespace helve::runtime
