// Boxes of all devices as moves in memory.
// Senders of one box differ in the axes of terms alone, so that it lies at one place in the part of each.
#include "helve/plan/local_exchange.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "boxes.h"
#include "helve/runtime/box_moves.h"
#include "helve/support/diagnostic.h"
#include "helve/support/strided_box.h"
#include "reduce_op.h"

namespace helve {

namespace {

int64_t offset_of(const LocalExchange::End& end, const LocalPart& part) {
  int64_t out = 0;
  for (size_t d = 0; d < end.begin.size(); ++d) out += end.begin[d] * part.strides[d];
  return out;
}

}  // namespace

void LocalMoves::run(runtime::InterruptPoll* poll) {
  pack_.run(poll);
  moves_.run(poll);
}

const std::byte* LocalMoves::packed(std::span<const int64_t> extents, std::span<const int64_t> strides,
                                    std::span<const int64_t> compact, const std::byte* source, int64_t bytes) {
  std::vector<std::byte>& made = memory_.emplace_back(static_cast<size_t>(extents[0] * compact[0] * bytes));
  pack_.add_source(source);
  pack_.add_target(made.data());
  pack_.end_move(pack_.add_box(extents, strides, compact));
  return made.data();
}

std::optional<int64_t> overlapping_part(std::span<const LocalPart> sources, std::span<const LocalPart> targets,
                                        int64_t element_bytes) {
  struct Place {
    const std::byte *low, *high;  ///< the bytes between are what it may touch
    const LocalPart* part;
    int64_t target;  ///< its device; -1: a source
  };
  std::vector<Place> places;
  const auto add = [&](const LocalPart& part, int64_t target) {
    if (part.data == nullptr || std::ranges::find(part.extents, 0) != part.extents.end()) return;
    Place place{part.data, part.data + element_bytes, &part, target};
    for (size_t d = 0; d < part.extents.size(); ++d) {
      const int64_t reach = (part.extents[d] - 1) * part.strides[d] * element_bytes;
      (reach < 0 ? place.low : place.high) += reach;
    }
    places.push_back(place);
  };
  for (const LocalPart& source : sources) add(source, -1);
  for (size_t k = 0; k < targets.size(); ++k) {
    add(targets[k], static_cast<int64_t>(k));
    const LocalPart& part = targets[k];
    if (part.data != nullptr && !strides_nest(part.extents, part.strides) &&
        separation(part.extents, part.strides).kind != Separation::Apart)
      return static_cast<int64_t>(k);
  }
  std::ranges::sort(places, {}, &Place::low);
  const auto box = [&](const LocalPart& part, std::vector<int64_t>& strides) {
    strides.assign(part.strides.begin(), part.strides.end());
    for (int64_t& stride : strides) stride *= element_bytes;
    return StridedBox{part.data, part.extents, strides, element_bytes};
  };
  std::vector<const Place*> open;  // those that may reach the next one
  std::vector<int64_t> a, b;
  for (const Place& place : places) {
    std::erase_if(open, [&](const Place* each) { return each->high <= place.low; });
    for (const Place* each : open) {
      if (each->target < 0 && place.target < 0) continue;
      if (share_memory(box(*each->part, a), box(*place.part, b))) return std::max(each->target, place.target);
    }
    open.push_back(&place);
  }
  return std::nullopt;
}

LocalExchange::LocalExchange(const Transfer& transfer) : terms_(transfer.terms()), op_(transfer.op()) {
  const std::vector<MeshAxis>& mesh = transfer.from().mesh;
  std::vector<int64_t> extents;
  for (const MeshAxis& each : mesh) {
    extents.push_back(each.extent);
    devices_ *= each.extent;
  }
  // By senders and box: what all its receivers get is one move.
  std::map<std::tuple<std::vector<int64_t>, std::vector<int64_t>, std::vector<int64_t>>, size_t> known;
  for_each_index(extents, [&](const std::vector<int64_t>& receiver) {
    const Box mine = box_of(transfer.to(), receiver);
    const std::vector<TransferBox> boxes = transfer.received(receiver);
    for (size_t k = 0; k < boxes.size(); k += static_cast<size_t>(terms_)) {
      const TransferBox& box = boxes[k];
      if (std::ranges::find(box.extents, 0) != box.extents.end()) continue;
      std::vector<int64_t> senders;
      for (size_t t = 0; t < static_cast<size_t>(terms_); ++t) senders.push_back(rank_of(boxes[k + t].peer, mesh));
      const auto [place, is_new] = known.try_emplace({senders, box.begin, box.extents}, moves_.size());
      if (is_new) {
        Move& move = moves_.emplace_back(Move{box.extents, {}, {}});
        for (size_t t = 0; t < senders.size(); ++t)
          move.senders.push_back({senders[t], within(box.begin, box_of(transfer.from(), boxes[k + t].peer))});
      }
      moves_[place->second].receivers.push_back({rank_of(receiver, mesh), within(box.begin, mine)});
    }
  });
}

LocalMoves LocalExchange::prepare(std::span<const LocalPart> sources, std::span<const LocalPart> targets,
                                  runtime::DLDataType dtype) const {
  LocalMoves out(dtype, terms_ > 1 ? std::optional(reduce_op(op_)) : std::nullopt);
  const int64_t bytes = runtime::element_bytes(dtype);
  const auto part_of = [](std::span<const LocalPart> parts, const End& end) -> const LocalPart& {
    const LocalPart& part = parts[static_cast<size_t>(end.device)];
    HELVE_CHECK(part.data != nullptr && part.strides.size() == end.begin.size(), "a device without its part");
    return part;
  };
  const auto same_strides = [](const Move& move, std::span<const int64_t> a, std::span<const int64_t> b) {
    for (size_t d = 0; d < move.extents.size(); ++d) {
      if (move.extents[d] > 1 && a[d] != b[d]) return false;
    }
    return true;
  };
  std::vector<const std::byte*> from;
  for (const Move& move : moves_) {
    from.clear();
    std::span<const int64_t> strides = part_of(sources, move.senders[0]).strides;
    bool alike = true;
    for (const End& sender : move.senders) {
      const LocalPart& part = part_of(sources, sender);
      alike = alike && same_strides(move, strides, part.strides);
      from.push_back(part.data + offset_of(sender, part) * bytes);
    }
    const std::vector<int64_t> compact = runtime::compact_strides(move.extents);
    if (!alike) {  // a reduction reads all its sources by one form
      for (size_t t = 0; t < from.size(); ++t)
        from[t] = out.packed(move.extents, part_of(sources, move.senders[t]).strides, compact, from[t], bytes);
      strides = compact;
    }
    for (size_t r = 0; r < move.receivers.size();) {  // receivers of equal strides share a move
      const std::span<const int64_t> form = part_of(targets, move.receivers[r]).strides;
      for (const std::byte* source : from) out.moves_.add_source(source);
      for (; r < move.receivers.size(); ++r) {
        const LocalPart& part = part_of(targets, move.receivers[r]);
        if (!same_strides(move, form, part.strides)) break;
        out.moves_.add_target(part.data + offset_of(move.receivers[r], part) * bytes);
      }
      out.moves_.end_move(out.moves_.add_box(move.extents, strides, form));
    }
  }
  return out;
}

}  // namespace helve
