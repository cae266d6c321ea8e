// Memory that each iteration of a loop without order has for itself, although it is allocated outside.
// Dependences have such iterations in order and in one memory. A new program that keeps this order may give them one
// memory indeed; that is the same program only if each iteration reads nothing but what it wrote itself, and if what
// it wrote and what it reads stay in one iteration.
#include <fmt/format.h>

#include <algorithm>

#include "helve/arith/relation_algebra.h"
#include "helve/ir/expr/build.h"
#include "helve/ir/expr/chain.h"
#include "rewrite.h"

namespace helve::legality {

namespace {

/// Are both of one and the same element?
bool are_of_one_element(const Access& a, const Access& b) {
  return a.buffer == b.buffer && a.tiles == b.tiles &&
         std::equal(a.ranges.begin(), a.ranges.end(), b.ranges.begin(), b.ranges.end(),
                    [](const Range& x, const Range& y) { return x.point && y.point && same_expr(x.begin, y.begin); });
}

class PrivateCheck {
 public:
  explicit PrivateCheck(const Rewrite& rewrite) : rewrite_(rewrite) {}

  Legality run() {
    Legality out;
    out.verdict = Verdict::Proved;
    const Dependences& before = rewrite_.before;
    for (size_t r = 0; r < before.statements.size(); ++r) {
      const RegionStatement& reader = before.statements[r];
      for (size_t a = reader.first; a < reader.last; ++a) {
        const Access& read = before.model.accesses[a];
        const std::vector<size_t> loops = read.write ? std::vector<size_t>() : private_loops(reader, *read.buffer);
        if (!loops.empty()) worsen(out, judge(r, a, loops));
      }
    }
    return out;
  }

 private:
  /// The loops of the statement, by place, whose iterations have copies of the buffer.
  std::vector<size_t> private_loops(const RegionStatement& s, const Buffer& buffer) const {
    std::vector<size_t> out;
    for (size_t l = loops_around(rewrite_.before.model, buffer); l < s.loops.size(); ++l) {
      const StmtNode& loop = *s.loops[l]->stmt;
      if (is_independent(loop) && is_private(loop, buffer)) out.push_back(l);
    }
    return out;
  }

  /// The values of one iteration of those of the loops that stand around both, in pairs.
  std::vector<std::pair<Expr, Expr>> iteration(const Dependence& each, const std::vector<size_t>& loops) const {
    const RegionStatement &first = rewrite_.before.statements[each.first],
                          &second = rewrite_.before.statements[each.second];
    const size_t common = common_loops(first, second);
    std::vector<std::pair<Expr, Expr>> out;
    for (size_t l : loops) {
      if (l >= common) continue;
      for (const VarRef& var : first.loops[l]->vars) {
        const size_t at =
            static_cast<size_t>(std::find(first.vars.begin(), first.vars.end(), var) - first.vars.begin());
        out.emplace_back(var, each.second_vars[at]);
      }
    }
    return out;
  }

  /// May two instances in different iterations touch one element? By their subscripts alone, else by the relation.
  bool meet_across(const Dependence& each, const std::vector<size_t>& loops) const {
    const auto values = iteration(each, loops);
    const bool apart = std::all_of(values.begin(), values.end(), [&](const auto& value) {
      return rewrite_.before.never(each, apply(Op::Ne, {value.first, value.second}));
    });
    if (apart) return false;
    const std::optional<IntegerRelation> others = pairs(each, loops, false);
    return others && pairs_of(*others).emptiness().verdict != Verdict::Proved;
  }

