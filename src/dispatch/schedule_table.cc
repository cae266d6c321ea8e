// The choice of a schedule.
// It is the same for all targets: operands are evaluated once and kept apart from the result, then schedules are tried
// in the order of their priorities.
#include "helve/dispatch/schedule_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "helve/ir/expr/visit.h"
#include "helve/support/diagnostic.h"
#include "helve/support/text.h"
#include "stage_operands.h"

namespace helve {

namespace {

/// The operation with a name for each scalar that reads memory: operands are evaluated once, before any write.
Ref<const TileOp> with_scalars_named(const TileOp& op, std::vector<Stmt>* binds) {
  Ref<TileOp> out = make_ref<TileOp>(op);
  const auto settle = [&](Expr& e) {
    if (!has_load(e)) return;
    VarRef value = make_var("value", e->dtype);
    binds->push_back(bind(value, e));
    e = Expr(value);
  };
  for (TileOperand& operand : out->operands) {
    if (Expr* e = std::get_if<Expr>(&operand)) settle(*e);
    if (std::vector<Expr>* items = std::get_if<std::vector<Expr>>(&operand)) {
      std::for_each(items->begin(), items->end(), settle);
    }
    if (Region* region = std::get_if<Region>(&operand)) {
      for (Range& range : region->ranges) {
        settle(range.begin);
        settle(range.extent);
      }
    }
  }
  return out;
}

/// The schedule that the operation requests, or null if any may be chosen.
const std::string* wanted_schedule(const TileOp& op) {
  const std::optional<size_t> dispatch = op.row().find("dispatch");
  return dispatch && !op.text(*dispatch).empty() ? &op.text(*dispatch) : nullptr;
}

/// Names of the operation's schedules in the tables, each once.
std::vector<std::string> names_of(const TileOp& op, const std::vector<const std::vector<TileSchedule>*>& tables) {
  std::vector<std::string> names;
  for (const std::vector<TileSchedule>* table : tables) {
    for (const TileSchedule& s : *table) {
      if (s.op != op.op || std::find(names.begin(), names.end(), s.name) != names.end()) continue;
      names.emplace_back(s.name);
    }
  }
  return names;
}

/// The schedules to try, in order.
std::vector<const TileSchedule*> candidates(const TileOp& op, const std::vector<TileSchedule>& schedules,
                                            OpScope scope) {
  std::vector<const TileSchedule*> out;
  for (const TileSchedule& s : schedules) {
    if (s.op == op.op && s.scope == scope) out.push_back(&s);
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const TileSchedule* a, const TileSchedule* b) { return a->priority > b->priority; });
  return out;
}

}  // namespace

const TileSchedule* asked_schedule(const TileOp& op, const std::vector<TileSchedule>& schedules) {
  const std::string* wanted = wanted_schedule(op);
  const auto row = std::find_if(schedules.begin(), schedules.end(),
                                [&](const TileSchedule& s) { return wanted && s.op == op.op && s.name == *wanted; });
  return row == schedules.end() ? nullptr : &*row;
}

void require_dispatch(const TileOp& op, const std::vector<TileSchedule>& schedules) {
  const std::string* wanted = wanted_schedule(op);
  if (!wanted) return;
  const auto has = [&](const std::vector<std::string>& names) {
    return std::find(names.begin(), names.end(), *wanted) != names.end();
  };
  const std::vector<std::string> own = names_of(op, {&schedules});
  if (has(own)) return;
  const std::vector<std::string> all = names_of(op, {&cpu_schedules(), &cuda_schedules()});
  const bool elsewhere = has(all);
  const std::vector<std::string>& known = elsewhere ? own : all;
  const std::string list = join(known, ", ", [](const std::string& s) { return s; });
  throw UserError(Code::BadArgument, op.place(op.row().index_of("dispatch")),
                  {{"function", operation_text(op)},
                   {"parameter", "dispatch"},
                   {"value", fmt::format("'{}'", *wanted)},
                   {"reason", elsewhere ? "it is an implementation of another target"
                                        : "no target has an implementation of that name"},
                   {"remedy", known.empty() ? "leave it out: this target has one implementation"
                              : elsewhere   ? fmt::format("leave it out, or name one that this target has: {}", list)
                                            : "implementations are: " + list}});
}

Stmt lower_tile_op(const TileOp& op, const std::vector<TileSchedule>& schedules, const LoweringContext& around) {
  LoweringContext context = around;
  std::vector<const TileSchedule*> asked = candidates(op, schedules, context.scope);
  require_dispatch(op, schedules);
  const std::string* wanted = wanted_schedule(op);
  const bool forced =
      wanted && std::any_of(asked.begin(), asked.end(), [&](const TileSchedule* s) { return s->name == *wanted; });
  context.asked = forced;
  std::vector<Stmt> body;
  const Ref<const TileOp> settled = with_scalars_named(op, &body);
  std::vector<Note> reasons;
  if (context.function) {
    const std::vector<Stmt> parts = stage_operands(*settled, *context.function, &reasons);
    for (const Stmt& part : parts) {
      const TileOp* inner = as<TileOp>(part);
      body.push_back(inner ? lower_tile_op(*inner, schedules, context) : part);
    }
    if (!parts.empty()) return seq(std::move(body), op.span);
    if (!reasons.empty()) asked.clear();
  }
  ScheduleChoice choice{operation_text(op), op.span, {}, {}};
  for (const TileSchedule* s : asked) {
    if (forced && s->name != *wanted) continue;
    std::string declined;
    if (s->arch > context.machine->arch) {
      declined = fmt::format("it needs sm_{}", s->arch);
    } else {
      if (Stmt lowered = s->lower(*settled, context, &declined)) {
        choice.schedule = std::string(s->name);
        if (context.choices) context.choices->push_back(std::move(choice));
        body.push_back(lowered);
        return seq(std::move(body), op.span);
      }
    }
    reasons.push_back({{}, fmt::format("'{}' declined: {}", s->name, declined)});
    choice.declined.push_back({std::string(s->name), std::move(declined)});
  }
  throw UserError(Code::NoSchedule, op.span, {{"operation", operation_text(op)}}, std::move(reasons));
}

}  // namespace helve
