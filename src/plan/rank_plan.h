// Boxes of one process as messages and moves, on whatever memory.
// A box that lies in one piece is sent, or received, where it is; others are packed, each once. What all members of a
// group get is cut into parts: each member reduces one, or gets one from the root, and then they pass them on.
#pragma once

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "helve/plan/rank_exchange.h"
#include "helve/support/diagnostic.h"

namespace helve {

using runtime::compact_strides;
using runtime::Message;

inline int64_t count_of(const std::vector<int64_t>& extents) {
  int64_t out = 1;
  for (int64_t extent : extents) out *= extent;
  return out;
}

inline bool in_one_piece(const std::vector<int64_t>& extents, std::span<const int64_t> strides) {
  const std::vector<int64_t> compact = compact_strides(extents);
  for (size_t d = 0; d < extents.size(); ++d) {
    if (extents[d] > 1 && strides[d] != compact[d]) return false;
  }
  return true;
}

/// Makes the moves of one process. `Out` has rounds of messages, the moves around them, and memory for what is packed.
template <class Out>
class RankPlan {
 public:
  RankPlan(const RankExchange& exchange, const LocalPart& source, const LocalPart& target, runtime::DLDataType dtype,
           Out& out)
      : x_(exchange), source_(source), target_(target), bytes_(runtime::element_bytes(dtype)), out_(out) {}

  void make() {
    // The decision must be the same on all members: their boxes have the same extents.
    const std::vector<int64_t>* box = !x_.received_.empty() ? &x_.received_.front().extents
                                      : !x_.sent_.empty()   ? &x_.sent_.front().extents
                                                            : nullptr;
    const bool cuts = x_.form_ == CollectiveForm::AllReduce || x_.form_ == CollectiveForm::Broadcast ||
                      x_.form_ == CollectiveForm::Reduce;
    if (cuts && x_.members_.size() > 2 && box != nullptr && count_of(*box) * bytes_ >= RankExchange::kCutBytes) {
      in_parts(*box);
    } else {
      directly();
    }
  }

 protected:
  using Round = typename Out::Round;

  std::byte* room(int64_t elements) { return out_.room(elements * bytes_); }

  static int64_t offset(const std::vector<int64_t>& begin, const LocalPart& part) {
    int64_t out = 0;
    for (size_t d = 0; d < begin.size(); ++d) out += begin[d] * part.strides[d];
    return out;
  }
  std::byte* address(const std::vector<int64_t>& begin, const LocalPart& part) const {
    HELVE_CHECK(part.data != nullptr && part.strides.size() == begin.size(), "a device without its part");
    return part.data + offset(begin, part) * bytes_;
  }

  static void copy(auto& moves, std::span<const int64_t> extents, const std::byte* from,
                   std::span<const int64_t> from_strides, std::byte* to, std::span<const int64_t> to_strides) {
    moves.add_source(from);
    moves.add_target(to);
    moves.end_move(moves.add_box(extents, from_strides, to_strides));
  }

  /// A box of the old part in one piece of memory: where it lies, or packed by the round.
  std::byte* piece(Round& round, const std::vector<int64_t>& begin, const std::vector<int64_t>& extents) {
    if (in_one_piece(extents, source_.strides)) return address(begin, source_);
    std::byte*& place = packed_[{begin, extents}];
    if (place == nullptr) {
      place = room(count_of(extents));
      copy(round.pack, extents, address(begin, source_), source_.strides, place, compact_strides(extents));
    }
    return place;
  }

  void directly() {
    Round& round = out_.add_round();
    for (const RankExchange::Sent& each : x_.sent_)
      round.sends.push_back({each.peer, piece(round, each.begin, each.extents), count_of(each.extents) * bytes_});
    for (const RankExchange::Received& each : x_.received_) {
      std::byte* target = address(each.begin, target_);
      const int64_t bytes = count_of(each.extents) * bytes_;
      if (each.senders.size() == 1 && each.senders.front() == x_.rank_) {
        copy(round.meanwhile, each.extents, address(each.own, source_), source_.strides, target, target_.strides);
      } else if (each.senders.size() == 1 && in_one_piece(each.extents, target_.strides)) {
        round.receives.push_back({each.senders.front(), target, bytes});
      } else {
        for (int64_t sender : each.senders) {
          std::byte* place = nullptr;
          if (sender == x_.rank_) {
            place = piece(round, each.own, each.extents);
          } else {
            place = room(count_of(each.extents));
            round.receives.push_back({sender, place, bytes});
          }
          round.finish.add_source(place);
        }
        round.finish.add_target(target);
        round.finish.end_move(round.finish.add_box(each.extents, compact_strides(each.extents), target_.strides));
      }
    }
  }

