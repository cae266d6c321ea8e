// The last write before a read, as the greatest image in the order of times.
// What all statements write to an element are images of one relation.
#include "flow.h"

#include <fmt/format.h>

#include <algorithm>

#include "helve/arith/lexicographic.h"
#include "helve/arith/relation_algebra.h"
#include "helve/ir/expr/chain.h"
#include "helve/ir/tensor/call_facts.h"

namespace helve::legality {

int64_t Sources::number(const Buffer& buffer) const {
  const auto at = std::find(buffers.begin(), buffers.end(), &buffer);
  HELVE_CHECK(at != buffers.end(), "a source in a buffer without a number");
  return -1 - (at - buffers.begin());
}

Flow::Flow(const ExactEngine& engine, const AccessModel& model, const std::vector<RegionStatement>& statements,
           std::vector<Writer> writers, const Sources& sources)
    : engine_(engine),
      model_(model),
      statements_(statements),
      writers_(std::move(writers)),
      sources_(sources),
      times_(engine, model, statements),
      of_copies_(statements.size()),
      open_(statements.size()) {}

bool Flow::writes(const Buffer& buffer) const {
  return std::any_of(model_.accesses.begin(), model_.accesses.end(),
                     [&](const Access& access) { return access.write && access.buffer.get() == &buffer; });
}

IntegerRelation Flow::nothing(std::vector<VarRef> tuple) const {
  return IntegerRelation(engine_, std::move(tuple), std::vector<Expr>(sources_.arity, int_imm(0)), bool_imm(false));
}

template <class Each>
void Flow::for_each_write(const Buffer& buffer, Each&& each) {
  for (size_t t = 0; t < statements_.size(); ++t) {
    for (size_t a = statements_[t].first; a < statements_[t].last; ++a) {
      const Access& write = model_.accesses[a];
      if (write.write && write.buffer.get() == &buffer && times_.is_simple(statements_[t], write)) each(t, write);
    }
  }
}

IntegerRelation Flow::seen(size_t statement, const Access& read) {
  const RegionStatement& s = statements_[statement];
  const Buffer& buffer = *read.buffer;
  if (!times_.is_simple(s, read)) return nothing(s.vars);
  IntegerRelation last = times_.nothing(s.vars);
  std::set<size_t> writers;
  for_each_write(buffer, [&](size_t t, const Access& write) {
    const std::optional<IntegerRelation> before = times_.meetings(s, read, statements_[t], write, When::Before);
    if (!before) return;
    writers.insert(t);
    last = union_of(last, *before);
  });
  last = greatest_images(last);
  IntegerRelation out = with_sources(last, writers);
  if (allocates(buffer) || times_.is_forgotten_at(s, buffer)) return out;
  std::vector<Expr> image{int_imm(sources_.number(buffer))};
  for (const Range& range : read.ranges) image.push_back(range.begin);
  image.resize(sources_.arity, int_imm(0));
  const IntegerRelation before = times_.instances(s, read, image);
  return union_of(out, with_domain_in(before, difference_of(domain_of(before), domain_of(last))));
}

IntegerSet Flow::instances_with(size_t statement, const Access& access) const {
  PathQuery query(model_);
  query.add(access.path);
  return domain_of(query.relation(engine_, statements_[statement].vars, {}));
}

Flow::Left Flow::left(const Buffer& buffer, const std::vector<VarRef>& element) {
  IntegerRelation last = times_.nothing(element);
  std::set<size_t> writers;
  for_each_write(buffer, [&](size_t t, const Access& write) {
    writers.insert(t);
    if (times_.is_forgotten_at(statements_[t], buffer)) {
      times_.doubt(fmt::format("which iteration of a T.Persistent loop wrote '{}' last is not known", buffer.name));
    }
    PathQuery query(model_);
    query.add(write.path);
    for (size_t d = 0; d < element.size(); ++d) query.require(equal(Expr(element[d]), write.ranges[d].begin));
    if (!query.doubts().empty()) times_.doubt(query.doubts());
    last = union_of(last, query.relation(engine_, element, times_.of(statements_[t])));
  });
  last = greatest_images(last);
  return {with_sources(last, writers), domain_of(last)};
}

IntegerRelation Flow::initial(const Buffer& buffer, const std::vector<VarRef>& element) const {
  std::vector<Expr> image{int_imm(sources_.number(buffer))};
  for (const VarRef& var : element) image.emplace_back(var);
  image.resize(sources_.arity, int_imm(0));
  return IntegerRelation(engine_, element, image, bool_imm(true));
}

/// `last` has the times of the writers as images.
IntegerRelation Flow::with_sources(const IntegerRelation& last, const std::set<size_t>& writers) {
  IntegerRelation out = nothing(last.tuple());
  for (const size_t t : writers) out = union_of(out, composition_of(last, source_of(t)));
  return out;
}

/// { time of the statement -> source of what it writes then }.
IntegerRelation Flow::source_of(size_t statement) {
  const RegionStatement& s = statements_[statement];
  const Writer& writer = writers_[statement];
  std::vector<Expr> conditions;
  const std::vector<VarRef>& names = times_.names();
  const std::vector<Expr> at = times_.of(s);
  for (size_t n = 0; n < times_.entries(); ++n) conditions.push_back(equal(Expr(names[n]), at[n]));
  if (writer.was) {
    std::vector<Expr> image{int_imm(static_cast<int64_t>(*writer.was))};
    image.insert(image.end(), writer.values.begin(), writer.values.end());
    image.resize(sources_.arity, int_imm(0));
    return IntegerRelation(engine_, names, image, conjunction(conditions), s.vars);
  }
  if (open_[statement]) {
    times_.doubt("copies read what they wrote in earlier iterations");
    return nothing(names);
  }
  if (!of_copies_[statement]) {
    open_[statement] = true;
    const ExprNode* value = static_cast<const Store*>(s.stmt)->value.get();
    const auto reads = [&](const Access& access) { return access.load == value; };
    const auto end = model_.accesses.begin() + static_cast<int64_t>(s.last);
    const auto read = std::find_if(model_.accesses.begin() + static_cast<int64_t>(s.first), end, reads);
    HELVE_CHECK(read != end, "a copy that reads nothing");
    of_copies_[statement] = seen(statement, *read);
    open_[statement] = false;
  }
  const std::vector<Expr> vars(s.vars.begin(), s.vars.end());
  const IntegerRelation instance(engine_, names, vars, conjunction(conditions), s.vars);
  return composition_of(instance, *of_copies_[statement]);
}

}  // namespace helve::legality
