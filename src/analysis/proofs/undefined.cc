// Is a buffer used before anything is written to it, or an element of which no statement writes?
// What a kernel allocates holds undefined values. Only a use that certainly happens is a warning: no condition stands
// around it, the loops around it run, and no access of the buffer stands in front of it, or an element that it reads is
// outside of the boxes that all writes of the program lie in, whenever they run.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "helve/analysis/effects.h"
#include "helve/arith/interval.h"
#include "helve/ir/tensor/visit.h"
#include "obligations.h"

namespace helve::proofs {

namespace {

/// Has the program no statements that others may overtake, and no memory with two names?
bool is_in_order(const Stmt& body) {
  bool in_order = true;
  walk(body, [&](const Stmt& s) {
    in_order &= s->kind != StmtKind::Role && s->kind != StmtKind::Peer && s->kind != StmtKind::Outline;
    if (const Alloc* alloc = as<Alloc>(s)) in_order &= !alloc->buffer->offset && alloc->buffer->slots == 0;
  });
  return in_order;
}

/// Buffers that a statement reads before any statement in front of it accesses them, in program order.
std::vector<const Buffer*> read_first(const Stmt& body) {
  std::unordered_map<const Buffer*, bool> first;  // allocated buffers, and whether the first access was seen
  std::vector<const Buffer*> out;
  walk(body, [&](const Stmt& s) {
    if (const Alloc* alloc = as<Alloc>(s)) first.emplace(alloc->buffer.get(), false);
    for (const RegionAccess& access : direct_accesses(s)) {
      const auto found = first.find(access.region.buffer.get());
      if (found == first.end() || std::exchange(found->second, true)) continue;
      if (!access.write) out.push_back(found->first);
    }
  });
  return out;
}

/// Is the element used where it is read? A copy passes undefined values on, except to a tensor of the call.
bool is_use(const Access& read) {
  if (const auto* store = as<Store>(Stmt(read.stmt))) {
    const bool passed_on = read.load && store->value.get() == read.load;
    return !passed_on || store->buffer->scope == MemoryScope::Param;
  }
  const auto* op = as<TileOp>(Stmt(read.stmt));
  if (!op) return false;
  const TileRule rule = op->row().rule;
  if (rule == TileRule::Copy) return op->region(1).buffer->scope == MemoryScope::Param;
  return rule == TileRule::Gemm || rule == TileRule::Reduce || rule == TileRule::Scan;
}

/// Are the steps inside of the allocation loops, whose first iteration comes before all others?
bool runs_at_once(const Path& path, size_t home) {
  return std::all_of(path.begin() + static_cast<ptrdiff_t>(home), path.end(),
                     [](const StepRef& step) { return step->stmt && !step->vars.empty() && !step->condition; });
}

/// `unwritten` is the element that nothing writes, empty where nothing of the buffer is written before.
Diagnostic warning(const Access& read, const std::string& unwritten, const std::string& what) {
  const std::string& name = read.buffer->name;
  std::string remedy = fmt::format("write {} first, for example with T.clear({})", what, name);
  const auto* op = as<TileOp>(Stmt(read.stmt));
  for (size_t i = 0; op && !op->clears().value_or(true) && i < op->row().params.size(); ++i) {
    if (op->row().params[i].writes() && op->region(i).buffer == read.buffer) remedy += ", or pass clear=True";
  }
  std::vector<Note> notes = {{read.buffer->span, fmt::format("'{}' is allocated here", name)}};
  if (!unwritten.empty())
    notes.insert(notes.begin(), {{}, fmt::format("no statement writes '{}[{}]'", name, unwritten)});
  return {Code::UndefinedRead, read.span, {{"buffer", name}, {"remedy", remedy}}, std::move(notes), {}};
}

/// The use of each buffer that comes before all else that accesses it.
class FirstUses {
 public:
  FirstUses(const AccessModel& model, Budget& budget) : model_(model), budget_(budget) {}

  /// The warning, if the first access of the buffer is a use in some iteration of every call.
  std::optional<Diagnostic> of(const Buffer& buffer) const {
    const auto first = std::find_if(model_.accesses.begin(), model_.accesses.end(),
                                    [&](const Access& each) { return each.buffer.get() == &buffer; });
    const auto home = model_.home.find(&buffer);
    if (first == model_.accesses.end() || home == model_.home.end() || first->write) return std::nullopt;
    if (!is_use(*first) || !runs_at_once(first->path, home->second.size())) return std::nullopt;
    Query query(model_);
    for (const StepRef& step : first->path) query.add(*step);
    for (const Range& range : first->ranges) query.require(less(int_imm(0), range.extent));
    for (const Access& each : model_.accesses) {  // of a copy to a tensor of the call: it has an element there
      if (each.visit != first->visit || !each.write || !each.may_pass_end) continue;
      for (size_t d = 0; d < each.ranges.size(); ++d) query.require(less(each.ranges[d].begin, each.limits[d]));
    }
    if (query.excludes(bool_imm(true), budget_).verdict != ProofVerdict::Refuted) return std::nullopt;
    return warning(*first, {}, "it");
  }

 private:
  const AccessModel& model_;
  Budget& budget_;
};

/// The elements of a buffer from `low` up to `high`, in each dimension.
struct Box {
  std::vector<int64_t> low, high;
  bool operator==(const Box&) const = default;
};

/// Uses of elements that no statement writes.
class UnwrittenUses {
 public:
  UnwrittenUses(const AccessModel& model, Budget& budget) : model_(model), budget_(budget) {}

