// Pairs of accesses that may touch one element and conflict.
// Of one buffer, a sweep over the begins of hulls finds in each dimension the pairs that intersect there; those of the
// dimension with the fewest are compared in the others.
#include "access_pairs.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <unordered_map>

#include "helve/arith/sum.h"
#include "helve/ir/expr/equal.h"
#include "helve/ir/tensor/shared_place.h"
#include "helve/ir/tensor/visit.h"
#include "helve/support/hash.h"

namespace helve {

namespace {

constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();
constexpr int64_t kHighest = std::numeric_limits<int64_t>::max();

/// First and last index of a dimension; kLowest and kHighest if they are unknown.
struct Hull {
  int64_t first;
  int64_t last;
  bool intersects(const Hull& other) const { return first <= other.last && other.first <= last; }
};
using Box = std::vector<Hull>;

/// An access in coordinates that are comparable with those of others of its kind.
struct Placed {
  size_t at;
  bool write;
  Box box;
};

Box box_of(const Access& access, const Facts& facts) {
  Box out;
  for (const Range& range : access.ranges) {
    const Interval begin = interval_of(range.begin, facts);
    const Interval last = range.point ? begin : begin + interval_of(range.extent, facts) + Interval::point(-1);
    out.push_back({begin.low.value_or(kLowest), last.high.value_or(kHighest)});
  }
  return out;
}

/// Calls `f` with the positions of each two boxes, one of them written, that intersect in dimension `d`, as long as it
/// returns true.
template <class F>
void sweep(const std::vector<Placed>& boxes, size_t d, F&& f) {
  std::vector<size_t> order(boxes.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return boxes[a].box[d].first < boxes[b].box[d].first; });
  std::vector<size_t> open[2];  // begun and not yet known to have ended: read, written
  for (const size_t next : order) {
    for (const bool written : {true, false}) {
      if (!written && !boxes[next].write) continue;
      std::erase_if(open[written], [&](size_t each) { return boxes[each].box[d].last < boxes[next].box[d].first; });
      for (const size_t each : open[written]) {
        if (!f(each, next)) return;
      }
    }
    open[boxes[next].write].push_back(next);
  }
}

size_t best_dimension(const std::vector<Placed>& boxes) {
  size_t best = 0;
  size_t fewest = boxes.size() * boxes.size();
  for (size_t d = 0; d < boxes[0].box.size(); ++d) {
    size_t count = 0;
    sweep(boxes, d, [&](size_t, size_t) { return ++count < fewest; });
    if (count < fewest) std::tie(best, fewest) = std::pair(d, count);
  }
  return best;
}

uint64_t hash_of(const Access& t) {
  uint64_t hash = hash_mix(reinterpret_cast<uintptr_t>(t.buffer.get()), t.write);
  if (!t.path.empty()) hash = hash_mix(hash, reinterpret_cast<uintptr_t>(t.path.back().get()));
  for (const Range& range : t.ranges) {
    hash = hash_mix(hash_mix(hash, structural_hash(range.begin)), structural_hash(range.extent));
  }
  return hash;
}

bool intersect(const Box& a, const Box& b) {
  for (size_t d = 0; d < a.size(); ++d) {
    if (!a[d].intersects(b[d])) return false;
  }
  return true;
}

bool same(const Access& a, const Access& b) { return a.write == b.write && a.mode == b.mode && same_elements(a, b); }

}  // namespace

bool same_elements(const Access& a, const Access& b) {
  if (a.buffer != b.buffer || a.tiles != b.tiles || a.placed != b.placed || a.may_pass_end != b.may_pass_end ||
      a.path != b.path) {
    return false;
  }
  for (size_t d = 0; d < a.ranges.size(); ++d) {
    const Range &x = a.ranges[d], &y = b.ranges[d];
    if (x.point != y.point || !same_expr(x.begin, y.begin) || !same_expr(x.extent, y.extent)) return false;
  }
  return true;
}

