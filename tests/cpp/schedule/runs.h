// What runs of the old and of the new region say of a rewrite: instances, orders, values.
// The oracle of the checker, with which it shares nothing; statements without an origin copy an element.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/run_order.h"
#include "rewrites.h"

namespace helve::testing {

using Key = std::pair<size_t, std::vector<int64_t>>;  ///< a statement of the old region and its instance

/// What the two runs say: the instances of both, and where the new one ran them.
class Runs {
 public:
  Runs(const Stmt& before, const Rewritten& after, const Assignment& around)
      : old_(RegionRun(before, around).ran), new_(RegionRun(after.region, around).ran) {
    std::unordered_map<size_t, const Origin*> origins;
    for (const Origin& origin : after.origins) origins[origin.after_visit] = &origin;
    for (size_t n = 0; n < old_.size(); ++n) old_at_[{old_[n].visit, old_[n].at}] = n;
    for (size_t n = 0; n < new_.size(); ++n) {
      if (!origins.contains(new_[n].visit)) {
        came_from_.push_back(kCopies);
        continue;
      }
      const Origin& origin = *origins.at(new_[n].visit);
      std::vector<int64_t> at;
      for (const auto& [var, value] : origin.values)
        at.push_back(static_cast<int64_t>(*evaluate(value, new_[n].where)));
      new_at_[{origin.before_visit, at}].push_back(n);
      came_from_.emplace_back(origin.before_visit, at);
    }
    old_counts_ = counting(old_);
    new_counts_ = counting(new_);
  }

  bool ran(const Key& key) const { return old_at_.contains(key); }
  size_t runs_now(const Key& key) const { return new_at_.contains(key) ? new_at_.at(key).size() : 0; }

  /// Do two old instances depend on each other, the first one first?
  bool depend(const Key& a, const Key& b) const {
    if (!ran(a) || !ran(b)) return false;
    const size_t i = old_at_.at(a), k = old_at_.at(b);
    return i < k && conflict(old_[i], old_[k]) && !have_no_order(old_[i], old_[k]);
  }
  /// Are two old instances, which count once, in this order now?
  bool keep_order(const Key& a, const Key& b) const {
    const size_t i = place_now(a), k = place_now(b);
    if (have_no_order(new_[i], new_[k])) return false;
    const size_t old_i = old_at_.at(a), old_k = old_at_.at(b);
    const bool meet = conflict(old_[old_i], old_[old_k]);
    return i < k || (meet ? only_update(old_[old_i], old_[old_k]) : only_update(new_[i], new_[k]));
  }
  /// Do they meet in the new program only, the first one first in the old one?
  bool meet_now(const Key& a, const Key& b) const {
    if (!ran(a) || !ran(b)) return false;
    const size_t i = old_at_.at(a), k = old_at_.at(b);
    return i < k && !have_no_order(old_[i], old_[k]) && conflict(new_[new_at_.at(a)[0]], new_[new_at_.at(b)[0]]);
  }

  /// Instances of which nobody sees what they write may run as often as they like, wherever they like.
  bool legal() const {
    for (const auto& [key, n] : old_at_) {
      if (!old_counts_[n]) continue;
      if (runs_now(key) == 0) return false;
      const std::vector<size_t>& now = new_at_.at(key);
      if (std::count_if(now.begin(), now.end(), [&](size_t each) { return new_counts_[each]; }) != 1) return false;
    }
    for (const auto& [key, all] : new_at_) {
      for (const size_t n : all) {
        if (new_counts_[n] && !ran(key)) return false;
      }
    }
    for (const auto& [a, i] : old_at_) {
      for (const auto& [b, k] : old_at_) {
        if (i < k && old_counts_[i] && old_counts_[k] && depend(a, b) && !keep_order(a, b)) return false;
      }
    }
    return breaks_promise() || same_values();
  }

  /// Those of the statements `any_number` need not.
  bool all_run_once(const std::set<size_t>& any_number = {}) const {
    const bool none_added =
        std::all_of(new_at_.begin(), new_at_.end(), [&](const auto& each) { return ran(each.first); });
    return none_added && std::all_of(old_at_.begin(), old_at_.end(), [&](const auto& each) {
             return any_number.contains(each.first.first) || runs_now(each.first) == 1;
           });
  }

  /// Do iterations without order touch one element of the buffers now, unless the old program did so?
  bool meets_without_order(const std::set<const Buffer*>& buffers) const {
    for (size_t i = 0; i < new_.size(); ++i) {
      for (size_t k = i + 1; k < new_.size(); ++k) {
        if (!have_no_order(new_[i], new_[k])) continue;
        for (const Touch& x : new_[i].touches) {
          for (const Touch& y : new_[k].touches) {
            if (buffers.contains(x.buffer) && conflict(x, y)) return true;
          }
        }
      }
    }
    return false;
  }

  /// Do iterations without order conflict in the old program, against their loop's promise?
  bool breaks_promise() const {
    for (size_t i = 0; i < old_.size(); ++i) {
      for (size_t k = i + 1; k < old_.size(); ++k) {
        if (conflict(old_[i], old_[k]) && have_no_order(old_[i], old_[k])) return true;
      }
    }
    return false;
  }

