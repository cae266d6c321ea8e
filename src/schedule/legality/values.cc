// Does every read of staged memory see the value that it saw, and does memory hold the same in the end?
// Staged is a buffer whose elements the rewrite copies to another place and back. The order of its accesses is no
// question then; what they see is. Other buffers are judged by the order of their accesses (order.cc).
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "helve/analysis/effects.h"
#include "helve/analysis/path_conditions.h"
#include "helve/arith/relation_algebra.h"
#include "helve/ir/expr/chain.h"
#include "reads.h"

namespace helve::legality {

namespace {

size_t longest(const std::vector<RegionStatement>& statements) {
  size_t out = 0;
  for (const RegionStatement& s : statements) out = std::max(out, s.vars.size());
  return out;
}

Sources sources_of(const Rewrite& rewrite) {
  Sources out;
  size_t rank = 0;
  for (const AccessModel* model : {&rewrite.before.model, &rewrite.after}) {
    for (const Access& access : model->accesses) {
      rank = std::max(rank, access.buffer->rank());
      if (std::find(out.buffers.begin(), out.buffers.end(), access.buffer.get()) == out.buffers.end()) {
        out.buffers.push_back(access.buffer.get());
      }
    }
  }
  out.arity = 1 + std::max(longest(rewrite.before.statements), rank);
  return out;
}

std::vector<Writer> old_writers(const Rewrite& rewrite) {
  std::vector<Writer> out;
  for (size_t s = 0; s < rewrite.before.statements.size(); ++s) {
    const std::vector<VarRef>& vars = rewrite.before.statements[s].vars;
    out.push_back({s, {vars.begin(), vars.end()}});
  }
  return out;
}

std::vector<Writer> new_writers(const Rewrite& rewrite) {
  std::vector<Writer> out(rewrite.statements.size());
  for (const Copy& copy : rewrite.copies) {
    Writer& writer = out[static_cast<size_t>(copy.now - rewrite.statements.data())];
    writer.was = copy.was;
    for (const VarRef& var : rewrite.was(copy).vars) writer.values.push_back(copy.values.at(var.get()));
  }
  return out;
}

class ValueCheck {
 public:
  explicit ValueCheck(const Rewrite& rewrite)
      : rewrite_(rewrite),
        sources_(sources_of(rewrite)),
        before_(rewrite.before.engine, rewrite.before.model, rewrite.before.statements, old_writers(rewrite), sources_),
        after_(rewrite.before.engine, rewrite.after, rewrite.statements, new_writers(rewrite), sources_) {}

  Legality run() {
    Legality out;
    out.verdict = Verdict::Proved;
    for (const Dependence& each : rewrite_.before.list) {
      if (const std::string shared = shares_memory(each); !shared.empty()) return unknown(shared);
    }
    for (const Copy& copy : rewrite_.copies) {
      std::vector<Read> reads;
      if (!reads_of(rewrite_, copy, reads)) return unknown("a read of the statement is none of its accesses");
      for (const Read& read : reads) {
        if (worsen(out, same_source(read))) return out;
      }
    }
    if (rewrite_.form == RegionForm::WithoutStores && worsen(out, computes_what_is_used())) return out;
    for (const Buffer* buffer : sources_.buffers) {
      if (!rewrite_.staged.contains(buffer)) continue;
      if (worsen(out, same_in_the_end(*buffer))) return out;
      worsen(out, stays_inside(*buffer));
    }
    return out;
  }

 private:
  static Legality unknown(const std::string& reason) {
    Legality out;
    out.reason = reason;
    return out;
  }

  std::string shares_memory(const Dependence& each) const {
    if (!each.first_access || !each.second_access) return {};
    const Buffer &a = *rewrite_.before.model.accesses[*each.first_access].buffer,
                 &b = *rewrite_.before.model.accesses[*each.second_access].buffer;
    if (&a == &b || (!rewrite_.staged.contains(&a) && !rewrite_.staged.contains(&b))) return {};
    if (!rewrite_.before.pairs(each)) return {};
    return fmt::format("'{}' and '{}' may share memory", a.name, b.name);
  }

  Legality same_source(const Read& read) {
    const Copy& copy = *read.copy;
    const size_t statement = static_cast<size_t>(copy.now - rewrite_.statements.data());
    IntegerRelation wanted = composition_of(instances_of(rewrite_, copy), before_.seen(copy.was, *read.was));
    if (read.now) wanted = with_domain_in(wanted, after_.instances_with(statement, *read.now));
    const IntegerRelation is =
        read.now ? after_.seen(statement, *read.now) : wanted_source(rewrite_, *read.inlined, sources_);
    const Answer answer = wanted.is_subset_of(is);
    Legality out = verdict_of(answer);
    if (out.verdict == Verdict::Refuted) {
      wrong_at(out, read, answer.witness);
      describe(out, answer, is);
    }
    if (rewrite_.form == RegionForm::WithoutStores) worsen(out, nothing_is_defined(read, statement, wanted, is));
    if (out.verdict == Verdict::Refuted && !read.certain) return unknown("a load stands for several other ones");
    return out;
  }