std::vector<Alike> alike(const std::vector<const Access*>& accesses) {
  std::vector<Alike> out;
  std::unordered_map<uint64_t, std::vector<size_t>> of;  // positions in `out`
  for (size_t i = 0; i < accesses.size(); ++i) {
    std::vector<size_t>& candidates = of[hash_of(*accesses[i])];
    const auto known = std::find_if(candidates.begin(), candidates.end(),
                                    [&](size_t each) { return same(*accesses[out[each].first], *accesses[i]); });
    if (known == candidates.end()) {
      candidates.push_back(out.size());
      out.push_back({i, i});
    } else if (Alike& each = out[*known];
               each.second == each.first && accesses[each.first]->visit != accesses[i]->visit) {
      each.second = i;
    }
  }
  return out;
}

namespace {

/// Adds the pairs of accesses to one buffer.
void add_intersecting(const std::vector<const Access*>& accesses, PathFacts& facts,
                      std::vector<std::pair<size_t, size_t>>& out) {
  // Coordinates are elements or tiles, of the tensor or of a core's block of it.
  using Kind = std::tuple<bool, const MeshTensor*>;
  std::map<const Buffer*, std::map<Kind, std::vector<Placed>>> buffers;
  std::unordered_map<const Buffer*, size_t> count;
  for (const Access* t : accesses) ++count[t->buffer.get()];
  for (size_t i = 0; i < accesses.size(); ++i) {
    const Access& t = *accesses[i];
    if (conflict(t, t)) out.emplace_back(i, i);
    if (count.at(t.buffer.get()) == 1) continue;  // meets nothing else, wherever it is
    buffers[t.buffer.get()][{t.tiles, t.placed}].push_back({i, t.write, box_of(t, facts.after(t.path))});
  }
  const auto add = [&](size_t i, size_t k) {
    if (conflict(*accesses[i], *accesses[k])) out.emplace_back(std::min(i, k), std::max(i, k));
  };
  for (const auto& [buffer, kinds] : buffers) {
    for (auto kind = kinds.begin(); kind != kinds.end(); ++kind) {
      const std::vector<Placed>& boxes = kind->second;
      for (auto other = std::next(kind); other != kinds.end(); ++other) {
        for (const Placed& a : boxes) {
          for (const Placed& b : other->second) add(a.at, b.at);
        }
      }
      if (buffer->rank() == 0) {
        for (size_t i = 0; i < boxes.size(); ++i) {
          for (size_t k = i + 1; k < boxes.size(); ++k) add(boxes[i].at, boxes[k].at);
        }
        continue;
      }
      sweep(boxes, best_dimension(boxes), [&](size_t i, size_t k) {
        if (intersect(boxes[i].box, boxes[k].box)) add(boxes[i].at, boxes[k].at);
        return true;
      });
    }
  }
}

}  // namespace

SharedNames::SharedNames(const Function& f) : function_(f) {
  walk(f.body, [&](const Stmt& s) {
    if (const Peer* peer = as<Peer>(s)) peers_.insert(peer->buffer.get());
    if (const Alloc* made = as<Alloc>(s)) placed_ |= made->buffer->offset.has_value();
  });
}

bool SharedNames::any() const { return !function_.may_alias.empty() || !peers_.empty() || placed_; }

bool SharedNames::may_share(const Buffer& a, const Buffer& b) const {
  if (a.offset && b.offset) return share_memory(a, b);
  if (peers_.contains(&a) || peers_.contains(&b)) return a.scope == b.scope;
  return may_overlap(function_.may_alias, &a, &b);
}

std::vector<std::pair<size_t, size_t>> conflicting_pairs(const std::vector<const Access*>& accesses,
                                                         const SharedNames& names, PathFacts& facts) {
  std::vector<std::pair<size_t, size_t>> out;
  add_intersecting(accesses, facts, out);
  for (size_t i = 0; names.any() && i < accesses.size(); ++i) {
    for (size_t k = i + 1; k < accesses.size(); ++k) {
      const Access &a = *accesses[i], &b = *accesses[k];
      if (a.buffer != b.buffer && conflict(a, b) && names.may_share(*a.buffer, *b.buffer)) out.emplace_back(i, k);
    }
  }
  return out;
}

}  // namespace helve
