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
/// the box begins so many elements behind the buffer's offset, then `out.end_move()`. Nothing for a barrier.
template <class Moves>
void list_moves(CollectiveKind kind, const CollectiveRequest& r, const CoreGroups& groups, Moves& out) {
  const std::vector<int64_t>& members = groups.members;
  const auto gather = [&](int64_t base, int64_t elements) {
    for (int64_t k : members) out.add_source(base + k, elements);
  };
  const auto spread = [&](int64_t base, int64_t elements) {
    for (int64_t k : members) out.add_target(base + k, elements);
  };
  const auto n = static_cast<int64_t>(members.size());
  HELVE_CHECK(!has_root(kind) || (r.root >= 0 && r.root < n), fmt::format("root {} is no member", r.root));
  for (int64_t base : groups.bases) {
    const auto core = [&](int64_t member) { return base + members[static_cast<size_t>(member)]; };
    switch (kind) {
      case CollectiveKind::AllGather:
        for (size_t k = 0; k < members.size(); ++k) {
          out.add_source(base + members[k], 0);
          spread(base, static_cast<int64_t>(k) * r.member_stride_dst);
          out.end_move();
        }
        break;
      case CollectiveKind::Gather:
        for (int64_t k = 0; k < n; ++k) {
          out.add_source(core(k), 0);
          out.add_target(core(r.root), k * r.member_stride_dst);
          out.end_move();
        }
        break;
      case CollectiveKind::Broadcast:
        out.add_source(core(r.root), 0);
        spread(base, 0);
        out.end_move();
        break;
      case CollectiveKind::Scatter:
        for (int64_t me = 0; me < n; ++me) {
          out.add_source(core(r.root), me * r.member_stride_src);
          out.add_target(core(me), 0);
          out.end_move();
        }
        break;
      case CollectiveKind::Reduce:
        gather(base, 0);
        out.add_target(core(r.root), 0);
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
        for (int64_t me = 0; me < n; ++me) {
          const int64_t source = r.sources[static_cast<size_t>(me)];
          if (source < 0 || source >= n) continue;
          out.add_source(core(source), 0);
          out.add_target(core(me), 0);
          out.end_move();
        }
        break;
      case CollectiveKind::Barrier: break;
    }
  }
}

}  // namespace helve::runtime