  /// A read of memory that holds nothing may become any other; on the way back, from the new region to the old one, it
  /// may not: the old region does not read nothing there.
  Legality nothing_is_defined(const Read& read, size_t statement, const IntegerRelation& wanted,
                              const IntegerRelation& is) {
    const Copy& copy = *read.copy;
    IntegerSet here =
        domain_of(with_range_in(instances_of(rewrite_, copy), before_.instances_with(copy.was, *read.was)));
    if (read.now) here = intersection_of(here, after_.instances_with(statement, *read.now));
    const IntegerRelation defined = with_domain_in(is, here);
    const Answer answer = domain_of(defined).is_subset_of(domain_of(wanted));
    Legality out = verdict_of(answer);
    if (out.verdict != Verdict::Refuted) return out;
    wrong_at(out, read, answer.witness);
    out.nothing = true;
    if (const Answer source = at_point(defined, answer.witness); source.verdict == Verdict::Refuted) {
      out.second = source_at(source.other);
    }
    return out;
  }

  void wrong_at(Legality& out, const Read& read, const Witness& at) const {
    out.fault = RewriteFault::Value;
    out.first = instance_at(rewrite_, *read.copy, at);
    out.first->access = *read.was;
    out.given.assign(at.begin(), at.end() - static_cast<int64_t>(read.copy->now->vars.size()));
  }

  /// Is every value of a store one that stands in the place of a load that is read? Then the old region evaluates
  /// nothing that the new one does not.
  Legality computes_what_is_used() {
    std::map<size_t, IntegerSet> used;  // sources, by statement
    for (const Copy& copy : rewrite_.copies) {
      if (copy.inlined.empty()) continue;
      Matcher matcher(rewrite_, copy);
      matcher.same_statement();
      for (const MatchedValue& value : matcher.inlined()) {
        for (const Access* was : reads_by(rewrite_.before.model.accesses, rewrite_.was(copy), value.inlined->load)) {
          const IntegerSet readers = before_.instances_with(copy.was, *was);
          const IntegerSet here = domain_of(with_range_in(instances_of(rewrite_, copy), readers));
          const IntegerSet sources = range_of(with_domain_in(wanted_source(rewrite_, *value.inlined, sources_), here));
          const auto [at, fresh] = used.emplace(value.inlined->writer->was, sources);
          if (!fresh) at->second = union_of(at->second, sources);
        }
      }
    }
    Legality out = proved();
    for (const auto& [statement, sources] : used) {
      Copy all;
      all.now = &rewrite_.before.statements[statement];
      all.was = statement;
      for (const VarRef& var : all.now->vars) all.values[var.get()] = Expr(var);
      add_conditions(all, rewrite_.before.model, *all.now);
      const IntegerSet computed = range_of(source_of_copy(rewrite_, all, rewrite_.before.model, sources_));
      const Answer answer = computed.is_subset_of(sources);
      Legality found = verdict_of(answer);
      if (found.verdict == Verdict::Refuted) {
        found.fault = RewriteFault::Lost;  // on the way back
        found.first = source_at(answer.witness);
        found.given.assign(answer.witness.begin(), answer.witness.end() - static_cast<int64_t>(sources_.arity));
      }
      if (worsen(out, std::move(found))) return out;
    }
    return out;
  }

  /// Elements of a buffer that lives on: what the old and the new region leave in all that either of them writes.
  Legality same_in_the_end(const Buffer& buffer) {
    if (before_.allocates(buffer) || after_.allocates(buffer)) return proved();
    if (!before_.writes(buffer) && !after_.writes(buffer)) return proved();
    std::vector<VarRef> element;
    for (size_t d = 0; d < buffer.rank(); ++d) element.push_back(make_var(fmt::format("{}.{}", buffer.name, d)));
    const Flow::Left was = before_.left(buffer, element), is = after_.left(buffer, element);
    const auto kept = [&](const Flow::Left& here, const Flow::Left& there) {
      return union_of(here.sources,
                      with_domain_in(before_.initial(buffer, element), difference_of(there.written, here.written)));
    };
    const IntegerRelation wanted = kept(was, is), found = kept(is, was);
    const Answer answer = wanted.is_subset_of(found);
    Legality out = verdict_of(answer);
    if (out.verdict != Verdict::Refuted) return out;
    out.fault = RewriteFault::Left;
    const size_t params = answer.witness.size() - buffer.rank();
    out.given.assign(answer.witness.begin(), answer.witness.begin() + static_cast<int64_t>(params));
    std::vector<int64_t> at;
    for (size_t d = 0; d < buffer.rank(); ++d) at.push_back(answer.witness[params + d].second);
    out.element = fmt::format("{}[{}]", buffer.name, fmt::join(at, ", "));
    describe(out, answer, found);
    return out;
  }