  /// The warning, if a use certainly reads an element outside of all that is written. Nothing of a buffer that nothing
  /// writes at all: others pass its values on.
  std::optional<Diagnostic> of(const Buffer& buffer) const {
    const auto home = model_.home.find(&buffer);
    if (home == model_.home.end() || buffer.rank() == 0) return std::nullopt;
    std::vector<Box> written;
    for (const Access& each : model_.accesses) {
      if (each.buffer.get() != &buffer || !each.write) continue;
      Box box = box_of(each);
      if (covers(box, buffer)) return std::nullopt;
      if (std::find(written.begin(), written.end(), box) == written.end()) written.push_back(std::move(box));
    }
    if (written.empty()) return std::nullopt;
    for (const Access& each : model_.accesses) {
      const bool read = each.buffer.get() == &buffer && !each.write && !each.tiles && !each.may_pass_end;
      if (!read || !is_use(each) || !is_of_every_call(each)) continue;
      if (!runs_at_once(each.path, home->second.size()) || leaves_out(each)) continue;
      if (std::optional<Diagnostic> found = outside(each, written)) return found;
    }
    return std::nullopt;
  }

 private:
  /// All that the access may touch, whatever the variables around it are.
  Box box_of(const Access& access) const {
    Facts facts;
    for (const StepRef& step : access.path) learn(facts, *step, model_.constant);
    Box out;
    for (size_t d = 0; d < access.ranges.size(); ++d) {
      const Interval begin = interval_of(access.ranges[d].begin, facts);
      const Interval end = interval_of(access.ranges[d].begin + access.ranges[d].extent, facts);
      const bool known = begin.low && end.high && !access.tiles;
      out.low.push_back(known ? std::max<int64_t>(0, *begin.low) : 0);
      out.high.push_back(known ? *end.high : INT64_MAX);
    }
    return out;
  }

  static bool covers(const Box& box, const Buffer& buffer) {
    for (size_t d = 0; d < buffer.rank(); ++d) {
      const int64_t* extent = int_value(buffer.shape[d]);
      if (box.low[d] > 0 || box.high[d] < (extent ? *extent : INT64_MAX)) return false;
    }
    return true;
  }

  /// Do all calls read the same elements, those of constants and of loops that all calls run alike?
  static bool is_of_every_call(const Access& read) {
    std::unordered_set<const Var*> known;
    for (const StepRef& step : read.path) {
      for (size_t v = 0; v < step->begins.size(); ++v) {
        if (int_value(step->begins[v]) && int_value(step->extents[v])) known.insert(step->vars[v].get());
      }
    }
    bool all = true;
    const auto look = [&](const Expr& e) {
      if (const Var* var = as<Var>(e)) all &= known.contains(var);
      all &= e->kind != ExprKind::Load;
    };
    for (const Range& range : read.ranges) {
      walk(range.begin, look);
      walk(range.extent, look);
    }
    return all;
  }

  /// May the statement of the read leave elements out, since it writes past an end?
  bool leaves_out(const Access& read) const {
    return std::any_of(model_.accesses.begin(), model_.accesses.end(),
                       [&](const Access& each) { return each.visit == read.visit && each.write && each.may_pass_end; });
  }

  std::optional<Diagnostic> outside(const Access& read, const std::vector<Box>& written) const {
    Query query(model_);
    for (const StepRef& step : read.path) query.add(*step);
    std::vector<Expr> element;
    for (const Range& range : read.ranges) {
      Step one;
      one.vars = {make_var("e")};
      one.begins = {range.begin};
      one.extents = {range.extent};
      query.add(one);
      element.push_back(Expr(one.vars[0]));
    }
    for (const Box& box : written) {
      Expr out;
      const auto add = [&](const Expr& condition) { out = out ? apply(Op::Or, {out, condition}) : condition; };
      for (size_t d = 0; d < element.size(); ++d) {
        if (box.low[d] > 0) add(less(element[d], int_imm(box.low[d])));
        if (box.high[d] < INT64_MAX) add(apply(Op::Le, {int_imm(box.high[d]), element[d]}));
      }
      if (!out) return std::nullopt;
      query.require(out);
    }
    const Finding found = query.excludes(bool_imm(true), budget_);
    if (found.verdict != ProofVerdict::Refuted) return std::nullopt;
    std::string place;
    for (const Expr& each : element) {
      const std::optional<int64_t> value = evaluate(each, found.witness);
      if (!value) return std::nullopt;
      place += fmt::format("{}{}", place.empty() ? "" : ", ", *value);
    }
    return warning(read, place, "all of it");
  }

  const AccessModel& model_;
  Budget& budget_;
};

}  // namespace

std::vector<Diagnostic> find_undefined_reads(const Function& f) {
  std::vector<Diagnostic> out;
  if (!is_in_order(f.body)) return out;
  const std::vector<const Buffer*> first = read_first(f.body);
  const auto at_first = [&](const Buffer* b) { return std::find(first.begin(), first.end(), b) != first.end(); };
  std::vector<const Buffer*> asked;  // allocated ones, but for those that one statement writes whole
  std::unordered_set<const Buffer*> whole;
  walk(f.body, [&](const Stmt& s) {
    if (const Alloc* alloc = as<Alloc>(s)) asked.push_back(alloc->buffer.get());
    for (const RegionAccess& access : direct_accesses(s)) {
      if (access.write && access.region.whole()) whole.insert(access.region.buffer.get());
    }
  });
  std::erase_if(asked, [&](const Buffer* buffer) { return whole.contains(buffer) && !at_first(buffer); });
  if (asked.empty()) return out;
  const AccessModel model = access_model(f);
  Budget budget;
  for (const Buffer* buffer : asked) {
    std::optional<Diagnostic> found;
    if (at_first(buffer)) found = FirstUses(model, budget).of(*buffer);
    if (!found && !whole.contains(buffer)) found = UnwrittenUses(model, budget).of(*buffer);
    if (found) out.push_back(std::move(*found));
  }
  return out;
}

}  // namespace helve::proofs
