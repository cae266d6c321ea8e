// Statements of the new region with their origins.
// Values of a statement's old variables are expressions over its new ones, so that old instances are images of new
// ones.
#include "rewrite.h"

#include <fmt/format.h>

#include <algorithm>

#include "helve/analysis/path_conditions.h"
#include "helve/arith/simplify.h"
#include "helve/arith/sum.h"
#include "helve/ir/expr/chain.h"
#include "helve/ir/tensor/combine.h"
#include "helve/ir/tensor/update.h"
#include "helve/schedule/find.h"

namespace helve::legality {

namespace {

using LoopVarValues = std::vector<std::pair<VarRef, Expr>>;

const RegionStatement* statement_at(const std::vector<RegionStatement>& all, size_t visit) {
  const auto before = [](const RegionStatement& s, size_t v) { return s.visit < v; };
  const auto at = std::lower_bound(all.begin(), all.end(), visit, before);
  return at != all.end() && at->visit == visit ? &*at : nullptr;
}

/// Is the buffer allocated by the new region only?
bool is_new(const Rewrite& rewrite, const Buffer* buffer) {
  return rewrite.after.home.contains(buffer) && !rewrite.before.model.home.contains(buffer);
}

const Store* as_store(const StmtNode& s) { return s.kind == StmtKind::Store ? static_cast<const Store*>(&s) : nullptr; }

/// What the statement copies, if it only copies an element.
const Load* copied(const StmtNode& s) {
  const Store* store = as_store(s);
  const Load* from = store && store->mode == StoreMode::Write ? as<Load>(store->value) : nullptr;
  return from && from->buffer->dtype == store->buffer->dtype ? from : nullptr;
}

/// A statement that only copies elements needs no origin: what is read through it is judged by value.
bool add_copied(Rewrite& rewrite, const StmtNode& s) {
  const Load* from = copied(s);
  if (!from) return false;
  for (const Buffer* buffer : {&buffer_of(from->buffer), static_cast<const Store&>(s).buffer.get()}) {
    rewrite.staged.insert(buffer);
    if (is_new(rewrite, buffer)) rewrite.made.insert(buffer);
  }
  return true;
}

/// Is there no instance of the new statement?
Answer never_runs(const Rewrite& rewrite, const RegionStatement& now) {
  Copy at;
  at.now = &now;
  add_conditions(at, rewrite.after, now);
  std::vector<Expr> conditions = rewrite.given;
  conditions.insert(conditions.end(), at.conditions.begin(), at.conditions.end());
  return IntegerSet(rewrite.before.engine, now.vars, conjunction(conditions), at.locals, at.translation(rewrite.after))
      .is_empty();
}

/// The new buffer that an update adds to another buffer.
const Buffer* merged_buffer(const Rewrite& rewrite, const Store* store) {
  const Load* from = store && store->is_update() ? as<Load>(store->value) : nullptr;
  if (!from) return nullptr;
  const DType dtype = from->buffer->dtype;
  if (dtype != partial_dtype(store->mode, store->buffer->dtype, dtype)) return nullptr;
  const Buffer* buffer = &buffer_of(from->buffer);
  return is_new(rewrite, buffer) ? buffer : nullptr;
}

/// The variables of the loops around a statement's first `count` loops.
std::vector<VarRef> outer_vars(const RegionStatement& s, size_t count) {
  std::vector<VarRef> out;
  for (size_t l = 0; l < std::min(count, s.loops.size()); ++l) {
    out.insert(out.end(), s.loops[l]->vars.begin(), s.loops[l]->vars.end());
  }
  return out;
}

/// Do the values, which use none of the others, tell apart any two iterations of a loop with one of the variables?
bool tell_apart(const std::vector<Expr>& values, const VarRef& var, const std::vector<VarRef>& all) {
  return std::any_of(values.begin(), values.end(), [&](const Expr& value) {
    const std::optional<int64_t> step = coefficient_of(sum_of(value), var.get());
    return step && *step != 0 && std::all_of(all.begin(), all.end(), [&](const VarRef& other) {
             return other == var || !mentions(value, other.get());
           });
  });
}

/// Are accesses of a buffer in one execution of its allocation where they were in one? The loops around the allocation
/// say which execution it is: the old ones are then one function, which is injective, of the new ones for all copies.
bool has_same_executions(const Rewrite& rewrite, const Buffer& buffer) {
  const size_t was = loops_around(rewrite.before.model, buffer), is = loops_around(rewrite.after, buffer);
  std::optional<std::vector<VarRef>> loops;
  std::vector<Expr> values;
  for (const Copy& copy : rewrite.copies) {
    const RegionStatement& old = rewrite.was(copy);
    const auto accesses = rewrite.before.model.accesses.begin();
    const bool uses = std::any_of(accesses + static_cast<int64_t>(old.first), accesses + static_cast<int64_t>(old.last),
                                  [&](const Access& access) { return access.buffer.get() == &buffer; });
    if (!uses) continue;
    if (old.loops.size() < was || copy.now->loops.size() < is) return false;
    const std::vector<VarRef> outer = outer_vars(*copy.now, is);
    std::vector<Expr> here;
    for (const VarRef& var : outer_vars(old, was)) here.push_back(copy.values.at(var.get()));
    if (loops) {
      const bool same = std::equal(here.begin(), here.end(), values.begin(), values.end(),
                                   [](const Expr& a, const Expr& b) { return same_expr(a, b); });
      if (!same || outer != *loops) return false;
      continue;
    }
    for (size_t v = outer.size(); v < copy.now->vars.size(); ++v) {
      for (const Expr& value : here) {
        if (mentions(value, copy.now->vars[v].get())) return false;
      }
    }
    for (size_t l = 0; l < is; ++l) {
      const Step& loop = *copy.now->loops[l];
      for (size_t v = 0; v < loop.vars.size(); ++v) {
        const int64_t* extent = int_value(loop.extents[v]);
        if (!(extent && *extent == 1) && !tell_apart(here, loop.vars[v], outer)) return false;
      }
    }
    loops = outer;
    values = std::move(here);
  }
  return true;
}

/// Finds the buffers of whose allocation the executions may be other ones: with as many loops around it, too.
void add_moved(Rewrite& rewrite) {
  std::unordered_set<const Buffer*> known;
  for (const Access& access : rewrite.before.model.accesses) {
    const Buffer* buffer = access.buffer.get();
    if (!known.insert(buffer).second) continue;
    const bool lives_on = rewrite.before.model.home.contains(buffer) && rewrite.after.home.contains(buffer);
    if (lives_on && !has_same_executions(rewrite, *buffer)) rewrite.moved.insert(buffer);
  }
}

/// What is merged by one operator into one buffer is a partial result.
void add_partials(Rewrite& rewrite) {
  for (const RegionStatement& now : rewrite.statements) {
    if (rewrite.origins.contains(now.visit)) continue;
    const Store* store = as_store(*now.stmt);
    const Buffer* memory = merged_buffer(rewrite, store);
    if (memory && !rewrite.partial(memory)) {
      rewrite.partials.push_back({memory, store->buffer.get(), store->mode});
    }
  }
}

/// A statement that fills or merges partial results needs no origin.
bool is_of_partial(const Rewrite& rewrite, const StmtNode& s) {
  const Store* store = as_store(s);
  const bool fills = store && store->mode == StoreMode::Write && rewrite.partial(store->buffer.get());
  return fills || rewrite.merged_by(s);
}

/// The instance of the old statement that the new one runs, as an origin says it. Variables of loops inside of a
/// statement that counts as one have no value.
Substitution instance_values(const RegionStatement& old, const RegionStatement& now, const LoopVarValues& named) {
  Substitution out;
  for (const auto& [var, value] : named) out[var.get()] = value;
  for (const StepRef& loop : old.loops) {
    for (size_t v = 0; v < loop->vars.size(); ++v) {
      const VarRef& var = loop->vars[v];
      if (out.contains(var.get())) continue;
      const bool is_around = std::find(now.vars.begin(), now.vars.end(), var) != now.vars.end();
      const Expr last = loop->begins[v] + max(loop->extents[v], int_imm(1)) - int_imm(1);
      out[var.get()] = is_around ? Expr(var) : simplify(substitute(last, out));
    }
  }
  std::erase_if(out, [&](const auto& each) {
    return std::none_of(old.vars.begin(), old.vars.end(), [&](const VarRef& var) { return var.get() == each.first; });
  });
  return out;
}

}  // namespace

const Partial* Rewrite::partial(const Buffer* memory) const {
  const auto is_it = [&](const Partial& each) { return each.memory == memory; };
  const auto at = std::find_if(partials.begin(), partials.end(), is_it);
  return at == partials.end() ? nullptr : &*at;
}

const Partial* Rewrite::merged_by(const StmtNode& s) const {
  const Store* store = as_store(s);
  const Partial* found = partial(merged_buffer(*this, store));
  return found && found->into == store->buffer.get() && found->mode == store->mode ? found : nullptr;
}

std::optional<StoreMode> Rewrite::reduces(const RegionStatement& was, const Access& access) const {
  const Store* store = as_store(*was.stmt);
  if (!store || store->buffer != access.buffer || access.stmt != store) return std::nullopt;
  const std::optional<Reduction> reduction = reduction_of(*store);
  if (!reduction || (!access.write && access.load != reduction->old)) return std::nullopt;
  return reduction->mode;
}

bool Rewrite::is_deferred(const Copy& copy, const Access& access) const {
  const Store* now = as_store(*copy.now->stmt);
  return now && partial(now->buffer.get()) && reduces(was(copy), access);
}

void add_conditions(Copy& copy, const AccessModel& model, const RegionStatement& statement) {
  PathConditions query(model);
  for (size_t i = model.around.size(); i < statement.path.size(); ++i) {
    const Step& step = *statement.path[i];
    if (!says_something(step)) continue;
    query.add(step);
    copy.steps.resize(query.conditions().size(), &step);
  }
  copy.conditions = query.conditions();
  for (const VarRef& var : query.vars()) {
    if (std::find(statement.vars.begin(), statement.vars.end(), var) == statement.vars.end())
      copy.locals.push_back(var);
  }
}

const Facts& Copy::facts(const AccessModel& model) const {
  if (facts_) return *facts_;
  facts_.emplace();
  const Step* last = nullptr;
  for (const Step* step : steps) {
    if (step != last) learn(*facts_, *step, model.constant);
    last = step;
  }
  return *facts_;
}

bool counts_by_value(const Rewrite& rewrite, const RegionStatement& was) {
  const Stmt stmt(was.stmt);
  const Store* store = as<Store>(stmt);
  return store && !store->is_atomic() && rewrite.staged.contains(store->buffer.get());
}

std::optional<Rewrite> make_rewrite(const Dependences& before, const Stmt& after, const std::vector<Origin>& origins,
                                    const std::vector<BufferRef>& by_value, Legality& fault) {
  Rewrite out{before, access_model(*before.function, before.region, after), {}, {}, {}, {}};
  for (const BufferRef& buffer : by_value) out.staged.insert(buffer.get());
  out.statements = region_statements(out.after);
  out.given = conditions_around(before.model).conditions();
  for (const Origin& origin : origins) {
    HELVE_CHECK(
        origin.after_visit < out.after.visits.size() && out.after.visits[origin.after_visit].stmt == origin.after,
        "an origin of a statement that is not there");
    HELVE_CHECK(origin.before_visit < before.model.visits.size(), "an origin that is not in the old region");
    out.origins[origin.after_visit] = &origin;
  }
  add_partials(out);
  std::erase_if(out.statements, [&](const RegionStatement& now) {
    if (now.pure || out.origins.contains(now.visit)) return false;
    if (copied(*now.stmt) || is_of_partial(out, *now.stmt)) return false;
    return never_runs(out, now).verdict == Verdict::Proved;
  });
  for (const RegionStatement& now : out.statements) {
    const auto origin = out.origins.find(now.visit);
    const RegionStatement* was =
        origin == out.origins.end() ? nullptr : statement_at(before.statements, origin->second->before_visit);
    if (!was && origin == out.origins.end() && (is_of_partial(out, *now.stmt) || add_copied(out, *now.stmt))) continue;
    if (!was) {
      fault.verdict = Verdict::Refuted;
      fault.fault = RewriteFault::Added;
      fault.first = Instance{now.stmt, {}, {}};
      return std::nullopt;
    }
    const auto copy_of = [&](const RegionStatement& old, const LoopVarValues& values) {
      Copy copy;
      copy.now = &now;
      copy.was = static_cast<size_t>(&old - before.statements.data());
      copy.values = instance_values(old, now, values);
      add_conditions(copy, out.after, now);
      return copy;
    };
    Copy copy = copy_of(*was, origin->second->values);
    for (const InlinedValue& each : origin->second->inlined) {
      const RegionStatement* writer = statement_at(before.statements, each.before_visit);
      if (!writer) {
        const Stmt store(before.model.visits[each.before_visit].stmt);
        fault.verdict = Verdict::Unknown;
        fault.reason = fmt::format("'{}' is a part of a statement whose iterations have no numbers", head_text(store));
        return std::nullopt;
      }
      copy.inlined.push_back({each.load, std::make_shared<const Copy>(copy_of(*writer, each.values))});
    }
    out.copies.push_back(std::move(copy));
  }
  add_moved(out);
  return out;
}

IntegerRelation instances_of(const Rewrite& rewrite, const Copy& copy) {
  std::vector<Expr> image, conditions = rewrite.given;
  for (const VarRef& var : rewrite.was(copy).vars) image.push_back(copy.values.at(var.get()));
  conditions.insert(conditions.end(), copy.conditions.begin(), copy.conditions.end());
  return IntegerRelation(rewrite.before.engine, copy.now->vars, image, conjunction(conditions), copy.locals,
                         copy.translation(rewrite.after));
}

Instance instance_at(const Rewrite& rewrite, const Copy& copy, const Witness& at) {
  Substitution values;
  for (const auto& [var, value] : at) values[var.get()] = int_imm(value);
  const RegionStatement& was = rewrite.was(copy);
  Instance out{was.stmt, {}, {}};
  for (const VarRef& var : was.vars) {
    const Expr value = simplify(substitute(copy.values.at(var.get()), values));
    if (const int64_t* number = int_value(value)) out.at.emplace_back(var, *number);
  }
  return out;
}

Answer always_equal(const Rewrite& rewrite, const Copy& copy, const Expr& a, const Expr& b) {
  if (same_expr(a, b)) return {Verdict::Proved, {}, {}, {}};
  const Facts& facts = copy.facts(rewrite.after);
  if (same_expr(simplify(a, facts), simplify(b, facts))) return {Verdict::Proved, {}, {}, {}};
  std::vector<Expr> conditions = rewrite.given;
  conditions.insert(conditions.end(), copy.conditions.begin(), copy.conditions.end());
  conditions.push_back(apply(Op::Ne, {a, b}));
  return IntegerSet(rewrite.before.engine, copy.now->vars, conjunction(conditions), copy.locals,
                    copy.translation(rewrite.after))
      .is_empty();
}

bool worsen(Legality& verdict, Legality found) {
  if (found.verdict == Verdict::Refuted || (found.verdict == Verdict::Unknown && verdict.verdict == Verdict::Proved)) {
    verdict = std::move(found);
  } else {
    verdict.reassociates |= found.reassociates;
  }
  return verdict.verdict == Verdict::Refuted;
}

}  // namespace helve::legality
