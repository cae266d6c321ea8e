// The last write before a read, as the greatest image in the order of times.
// A time is the visits and the variables of the loops around an instance, outermost first, then its own visit: program
// order is the lexicographic order of times, so that the writes of all statements are images of one relation.
#include "flow.h"

#include <fmt/format.h>

#include <algorithm>

#include "helve/analysis/path_conditions.h"
#include "helve/arith/lexicographic.h"
#include "helve/arith/relation_algebra.h"
#include "helve/ir/expr/chain.h"
#include "helve/ir/tensor/call_facts.h"

namespace helve::legality {

namespace {

Expr equal(const Expr& a, const Expr& b) { return apply(Op::Eq, {a, b}); }

/// Conditions of what stands around the region, then of paths inside it; what the paths define is a local.
class Query {
 public:
  explicit Query(const AccessModel& model) : model_(model), path_(model) {
    for (const Expr& condition : conditions_of_calls(*model.function)) path_.require(condition);
    for (const StepRef& step : model.around) {
      if (says_something(*step)) path_.add(*step);
    }
    outside_ = path_.vars().size();
  }

  void add(const Path& path, const Substitution& renamed = {}) {
    for (size_t i = model_.around.size(); i < path.size(); ++i) {
      if (says_something(*path[i]) || path[i]->vars.empty()) path_.add(*path[i], renamed);
    }
  }
  void require(const Expr& condition) { path_.require(condition); }
  /// Variables of the tuple are none of the locals.
  IntegerRelation relation(const ExactEngine& engine, const std::vector<VarRef>& tuple,
                           const std::vector<Expr>& image) const {
    std::vector<VarRef> locals;
    for (size_t i = outside_; i < path_.vars().size(); ++i) {
      const VarRef& var = path_.vars()[i];
      const bool known = std::find(tuple.begin(), tuple.end(), var) != tuple.end() ||
                         std::find(locals.begin(), locals.end(), var) != locals.end();
      if (!known) locals.push_back(var);
    }
    const Translation translation{&path_.facts(), &model_.constant};
    return IntegerRelation(engine, tuple, image, conjunction(path_.conditions()), locals, translation);
  }
  const std::string& doubts() const { return path_.doubts(); }

