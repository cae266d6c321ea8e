// The checker next to runs of the old and the new region.
#include "helve/schedule/legality.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "analysis/random_nests.h"
#include "analysis/run_order.h"
#include "helve/print/printer.h"
#include "rewrites.h"

namespace helve::testing {
namespace {

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
      const Origin& origin = *origins.at(new_[n].visit);
      std::vector<int64_t> at;
      for (const auto& [var, value] : origin.values)
        at.push_back(static_cast<int64_t>(*evaluate(value, new_[n].where)));
      new_at_[{origin.before_visit, at}].push_back(n);
      came_from_.emplace_back(origin.before_visit, at);
    }
  }

  bool ran(const Key& key) const { return old_at_.contains(key); }
  size_t runs_now(const Key& key) const { return new_at_.contains(key) ? new_at_.at(key).size() : 0; }

  /// Do two old instances depend on each other, the first one first?
  bool depend(const Key& a, const Key& b) const {
    if (!ran(a) || !ran(b)) return false;
    const size_t i = old_at_.at(a), k = old_at_.at(b);
    return i < k && conflict(old_[i], old_[k]) && !have_no_order(old_[i], old_[k]);
  }
  /// Are two old instances, which run once, in this order now?
  bool keep_order(const Key& a, const Key& b) const {
    const size_t i = new_at_.at(a)[0], k = new_at_.at(b)[0];
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

  bool legal() const {
    if (new_.size() != old_.size()) return false;
    for (const auto& [key, at] : new_at_) {
      if (!ran(key) || at.size() != 1) return false;
    }
    for (const auto& [a, i] : old_at_) {
      for (const auto& [b, k] : old_at_) {
        if (i < k && depend(a, b) && !keep_order(a, b)) return false;
      }
    }
    return breaks_promise() || same_values();
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

  /// Does every read see the same writes, if it saw any, and are the last ones the same?
  bool same_values() const {
    std::vector<Key> old_keys;
    for (const Ran& each : old_) old_keys.emplace_back(each.visit, each.at);
    const auto [seen, left] = values(old_, old_keys);
    const auto [seen_now, left_now] = values(new_, came_from_);
    for (const auto& [key, was] : seen) {
      const std::vector<Value>& now = seen_now.at(key);
      for (size_t r = 0; r < was.size(); ++r) {
        if (was[r].known && (!now[r].known || was[r].write != now[r].write || was[r].updates != now[r].updates)) {
          return false;
        }
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
      default: return false;
    }
  }

 private:
  /// What an element holds: the instance that wrote it, none before the region, and the updates since.
  struct Value {
    bool known = false;  ///< memory of the region holds nothing at first
    std::optional<Key> write;
    std::multiset<Key> updates;
    bool operator==(const Value&) const = default;
  };
  using Element = std::tuple<const Buffer*, size_t, std::vector<int64_t>>;

  /// What the reads of each instance see, in their order, and what memory outside of the region holds in the end.
  static std::pair<std::map<Key, std::vector<Value>>, std::map<Element, Value>> values(const std::vector<Ran>& ran,
                                                                                       const std::vector<Key>& keys) {
    std::map<Element, Value> memory;
    std::map<Key, std::vector<Value>> seen;
    for (size_t n = 0; n < ran.size(); ++n) {
      std::vector<Value>& reads = seen[keys[n]];
      for (const Touch& touch : ran[n].touches) {
        const auto [at, fresh] = memory.try_emplace({touch.buffer, touch.memory, touch.element});
        Value& value = at->second;
        if (fresh) value.known = touch.memory == 0;
        if (!touch.write) {
          if (touch.mode == StoreMode::Write) reads.push_back(value);
        } else if (touch.mode == StoreMode::Write) {
          value = {true, keys[n], {}};
        } else {
          value.updates.insert(keys[n]);
        }
      }
    }
    std::erase_if(memory, [](const auto& each) {
      return std::get<1>(each.first) != 0 || (!each.second.write && each.second.updates.empty());
    });
    return {seen, memory};
  }

  std::vector<Ran> old_, new_;
  std::vector<Key> came_from_;  ///< of the new instances
  std::map<Key, size_t> old_at_;
  std::map<Key, std::vector<size_t>> new_at_;
};

struct Counts {
  int legal = 0, illegal = 0, unknown = 0;
};

void compare(uint32_t seed, bool plain, const VarRef& size, Counts& counts) {
  const FunctionRef f = RandomNest(seed, plain, size).make();
  RandomRewrite rewrite(seed, TreeOf::make(f->body));
  std::string steps;
  std::mt19937 random(seed);
  const int wanted = std::uniform_int_distribution<int>(1, 3)(random);
  for (int tries = 0, done = 0; tries < 60 && done < wanted; ++tries) {
    const std::string step = rewrite.step();
    done += !step.empty();
    steps += step.empty() ? "" : step + "; ";
  }
  const Rewritten after = rewritten(rewrite.tree());
  const ExactEngine engine(10'000'000);
  const Dependences before = dependences(*f, f->body, engine);
  const Legality found = check_rewrite(before, after.region, after.origins);
  const std::string program = "seed " + std::to_string(seed) + ": " + steps + "\n" + print(f->body) + "becomes\n" +
                              print(after.region) + "found " + std::string(to_string(found.verdict)) + " " +
                              text_of(found);
  if (found.verdict == Verdict::Unknown) {
    ++counts.unknown;
    ADD_FAILURE() << program;
    return;
  }
  const auto at = [&](int64_t n) { return Runs(f->body, after, size ? Assignment{{size.get(), n}} : Assignment{}); };
  if (found.verdict == Verdict::Refuted) {
    ++counts.illegal;
    const std::optional<int64_t> n = size ? value_in(found.given, size.get()) : std::nullopt;
    EXPECT_TRUE(at(n.value_or(2)).confirms(before, found)) << program;
    return;
  }
  ++counts.legal;
  for (int64_t n = 0; n < (size ? 6 : 1); ++n) EXPECT_TRUE(at(n).legal()) << program;
}

class RandomRewrites : public ::testing::TestWithParam<uint32_t> {};
TEST_P(RandomRewrites, AreLegalAsTheirRunsAre) {
  const uint32_t count = long_tests() ? 600 : 40;
  Counts counts;
  for (uint32_t n = 0; n < count && !HasFailure(); ++n) {
    const uint32_t seed = GetParam() * 1000 + n;
    compare(seed, n % 2 == 0, n % 3 == 0 ? make_var("n") : VarRef(), counts);
  }
  EXPECT_GT(counts.legal, static_cast<int>(count / 5));
  EXPECT_GT(counts.illegal, static_cast<int>(count / 5));
}
INSTANTIATE_TEST_SUITE_P(Legality, RandomRewrites, ::testing::Range(0u, 10u));

}  // namespace
}  // namespace helve::testing
