// Collectives between cores that are buffers of this process.
// Every collective is a list of moves (addresses combined, addresses written) of one box; one loop executes them all.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_map>
#include <vector>

#include "collective_moves.h"
#include "helve/runtime/box_moves.h"
#include "helve/runtime/communicator.h"
#include "helve/support/diagnostic.h"

namespace helve::runtime {

namespace {

class Exchange {
 public:
  Exchange(const CollectiveRequest& request, bool reduces)
      : r_(request),
        bytes_(element_bytes(request.dtype)),
        moves_(request.dtype, reduces ? std::optional(request.op) : std::nullopt) {}

  void add_source(int64_t core, int64_t elements) {
    moves_.add_source(r_.src.base + core * r_.src.stride + (r_.src_offset + elements) * bytes_);
  }
  void add_target(int64_t core, int64_t elements) {
    moves_.add_target(r_.dst.base + core * r_.dst.stride + (r_.dst_offset + elements) * bytes_);
  }
  /// The sources and targets added since the last move form one move.
  void end_move() { moves_.end_move(kBox); }

  /// `elementwise`: a move may read the addresses that it writes, and none reads what another writes.
  void run(bool elementwise = false) {
    for (int64_t extent : r_.extents) {
      if (extent <= 0) return;
    }
    if (moves_.empty()) return;
    if (must_stage(elementwise)) stage();
    moves_.add_box(r_.extents, packed_strides_.empty() ? r_.src_strides : packed_strides_, r_.dst_strides);
    moves_.run(r_.poll);
  }

 private:
  static constexpr size_t kBox = 0;  ///< all moves have one

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
    const auto [first, last] = std::ranges::minmax_element(places);
    return {*first + low, *last + high + bytes_};
  }

  /// Could something be overwritten before it is read? Elementwise, a move may write the addresses that it reads,
  /// unless its box visits an element twice.
  bool must_stage(bool elementwise) {
    const Range s = range(moves_.sources(), r_.src_strides), t = range(moves_.targets(), r_.dst_strides);
    if (s.high <= t.low || t.high <= s.low) return false;
    const bool same_places = r_.src.base == r_.dst.base && r_.src.stride == r_.dst.stride &&
                             r_.src_offset == r_.dst_offset && std::ranges::equal(r_.src_strides, r_.dst_strides);
    bool repeats = false;
    for (size_t d = 0; d < r_.extents.size(); ++d) repeats |= r_.extents[d] > 1 && r_.src_strides[d] == 0;
    return repeats || !same_places || !elementwise;
  }

  /// Copies every source box to packed memory of its own, from which the moves then read.
  void stage() {
    packed_strides_ = compact_strides(r_.extents);
    int64_t box_bytes = bytes_;
    for (int64_t extent : r_.extents) box_bytes *= extent;
    std::unordered_map<const std::byte*, size_t> slots;
    for (const std::byte* source : moves_.sources()) slots.emplace(source, slots.size());
    staging_.resize(slots.size() * static_cast<size_t>(box_bytes));
    BoxMoves pack(r_.dtype, std::nullopt);
    pack.add_box(r_.extents, r_.src_strides, packed_strides_);
    for (const auto& [source, slot] : slots) {
      pack.add_source(source);
      pack.add_target(staging_.data() + slot * static_cast<size_t>(box_bytes));
      pack.end_move(kBox);
    }
    pack.run(r_.poll);
    for (const std::byte*& source : moves_.sources())
      source = staging_.data() + slots.at(source) * static_cast<size_t>(box_bytes);
  }

  const CollectiveRequest& r_;
  int64_t bytes_;
  BoxMoves moves_;
  std::vector<int64_t> packed_strides_;
  std::vector<std::byte> staging_;
};

}  // namespace

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

void HostCommunicator::run(CollectiveKind kind, const CollectiveRequest& r) {
  if (kind == CollectiveKind::Barrier) return;  // a step begins when all tasks of the step before have ended
  Exchange exchange(r, reduces(kind));
  // A group's first member represents it.
  CoreGroups groups{corners(r.mesh, ~r.axes), corners(r.mesh, r.axes)};
  std::erase_if(groups.bases, [&](int64_t base) { return !takes_part(r, base); });
  list_moves(kind, r, groups, exchange);
  exchange.run(kind == CollectiveKind::AllReduce || kind == CollectiveKind::Reduce ||
               kind == CollectiveKind::Broadcast);
}

}  // namespace helve::runtime