 private:
  const AccessModel& model_;
  PathConditions path_;
  size_t outside_;
};

/// Names of their own for all that the path defines inside the region.
Substitution renamed_path(const AccessModel& model, const Path& path) {
  Substitution out;
  for (size_t i = model.around.size(); i < path.size(); ++i) {
    for (const VarRef& var : path[i]->vars) out.try_emplace(var.get(), Expr(make_var(var->name, var->dtype)));
  }
  return out;
}

}  // namespace

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
      of_copies_(statements.size()),
      open_(statements.size()) {
  for (const RegionStatement& s : statements) entries_ = std::max(entries_, s.loops.size() + s.vars.size() + 1);
  for (size_t n = 0; n < entries_; ++n) times_.push_back(make_var("t"));
}

void Flow::doubt(const std::string& reason) {
  if (doubt_.empty()) doubt_ = reason;
}

bool Flow::allocates(const Buffer& buffer) const {
  const auto home = model_.home.find(&buffer);
  return home != model_.home.end() && home->second.size() >= model_.around.size() &&
         std::equal(model_.around.begin(), model_.around.end(), home->second.begin()) &&
         std::any_of(model_.visits.begin(), model_.visits.end(), [&](const Visit& visit) {
           return visit.stmt->kind == StmtKind::Alloc && static_cast<const Alloc*>(visit.stmt)->buffer.get() == &buffer;
         });
}

bool Flow::writes(const Buffer& buffer) const {
  return std::any_of(model_.accesses.begin(), model_.accesses.end(),
                     [&](const Access& access) { return access.write && access.buffer.get() == &buffer; });
}

std::vector<Expr> Flow::time(const RegionStatement& s) const {
  std::vector<Expr> out;
  for (const StepRef& loop : s.loops) {
    out.push_back(int_imm(static_cast<int64_t>(loop->visit)));
    for (const VarRef& var : loop->vars) out.emplace_back(var);
  }
  out.push_back(int_imm(static_cast<int64_t>(s.visit)));
  out.resize(entries_, int_imm(0));
  return out;
}

IntegerRelation Flow::nothing(std::vector<VarRef> tuple, size_t entries) const {
  return IntegerRelation(engine_, std::move(tuple), std::vector<Expr>(entries, int_imm(0)), bool_imm(false));
}

/// Only stores and reads of single elements are followed.
bool Flow::is_simple(const RegionStatement& s, const Access& access) {
  bool simple = !access.tiles && !access.placed && !access.queue && access.executor == Executor::Path &&
                !is_atomic(access.mode) && !s.orders_all && !s.starts_copy && s.stmt->kind != StmtKind::While;
  for (const Range& range : access.ranges) {
    simple &= range.point;
    if (changes(range.begin, model_.constant)) doubt("a subscript reads memory that is written");
  }
  size_t loops = 0;
  for (size_t i = model_.around.size(); i < access.path.size(); ++i) loops += !access.path[i]->begins.empty();
  simple &= loops == s.loops.size();
  if (!simple) doubt(fmt::format("'{}' is not the access of one element by one iteration", text_of(access)));
  return simple;
}

template <class Each>
void Flow::for_each_write(const Buffer& buffer, Each&& each) {
  for (size_t t = 0; t < statements_.size(); ++t) {
    for (size_t a = statements_[t].first; a < statements_[t].last; ++a) {
      const Access& write = model_.accesses[a];
      if (write.write && write.buffer.get() == &buffer && is_simple(statements_[t], write)) each(t, write);
    }
  }
}

IntegerRelation Flow::seen(size_t statement, const Access& read) {
  const RegionStatement& s = statements_[statement];
  const Buffer& buffer = *read.buffer;
  if (!is_simple(s, read)) return nothing(s.vars, sources_.arity);
  size_t home = 0;  // loops around the allocation: in each of their iterations it is other memory
  if (allocates(buffer)) {
    const Path& path = model_.home.at(&buffer);
    for (size_t i = model_.around.size(); i < path.size(); ++i) home += !path[i]->begins.empty();
  }
  IntegerRelation last = nothing(s.vars, entries_);
  std::set<size_t> writers;
  for_each_write(buffer, [&](size_t t, const Access& write) {
    const RegionStatement& w = statements_[t];
    const Substitution renamed = renamed_path(model_, write.path);
    const auto now = [&](const Expr& e) { return substitute(e, renamed); };
    std::vector<Expr> cases, same;
    size_t common = common_loops(w, s);
    for (size_t l = 0; l < common; ++l) {
      for (const VarRef& var : s.loops[l]->vars) {
        if (l >= home) {
          same.push_back(less(renamed.at(var.get()), Expr(var)));
          cases.push_back(conjunction(same));
          same.pop_back();
        }
        same.push_back(equal(renamed.at(var.get()), Expr(var)));
      }
    }
    if (w.visit < s.visit) cases.push_back(same.empty() ? bool_imm(true) : conjunction(same));
    if (cases.empty()) return;
    writers.insert(t);
    Query query(model_);
    query.add(read.path);
    query.add(write.path, renamed);
    query.require(chain(Op::Or, cases));
    for (size_t d = 0; d < read.ranges.size(); ++d) {
      query.require(equal(read.ranges[d].begin, now(write.ranges[d].begin)));
    }
    if (!query.doubts().empty()) doubt(query.doubts());
    std::vector<Expr> image;
    for (const Expr& entry : time(w)) image.push_back(now(entry));
    last = union_of(last, query.relation(engine_, s.vars, image));
  });
  last = greatest_images(last);
  IntegerRelation out = with_sources(last, writers);
  if (allocates(buffer)) return out;
  Query query(model_);
  query.add(read.path);
  if (!query.doubts().empty()) doubt(query.doubts());
  std::vector<Expr> image{int_imm(sources_.number(buffer))};
  for (const Range& range : read.ranges) image.push_back(range.begin);
  image.resize(sources_.arity, int_imm(0));
  const IntegerRelation before = query.relation(engine_, s.vars, image);
  return union_of(out, with_domain_in(before, difference_of(domain_of(before), domain_of(last))));
}

IntegerSet Flow::instances_with(size_t statement, const Access& access) const {
  Query query(model_);
  query.add(access.path);
  return domain_of(query.relation(engine_, statements_[statement].vars, {}));
}

Flow::Left Flow::left(const Buffer& buffer, const std::vector<VarRef>& element) {
  IntegerRelation last = nothing(element, entries_);
  std::set<size_t> writers;
  for_each_write(buffer, [&](size_t t, const Access& write) {
    writers.insert(t);
    Query query(model_);
    query.add(write.path);
    for (size_t d = 0; d < element.size(); ++d) query.require(equal(Expr(element[d]), write.ranges[d].begin));
    if (!query.doubts().empty()) doubt(query.doubts());
    last = union_of(last, query.relation(engine_, element, time(statements_[t])));
  });
  last = greatest_images(last);
  return {with_sources(last, writers), domain_of(last)};
}

IntegerSet Flow::touched(const Buffer& buffer, const std::vector<VarRef>& element, bool reads) {
  IntegerSet out(engine_, element, bool_imm(false));
  for (const RegionStatement& s : statements_) {
    for (size_t a = s.first; a < s.last; ++a) {
      const Access& access = model_.accesses[a];
      if (access.buffer.get() != &buffer || (!access.write && !reads) || !is_simple(s, access)) continue;
      Query query(model_);
      query.add(access.path);
      for (size_t d = 0; d < element.size(); ++d) query.require(equal(Expr(element[d]), access.ranges[d].begin));
      if (!query.doubts().empty()) doubt(query.doubts());
      out = union_of(out, domain_of(query.relation(engine_, element, {})));
    }
  }
  return out;
}

IntegerRelation Flow::initial(const Buffer& buffer, const std::vector<VarRef>& element) const {
  std::vector<Expr> image{int_imm(sources_.number(buffer))};
  for (const VarRef& var : element) image.emplace_back(var);
  image.resize(sources_.arity, int_imm(0));
  return IntegerRelation(engine_, element, image, bool_imm(true));
}

/// `last` has the times of the writers as images.
IntegerRelation Flow::with_sources(const IntegerRelation& last, const std::set<size_t>& writers) {
  IntegerRelation out = nothing(last.tuple(), sources_.arity);
  for (const size_t t : writers) out = union_of(out, composition_of(last, source_of(t)));
  return out;
}

/// { time of the statement -> source of what it writes then }.
IntegerRelation Flow::source_of(size_t statement) {
  const RegionStatement& s = statements_[statement];
  const Writer& writer = writers_[statement];
  std::vector<Expr> conditions;
  const std::vector<Expr> at = time(s);
  for (size_t n = 0; n < entries_; ++n) conditions.push_back(equal(Expr(times_[n]), at[n]));
  if (writer.was) {
    std::vector<Expr> image{int_imm(static_cast<int64_t>(*writer.was))};
    image.insert(image.end(), writer.values.begin(), writer.values.end());
    image.resize(sources_.arity, int_imm(0));
    return IntegerRelation(engine_, times_, image, conjunction(conditions), s.vars);
  }
  if (open_[statement]) {
    doubt("copies read what they wrote in earlier iterations");
    return nothing(times_, sources_.arity);
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
  const IntegerRelation instance(engine_, times_, vars, conjunction(conditions), s.vars);
  return composition_of(instance, *of_copies_[statement]);
}

}  // namespace helve::legality
