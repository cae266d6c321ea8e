// Collectives between cores that are buffers of this process.
// Every collective is a list of moves (addresses combined, addresses written) of one box; one loop executes them all.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_map>
#include <vector>

#include "helve/runtime/communicator.h"
#include "helve/runtime/thread_pool.h"
#include "helve/support/diagnostic.h"
#include "reduce_row.h"

namespace helve::runtime {

namespace {

constexpr int64_t kRowPiece = 8192;          ///< elements; long rows are split, so that one row feeds all threads
constexpr int64_t kParallelBytes = 1 << 18;  ///< below it, waking the pool costs more than it gains
constexpr size_t kMaxRank = 16;

/// Cores as groups: bases x members, both as row-major core numbers that add.
struct Groups {
  std::vector<int64_t> bases;
  std::vector<int64_t> members;
};

std::vector<int64_t> corners(std::span<const int64_t> mesh, uint64_t axes) {
  std::vector<int64_t> result{0};
  int64_t stride = 1;
  for (size_t a = mesh.size(); a-- > 0; stride *= mesh[a]) {
    if ((axes >> a & 1) == 0) continue;
    std::vector<int64_t> next;
    for (int64_t i = 0; i < mesh[a]; ++i) {
      for (int64_t corner : result) next.push_back(i * stride + corner);
    }
    result = std::move(next);
  }
  return result;
}

/// A box of rows in bytes, without dimensions of extent 1; adjacent dimensions are merged if both sides are contiguous.
struct RowBox {
  size_t rank = 0;  ///< of the rows' numbering
  std::array<int64_t, kMaxRank> extents{}, src{}, dst{};
  int64_t rows = 1;
  int64_t length = 1;  ///< elements of a row
  int64_t src_step, dst_step;
  int64_t elements = 1;
};

RowBox normalise(std::span<const int64_t> extents, std::span<const int64_t> src, std::span<const int64_t> dst,
                 int64_t bytes) {
  RowBox box;
  box.src_step = box.dst_step = bytes;
  for (size_t d = 0; d < extents.size(); ++d) {
    box.elements *= std::max<int64_t>(extents[d], 0);
    if (extents[d] == 1) continue;
    const int64_t s = src[d] * bytes, t = dst[d] * bytes;
    const size_t last = box.rank;
    if (last > 0 && box.src[last - 1] == s * extents[d] && box.dst[last - 1] == t * extents[d]) {
      box.extents[last - 1] *= extents[d];
      box.src[last - 1] = s;
      box.dst[last - 1] = t;
      continue;
    }
    HELVE_CHECK(box.rank < kMaxRank, "a box of more than 16 dimensions");
    box.extents[box.rank] = extents[d];
    box.src[box.rank] = s;
    box.dst[box.rank++] = t;
  }
  if (box.rank > 0) {
    --box.rank;
    box.length = box.extents[box.rank];
    box.src_step = box.src[box.rank];
    box.dst_step = box.dst[box.rank];
  }
  for (size_t d = 0; d < box.rank; ++d) box.rows *= box.extents[d];
  return box;
}

struct Move {
  size_t first_source, sources, first_target, targets;
};

class Exchange {
 public:
  Exchange(const CollectiveRequest& request, bool reduces)
      : r_(request), bytes_(element_bytes(request.dtype)), reduces_(reduces) {
    if (!reduces_) return;
    reduce_ = find_reduce_row(r_.dtype, r_.op);
    if (reduce_ == nullptr) {
      throw UserError(Code::ReductionDType, {},
                      {{"dtype", to_text(r_.dtype)}, {"operation", std::string(name_of(r_.op))}});
    }
  }

  void add_source(int64_t core, int64_t elements = 0) {
    sources_.push_back(r_.src.base + core * r_.src.stride + (r_.src_offset + elements) * bytes_);
  }
  void add_target(int64_t core, int64_t elements = 0) {
    targets_.push_back(r_.dst.base + core * r_.dst.stride + (r_.dst_offset + elements) * bytes_);
  }
  /// The sources and targets added since the last move form one move.
  void end_move() {
    const size_t s = moves_.empty() ? 0 : moves_.back().first_source + moves_.back().sources;
    const size_t t = moves_.empty() ? 0 : moves_.back().first_target + moves_.back().targets;
    moves_.push_back({s, sources_.size() - s, t, targets_.size() - t});
  }

  /// `elementwise`: a move may read the addresses that it writes, and none reads what another writes.
  void run(bool elementwise = false) {
    for (int64_t extent : r_.extents) {
      if (extent <= 0) return;
    }
    if (moves_.empty()) return;
    if (must_stage(elementwise)) stage();
    execute(normalise(r_.extents, src_strides(), r_.dst_strides, bytes_));
  }