  /// Where iterations of a loop around the region have no order, others may use what the old region does not touch.
  Legality stays_inside(const Buffer& buffer) {
    if (before_.allocates(buffer) || after_.allocates(buffer)) return proved();
    if (!unordered_around(rewrite_.before.model, buffer)) return proved();
    std::vector<VarRef> element;
    for (size_t d = 0; d < buffer.rank(); ++d) element.push_back(make_var("x"));
    const auto constant = constant_memory(rewrite_.before.function->body, rewrite_.before.function->may_alias);
    const bool written = !constant.contains(&buffer);
    for (const bool reads : {false, true}) {
      if (reads && !written) continue;
      const IntegerSet was = before_.touched(buffer, element, reads), is = after_.touched(buffer, element, reads);
      if (is.is_subset_of(was).verdict == Verdict::Proved) continue;
      return unknown(fmt::format(
          "the copy touches elements of '{}' that the statement does not, and iterations of a loop around it "
          "have no order",
          buffer.name));
    }
    return verdict_of({Verdict::Proved, {}, {}, {}});
  }

  static Legality proved() {
    Legality out;
    out.verdict = Verdict::Proved;
    return out;
  }

  /// A difference of flows that are not exact proves nothing.
  Legality verdict_of(const Answer& answer) const {
    for (const Flow* flow : {&before_, &after_}) {
      if (!flow->doubt().empty()) return unknown(flow->doubt());
    }
    Legality out;
    out.verdict = answer.verdict;
    out.reason = answer.reason;
    return out;
  }

  /// What should be seen at the witness, and one of what would be.
  void describe(Legality& out, const Answer& answer, const IntegerRelation& is) const {
    out.second = source_at(answer.other);
    const Answer instead = at_point(is, answer.witness);
    out.nothing = instead.verdict == Verdict::Proved;
    if (instead.verdict == Verdict::Refuted) out.instead = source_at(instead.other);
  }

  /// Is the relation empty at a witness of its domain? If not, the answer's other tuple is an image.
  Answer at_point(const IntegerRelation& relation, const Witness& at) const {
    std::vector<Expr> here;
    const std::vector<VarRef>& tuple = relation.tuple();
    const size_t params = at.size() - tuple.size();
    for (size_t n = 0; n < tuple.size(); ++n) {
      here.push_back(apply(Op::Eq, {Expr(tuple[n]), int_imm(at[params + n].second)}));
    }
    for (size_t n = 0; n < params; ++n) {
      here.push_back(apply(Op::Eq, {Expr(at[n].first), int_imm(at[n].second)}));
    }
    const IntegerSet point(rewrite_.before.engine, tuple, conjunction(here));
    return with_domain_in(relation, point).is_empty();
  }

  /// The instance of an old write; nothing for what stood there before the region.
  std::optional<Instance> source_at(const Witness& tuple) const {
    const auto entry = [&](size_t n) { return tuple[tuple.size() - sources_.arity + n].second; };
    if (entry(0) < 0) return std::nullopt;
    const RegionStatement& s = rewrite_.before.statements.at(static_cast<size_t>(entry(0)));
    Instance out{s.stmt, {}, {}};
    for (size_t v = 0; v < s.vars.size(); ++v) out.at.emplace_back(s.vars[v], entry(v + 1));
    for (size_t a = s.first; a < s.last; ++a) {
      if (rewrite_.before.model.accesses[a].write) out.access = rewrite_.before.model.accesses[a];
    }
    return out;
  }

  const Rewrite& rewrite_;
  const Sources sources_;
  Flow before_, after_;
};

}  // namespace

Legality check_values(const Rewrite& rewrite) {
  const auto has_values = [](const Copy& copy) { return !copy.inlined.empty(); };
  if (rewrite.staged.empty() && std::none_of(rewrite.copies.begin(), rewrite.copies.end(), has_values)) {
    Legality out;
    out.verdict = Verdict::Proved;
    return out;
  }
  return ValueCheck(rewrite).run();
}

}  // namespace helve::legality
