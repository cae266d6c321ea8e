// Reads in pairs, old and new.
// A read of staged memory that is none of them is one that nobody would judge.
#include "reads.h"

#include <algorithm>
#include <set>

namespace helve::legality {

namespace {

bool is_staged(const Rewrite& rewrite, const Access& access) { return rewrite.staged.contains(access.buffer.get()); }

/// A load that occurs several times reads under the conditions of each place, so that each old read is compared with
/// each new one.
bool add_loads(const Rewrite& rewrite, const Copy& copy, const RegionStatement& now, const std::vector<LoadPair>& loads,
               std::vector<Read>& out) {
  std::set<LoadPair> known;
  for (const LoadPair& pair : loads) {
    if (!known.insert(pair).second) continue;
    const auto olds = reads_by(rewrite.before.model.accesses, rewrite.was(copy), pair.first);
    const auto nows = reads_by(rewrite.after.accesses, now, pair.second);
    if (olds.empty() || nows.empty()) return false;
    for (const Access* was : olds) {
      for (const Access* is : nows) out.push_back({&copy, was, is});
    }
  }
  return true;
}

/// Is the new load in the place of no other old one? Else it need not see what this one saw where both are read.
bool stands_for_one(const Read& read, const std::vector<Read>& all) {
  return std::all_of(all.begin(), all.end(), [&](const Read& other) {
    if (!read.now || !other.now || other.now->load != read.now->load) return true;
    return other.copy == read.copy && other.was->load == read.was->load;
  });
}

}  // namespace

std::vector<const Access*> reads_by(const std::vector<Access>& all, const RegionStatement& s, const ExprNode* load) {
  std::vector<const Access*> found;
  for (size_t a = s.first; a < s.last; ++a) {
    if (!all[a].write && all[a].load == load) found.push_back(&all[a]);
  }
  return found;
}

bool reads_of(const Rewrite& rewrite, const Copy& copy, std::vector<Read>& out) {
  const std::vector<Access>&old = rewrite.before.model.accesses, &made = rewrite.after.accesses;
  const RegionStatement &was = rewrite.was(copy), &now = *copy.now;
  Matcher matcher(rewrite, copy);
  matcher.same_statement();
  if (!add_loads(rewrite, copy, now, matcher.moved(), out)) return false;
  const auto old_elements = reads_by(old, was, nullptr), new_elements = reads_by(made, now, nullptr);
  if (old_elements.size() != new_elements.size()) return false;
  for (size_t i = 0; i < old_elements.size(); ++i) {
    if (is_staged(rewrite, *old_elements[i]) || is_staged(rewrite, *new_elements[i])) {
      out.push_back({&copy, old_elements[i], new_elements[i]});
    }
  }
  for (const MatchedValue& value : matcher.inlined()) {
    for (const Access* read : reads_by(old, was, value.inlined->load)) {
      out.push_back({&copy, read, nullptr, value.inlined});
    }
    if (!add_loads(rewrite, *value.inlined->writer, now, value.loads, out)) return false;
  }
  // What stands in loops of unknown length is no load of the statement.
  std::set<const Access*> judged;
  for (Read& read : out) {
    read.certain = stands_for_one(read, out);
    judged.insert({read.was, read.now});
  }
  const auto all_judged = [&](const std::vector<Access>& all, const RegionStatement& s) {
    return std::all_of(all.begin() + static_cast<int64_t>(s.first), all.begin() + static_cast<int64_t>(s.last),
                       [&](const Access& a) { return a.write || !is_staged(rewrite, a) || judged.contains(&a); });
  };
  return all_judged(old, was) && all_judged(made, now);
}

}  // namespace helve::legality