  void in_parts(const std::vector<int64_t>& extents) {
    const std::vector<int64_t>& members = x_.members_;
    const bool reduces = x_.op_.has_value(), to_all = x_.form_ != CollectiveForm::Reduce;
    const bool is_root = x_.rank_ == x_.root_;
    const auto me = static_cast<size_t>(std::ranges::find(members, x_.rank_) - members.begin());
    const int64_t elements = count_of(extents), count = static_cast<int64_t>(members.size());
    const int64_t part = (elements + count - 1) / count;
    const auto begin = [&](size_t k) { return std::min(elements, static_cast<int64_t>(k) * part) * bytes_; };
    const auto length = [&](size_t k) { return begin(k + 1) - begin(k); };
    const auto add = [&](std::vector<Message>& list, size_t k, std::byte* data, int64_t bytes) {
      if (k != me && bytes > 0) list.push_back({members[k], data, bytes});
    };

    Round& first = out_.add_round();
    const std::byte* old = nullptr;  // all of the box as this process has it
    if (reduces || is_root) {
      const std::vector<int64_t>* from = !x_.sent_.empty() ? &x_.sent_.front().begin : &x_.received_.front().own;
      old = piece(first, *from, extents);
    }
    std::byte* const given = const_cast<std::byte*>(old);  // messages that are sent are only read
    // The new box in one piece: the target where it lies so.
    const bool has_new = to_all || is_root;
    const bool in_place = has_new && !x_.received_.empty() && in_one_piece(extents, target_.strides);
    std::byte* const made = in_place  ? address(x_.received_.front().begin, target_)
                            : has_new ? room(elements)
                                      : room(part) - begin(me);
    if (reduces) {
      for (size_t k = 0; k < members.size(); ++k) {
        add(first.sends, k, given + begin(k), length(k));
        if (length(me) == 0) continue;
        std::byte* term = k == me ? given + begin(me) : room(part);
        add(first.receives, k, term, length(me));
        first.finish.add_source(term);
      }
      if (length(me) > 0) {
        const std::vector<int64_t> row = {length(me) / bytes_}, step = {1};
        first.finish.add_target(made + begin(me));
        first.finish.end_move(first.finish.add_box(row, step, step));
      }
    } else if (is_root) {
      for (size_t k = 0; k < members.size(); ++k) add(first.sends, k, given + begin(k), length(k));
    } else {
      first.receives.push_back({x_.root_, made + begin(me), length(me)});
      if (length(me) == 0) first.receives.pop_back();
    }

    Round& second = out_.add_round();
    std::byte* const mine = (!reduces && is_root ? given : made) + begin(me);
    for (size_t k = 0; k < members.size(); ++k) {
      const bool it_is_root = members[k] == x_.root_;
      if (reduces ? to_all || it_is_root : !it_is_root) add(second.sends, k, mine, length(me));
      if (reduces ? has_new : !is_root) add(second.receives, k, made + begin(k), length(k));
    }
    if (!reduces && is_root) {  // it has all of it already
      copy(second.meanwhile, extents, given, compact_strides(extents), address(x_.received_.front().begin, target_),
           target_.strides);
    } else if (has_new && !in_place) {
      copy(second.finish, extents, made, compact_strides(extents), address(x_.received_.front().begin, target_),
           target_.strides);
    }
  }

  const RankExchange& x_;
  const LocalPart& source_;
  const LocalPart& target_;
  int64_t bytes_;
  Out& out_;
  std::map<std::pair<std::vector<int64_t>, std::vector<int64_t>>, std::byte*> packed_;
};

}  // namespace helve