 private:
  std::span<const int64_t> src_strides() const { return packed_strides_.empty() ? r_.src_strides : packed_strides_; }

  struct Range {
    const std::byte* low;
    const std::byte* high;
  };

  /// The bytes between the first and the last element of the box at every address.
  template <class Places>
  Range range(const Places& places, std::span<const int64_t> strides) const {
    int64_t low = 0, high = 0;
    for (size_t d = 0; d < strides.size(); ++d) {
      const int64_t reach = (r_.extents[d] - 1) * strides[d] * bytes_;
      (reach < 0 ? low : high) += reach;
    }
    const auto [first, last] = std::minmax_element(places.begin(), places.end());
    return {*first + low, *last + high + bytes_};
  }

  /// Could something be overwritten before it is read? Elementwise, a move may write the addresses that it reads,
  /// unless its box visits an element twice.
  bool must_stage(bool elementwise) const {
    const Range s = range(sources_, r_.src_strides), t = range(targets_, r_.dst_strides);
    if (s.high <= t.low || t.high <= s.low) return false;
    const bool same_places = r_.src.base == r_.dst.base && r_.src.stride == r_.dst.stride &&
                             r_.src_offset == r_.dst_offset && std::ranges::equal(r_.src_strides, r_.dst_strides);
    bool repeats = false;
    for (size_t d = 0; d < r_.extents.size(); ++d) repeats |= r_.extents[d] > 1 && r_.src_strides[d] == 0;
    return repeats || !same_places || !elementwise;
  }

  /// Copies every source box to packed memory of its own, from which the moves then read.
  void stage() {
    packed_strides_.assign(r_.extents.size(), 1);
    int64_t box_bytes = bytes_;
    for (size_t d = r_.extents.size(); d-- > 0;) {
      packed_strides_[d] = box_bytes / bytes_;
      box_bytes *= r_.extents[d];
    }
    std::unordered_map<const std::byte*, size_t> slots;
    for (const std::byte* source : sources_) slots.emplace(source, slots.size());
    staging_.resize(slots.size() * static_cast<size_t>(box_bytes));
    Exchange pack(r_, false);
    for (const auto& [source, slot] : slots) {
      pack.sources_.push_back(source);
      pack.targets_.push_back(staging_.data() + slot * static_cast<size_t>(box_bytes));
      pack.end_move();
    }
    pack.execute(normalise(r_.extents, r_.src_strides, packed_strides_, bytes_));
    for (const std::byte*& source : sources_)
      source = staging_.data() + slots.at(source) * static_cast<size_t>(box_bytes);
  }

  void execute(const RowBox& box) const {
    const int64_t pieces = (box.length + kRowPiece - 1) / kRowPiece;
    const int64_t per_move = box.rows * pieces;
    auto task = [&](int64_t begin, int64_t end, int) {
      for (int64_t unit = begin; unit < end; ++unit) {
        piece(moves_[static_cast<size_t>(unit / per_move)], box, unit % per_move / pieces, unit % pieces * kRowPiece);
      }
    };
    const int64_t units = per_move * static_cast<int64_t>(moves_.size());
    const int64_t bytes = box.elements * bytes_ * static_cast<int64_t>(std::max(sources_.size(), targets_.size()));
    // A grain of all units keeps a small exchange on this thread.
    const int64_t grain = bytes < kParallelBytes ? units : std::max<int64_t>(1, units / (bytes / (kParallelBytes / 4)));
    parallel_for(units, grain, task, r_.poll);
  }

  void piece(const Move& move, const RowBox& box, int64_t row, int64_t begin) const {
    int64_t src = begin * box.src_step, dst = begin * box.dst_step;
    for (size_t d = box.rank; d-- > 0; row /= box.extents[d]) {
      src += row % box.extents[d] * box.src[d];
      dst += row % box.extents[d] * box.dst[d];
    }
    const int64_t count = std::min(kRowPiece, box.length - begin);
    const SourceRows sources{{sources_.data() + move.first_source, move.sources}, src, box.src_step};
    const TargetRows targets{{targets_.data() + move.first_target, move.targets}, dst, box.dst_step};
    if (reduces_) {
      reduce_(sources, targets, count);
    } else {
      copy_row(sources, targets, count, bytes_);
    }
  }