  /// Does every read that counts see the same writes, if it saw any, and are the last ones the same? An update reads
  /// what it updates only if `updates_read`.
  bool same_values(bool updates_read = false) const {
    std::vector<Key> old_keys;
    for (const Ran& each : old_) old_keys.emplace_back(each.visit, each.at);
    const auto [seen, left] = values(old_, old_keys, updates_read);
    const auto [seen_now, left_now] = values(new_, came_from_, updates_read);
    for (size_t n = 0; n < new_.size(); ++n) {
      if (came_from_[n] == kCopies || (!updates_read && !new_counts_[n])) continue;
      if (!ran(came_from_[n])) return false;
      const std::vector<Value>& was = seen[old_at_.at(came_from_[n])];
      for (size_t r = 0; r < was.size(); ++r) {
        if (was[r].known() && was[r] != seen_now[n].at(r)) return false;
      }
    }
    return left == left_now;
  }

  /// Is the fault one?
  bool confirms(const Dependences& before, const Legality& found) const {
    const auto key_of = [&](const std::optional<Instance>& instance) {
      Key out;
      for (const RegionStatement& s : before.statements) {
        if (s.stmt == instance->stmt) out.first = s.visit;
      }
      for (const auto& [var, value] : instance->at) out.second.push_back(value);
      return out;
    };
    const Key a = key_of(found.first);
    switch (found.fault) {
      case RewriteFault::Lost: return ran(a) && runs_now(a) == 0;
      case RewriteFault::Twice: return runs_now(a) > 1;
      case RewriteFault::Added: return !ran(a) && runs_now(a) > 0;
      case RewriteFault::Turned:
      case RewriteFault::AtOnce: {
        const Key b = key_of(found.second);
        return (depend(a, b) || meet_now(a, b)) && !keep_order(a, b) &&
               have_no_order(new_[new_at_.at(a)[0]], new_[new_at_.at(b)[0]]) == (found.fault == RewriteFault::AtOnce);
      }
      case RewriteFault::Memory: {
        const Key b = key_of(found.second);
        return depend(a, b) && !meet_now(a, b);
      }
      case RewriteFault::Shared: return meets_without_order({found.first->access->buffer.get()});
      default: return false;
    }
  }

 private:
  using Element = std::tuple<const Buffer*, size_t, std::vector<int64_t>>;
  /// What an element holds: what an instance wrote, or an element of outside held at first, and the updates since.
  struct Value {
    std::optional<Key> write;
    std::optional<Element> first;
    std::multiset<Key> updates = {};
    bool known() const { return write || first; }
    bool operator==(const Value&) const = default;
  };
  static inline const Key kCopies{SIZE_MAX, {}};  ///< of a statement that copies an element

  /// What the reads of each run see, in their order, and what memory outside of the region holds in the end.
  static std::pair<std::vector<std::vector<Value>>, std::map<Element, Value>> values(const std::vector<Ran>& ran,
                                                                                     const std::vector<Key>& keys,
                                                                                     bool updates_read) {
    std::map<Element, Value> memory;
    std::vector<std::vector<Value>> seen(ran.size());
    const auto at = [&](const Touch& touch) -> Value& {
      const Element element{touch.buffer, touch.memory, touch.element};
      const auto [value, fresh] = memory.try_emplace(element);
      if (fresh && touch.memory == 0) value->second.first = element;
      return value->second;
    };
    for (size_t n = 0; n < ran.size(); ++n) {
      if (keys[n] == kCopies) {
        const Value value = at(ran[n].touches.at(0));
        at(ran[n].touches.at(1)) = value;
        continue;
      }
      std::vector<Value>& reads = seen[n];
      for (const Touch& touch : ran[n].touches) {
        Value& value = at(touch);
        if (!touch.write) {
          if (touch.mode == StoreMode::Write || updates_read) reads.push_back(value);
        } else if (touch.mode == StoreMode::Write) {
          value = {keys[n], {}};
        } else {
          value.updates.insert(keys[n]);
        }
      }
    }
    std::erase_if(memory, [](const auto& each) {
      const auto& [element, value] = each;
      return std::get<1>(element) != 0 || (value.first == element && value.updates.empty());
    });
    return {seen, memory};
  }

  /// Where an old instance runs now, where that counts if it does anywhere.
  size_t place_now(const Key& key) const {
    const std::vector<size_t>& all = new_at_.at(key);
    const auto counts = std::find_if(all.begin(), all.end(), [&](size_t n) { return new_counts_[n]; });
    return counts == all.end() ? all.front() : *counts;
  }

  /// Of each instance, is something that it writes seen: outside of the region, or by an instance that counts?
  static std::vector<bool> counting(const std::vector<Ran>& ran) {
    std::vector<bool> out(ran.size());
    std::set<Element> wanted;
    for (size_t n = ran.size(); n-- > 0;) {
      const auto element = [](const Touch& touch) { return Element{touch.buffer, touch.memory, touch.element}; };
      for (const Touch& touch : ran[n].touches) {
        out[n] = out[n] || (touch.write && (touch.memory == 0 || wanted.contains(element(touch))));
      }
      if (!out[n]) continue;
      for (const Touch& touch : ran[n].touches) {
        if (touch.write && touch.mode == StoreMode::Write) wanted.erase(element(touch));
      }
      for (const Touch& touch : ran[n].touches) {
        if (!touch.write) wanted.insert(element(touch));
      }
    }
    return out;
  }

  std::vector<Ran> old_, new_;
  std::vector<bool> old_counts_, new_counts_;  ///< of each instance
  std::vector<Key> came_from_;  ///< of the new instances
  std::map<Key, size_t> old_at_;
  std::map<Key, std::vector<size_t>> new_at_;
};

}  // namespace helve::testing