  /// The pairs that are in one iteration of those of the loops that stand around both, or in different ones.
  std::optional<IntegerRelation> pairs(const Dependence& each, const std::vector<size_t>& loops, bool in_one) const {
    std::vector<Expr> agree;
    for (const auto& [one, other] : iteration(each, loops)) agree.push_back(apply(Op::Eq, {one, other}));
    if (agree.empty()) return std::nullopt;  // what stands outside is written before all iterations
    const std::optional<IntegerRelation>& all = rewrite_.before.pairs(each);
    if (!all) return std::nullopt;
    const RegionStatement& first = rewrite_.before.statements[each.first];
    const Expr condition = in_one ? conjunction(agree) : apply(Op::Not, {conjunction(agree)});
    std::vector<VarRef> tuple = first.vars;
    tuple.insert(tuple.end(), each.second_vars.begin(), each.second_vars.end());
    return intersection_of(*all, relation_of(IntegerSet(rewrite_.before.engine, tuple, condition), first.vars.size()));
  }

  Legality judge(size_t r, size_t a, const std::vector<size_t>& loops) {
    const Access& read = rewrite_.before.model.accesses[a];
    std::vector<const Dependence*> writes;
    bool meets_others = false;
    for (const Dependence& each : rewrite_.before.list) {
      if (each.second != r || !each.first_access || !each.second_access) continue;
      const Access& write = rewrite_.before.model.accesses[*each.first_access];
      if (write.buffer != read.buffer || !write.write) continue;
      writes.push_back(&each);
      meets_others = meets_others || meet_across(each, loops);
    }
    std::optional<IntegerSet> written;
    Legality out;
    out.verdict = Verdict::Proved;
    for (const Dependence* each : writes) {
      const bool together = stay_together(*each);
      if (together && !meets_others) continue;  // what it writes is no question
      const std::optional<IntegerRelation> own = pairs(*each, loops, true);
      if (!own || pairs_of(*own).emptiness().verdict == Verdict::Proved) continue;
      if (!together) return unknown(read, loops, r, "what it wrote and what it reads would be taken apart");
      const Access& write = rewrite_.before.model.accesses[*each->first_access];
      const Access& met = rewrite_.before.model.accesses[*each->second_access];  // stands for those alike
      const bool fills = std::all_of(write.ranges.begin(), write.ranges.end(), [](const Range& r) { return r.point; });
      if (write.mode != StoreMode::Write || !fills || !are_of_one_element(read, met)) continue;
      const IntegerSet range = renamed(range_of(*own), rewrite_.before.statements[r].vars);
      written = written ? union_of(*written, range) : range;
    }
    if (!meets_others) return out;
    for (const Copy& copy : rewrite_.copies) {
      if (copy.was != r) continue;
      const IntegerSet reads = range_of(instances_of(rewrite_, copy));
      if (written && reads.is_subset_of(*written).verdict == Verdict::Proved) continue;
      return unknown(read, loops, r, "one reads what it has not written");
    }
    return out;
  }

  /// Have the copies of both statements the same loops without order around them?
  bool stay_together(const Dependence& each) const {
    for (const Copy& one : rewrite_.copies) {
      for (const Copy& other : rewrite_.copies) {
        if (one.was != each.first || other.was != each.second) continue;
        const size_t common = common_loops(*one.now, *other.now);
        for (const RegionStatement* s : {one.now, other.now}) {
          for (size_t l = common; l < s->loops.size(); ++l) {
            const Buffer& buffer = *rewrite_.before.model.accesses[*each.first_access].buffer;
            if (is_independent(*s->loops[l]->stmt) && is_private(*s->loops[l]->stmt, buffer)) return false;
          }
        }
      }
    }
    return true;
  }

  Legality unknown(const Access& read, const std::vector<size_t>& loops, size_t r, const std::string& why) const {
    Legality out;
    const Step& loop = *rewrite_.before.statements[r].loops[loops.front()];
    out.reason = fmt::format("iterations over '{}' have '{}' for themselves, and {}", loop.vars.front()->name,
                             read.buffer->name, why);
    return out;
  }

  const Rewrite& rewrite_;
};

}  // namespace

Legality check_private(const Rewrite& rewrite) { return PrivateCheck(rewrite).run(); }

}  // namespace helve::legality