  const CollectiveRequest& r_;
  int64_t bytes_;
  bool reduces_;
  ReduceRow reduce_ = nullptr;
  std::vector<const std::byte*> sources_;
  std::vector<std::byte*> targets_;
  std::vector<Move> moves_;
  std::vector<int64_t> packed_strides_;
  std::vector<std::byte> staging_;
};

/// The participating groups: a group's first member represents it.
Groups groups_of(const CollectiveRequest& r) {
  Groups groups{corners(r.mesh, ~r.axes), corners(r.mesh, r.axes)};
  std::erase_if(groups.bases, [&](int64_t base) { return !takes_part(r, base); });
  return groups;
}

}  // namespace

int64_t group_size(std::span<const int64_t> mesh, uint64_t axes) {
  int64_t size = 1;
  for (size_t a = 0; a < mesh.size(); ++a) {
    if (axes >> a & 1) size *= mesh[a];
  }
  return size;
}

bool takes_part(const CollectiveRequest& r, int64_t core) {
  return r.cores.empty() || std::binary_search(r.cores.begin(), r.cores.end(), core);
}

void HostCommunicator::all_gather(const CollectiveRequest& r) {
  Exchange exchange(r, false);
  const Groups groups = groups_of(r);
  for (int64_t base : groups.bases) {
    for (size_t k = 0; k < groups.members.size(); ++k) {
      exchange.add_source(base + groups.members[k]);
      for (int64_t me : groups.members) exchange.add_target(base + me, static_cast<int64_t>(k) * r.member_stride_dst);
      exchange.end_move();
    }
  }
  exchange.run();
}

void HostCommunicator::broadcast(const CollectiveRequest& r) {
  Exchange exchange(r, false);
  const Groups groups = groups_of(r);
  HELVE_CHECK(r.root >= 0 && r.root < static_cast<int64_t>(groups.members.size()),
              fmt::format("root {} is no member", r.root));
  for (int64_t base : groups.bases) {
    exchange.add_source(base + groups.members[static_cast<size_t>(r.root)]);
    for (int64_t me : groups.members) exchange.add_target(base + me);
    exchange.end_move();
  }
  exchange.run(true);
}

void HostCommunicator::all_reduce(const CollectiveRequest& r) {
  Exchange exchange(r, true);
  const Groups groups = groups_of(r);
  for (int64_t base : groups.bases) {
    for (int64_t k : groups.members) exchange.add_source(base + k);
    for (int64_t me : groups.members) exchange.add_target(base + me);
    exchange.end_move();
  }
  exchange.run(true);
}

void HostCommunicator::reduce_scatter(const CollectiveRequest& r) {
  Exchange exchange(r, true);
  const Groups groups = groups_of(r);
  for (int64_t base : groups.bases) {
    for (size_t me = 0; me < groups.members.size(); ++me) {
      for (int64_t k : groups.members) exchange.add_source(base + k, static_cast<int64_t>(me) * r.member_stride_src);
      exchange.add_target(base + groups.members[me]);
      exchange.end_move();
    }
  }
  exchange.run();
}

void HostCommunicator::all_to_all(const CollectiveRequest& r) {
  Exchange exchange(r, false);
  const Groups groups = groups_of(r);
  for (int64_t base : groups.bases) {
    for (size_t me = 0; me < groups.members.size(); ++me) {
      for (size_t k = 0; k < groups.members.size(); ++k) {
        exchange.add_source(base + groups.members[k], static_cast<int64_t>(me) * r.member_stride_src);
        exchange.add_target(base + groups.members[me], static_cast<int64_t>(k) * r.member_stride_dst);
        exchange.end_move();
      }
    }
  }
  exchange.run();
}

void HostCommunicator::permute(const CollectiveRequest& r) {
  Exchange exchange(r, false);
  for (const Peer& peer : r.peers) {
    if (!takes_part(r, peer.destination)) continue;
    exchange.add_source(peer.source);
    exchange.add_target(peer.destination);
    exchange.end_move();
  }
  exchange.run();
}

void HostCommunicator::barrier(const CollectiveRequest&) {
}  // a step begins when all tasks of the step before have ended

void Communicator::run(CollectiveKind kind, const CollectiveRequest& request) {
  switch (kind) {
    case CollectiveKind::AllGather: return all_gather(request);
    case CollectiveKind::Broadcast: return broadcast(request);
    case CollectiveKind::AllReduce: return all_reduce(request);
    case CollectiveKind::ReduceScatter: return reduce_scatter(request);
    case CollectiveKind::AllToAll: return all_to_all(request);
    case CollectiveKind::Permute: return permute(request);
    case CollectiveKind::Barrier: return barrier(request);
  }
  HELVE_FAIL("an unknown collective");
}

}  // namespace helve::runtime
