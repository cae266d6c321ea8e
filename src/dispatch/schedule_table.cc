// The choice of a schedule.
// It is the same for all targets: operands are evaluated once and kept apart from the result, then schedules are tried
// in the order of their priorities.
#include "helve/dispatch/schedule_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "helve/ir/expr/visit.h"
#include "helve/ir/tensor/buffer_layout.h"
#include "helve/ir/tensor/visit.h"
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

/// The name that the operation requests, or null if any schedule may be chosen.
const std::string* wanted_name(const TileOp& op) {
  const std::optional<size_t> dispatch = op.row().find("dispatch");
  return dispatch && !op.text(*dispatch).empty() ? &op.text(*dispatch) : nullptr;
}

const ScheduleFamily* wanted_family(const TileOp& op) {
  const std::string* wanted = wanted_name(op);
  for (const ScheduleFamily& family : schedule_families()) {
    if (wanted && family.op == op.op && family.name == *wanted) return &family;
  }
  return nullptr;
}

/// What `dispatch` of the operation can name: its schedules in the tables, each once, and families of them.
std::vector<std::string> names_of(const TileOp& op, const std::vector<const std::vector<TileSchedule>*>& tables) {
  std::vector<std::string> names;
  for (const std::vector<TileSchedule>* table : tables) {
    for (const TileSchedule& s : *table) {
      if (s.op != op.op || std::find(names.begin(), names.end(), s.name) != names.end()) continue;
      names.emplace_back(s.name);
    }
  }
  for (const ScheduleFamily& family : schedule_families()) {
    if (family.op == op.op) names.emplace_back(family.name);
  }
  return names;
}

/// Those of the schedules that the operation requests, best first; empty if it requests none that is among them.
std::vector<const TileSchedule*> requested(const TileOp& op, const std::vector<const TileSchedule*>& schedules) {
  std::vector<const TileSchedule*> out;
  for (const std::string_view name : requested_schedules(op)) {
    std::copy_if(schedules.begin(), schedules.end(), std::back_inserter(out),
                 [&](const TileSchedule* s) { return s->name == name; });
  }
  return out;
}

/// The operation's schedules at a scope, in the order of their priorities.
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

/// The operation's lowering by a schedule, or null with the reason.
Stmt lowered_by(const TileSchedule& schedule, const TileOp& op, const LoweringContext& context, std::string* declined) {
  if (schedule.arch <= context.machine->arch) return schedule.lower(op, context, declined);
  *declined = fmt::format("it needs sm_{}", schedule.arch);
  return {};
}

/// The operation with the layouts that the schedule demands of its operands.
Ref<const TileOp> with_demanded_layouts(const TileOp& op, const std::vector<std::pair<BufferRef, Layout>>& demanded) {
  BufferMap placed;
  for (const auto& [buffer, layout] : demanded) {
    if (!buffer->layout) placed.emplace(buffer.get(), with_layout(declare_again(*buffer), layout, op.span));
  }
  return Ref<const TileOp>(as<TileOp>(replace_buffers(Stmt(&op), placed)));
}

/// Why it does not lower an operation: what no layout of its operands mends, else what theirs lack.
std::string reason_of(const TileSchedule& schedule, const TileOp& op, const LoweringContext& context,
                      const std::string& declined) {
  if (!schedule.place || schedule.arch > context.machine->arch) return declined;
  std::string reason;
  const Ref<const TileOp> placed = with_demanded_layouts(op, schedule.place(op, *context.kernel));
  return lowered_by(schedule, *placed, context, &reason) ? declined : reason;
}

}  // namespace

const std::vector<ScheduleFamily>& schedule_families() {
  static const std::vector<ScheduleFamily> families = {
#define HELVE_SCHEDULE_FAMILY(op, name, ...) {TileOpcode::op, name, {__VA_ARGS__}},
#include "schedule_families.inc"
#undef HELVE_SCHEDULE_FAMILY
  };
  return families;
}

std::vector<std::string_view> requested_schedules(const TileOp& op) {
  if (const ScheduleFamily* family = wanted_family(op)) return family->members;
  const std::string* wanted = wanted_name(op);
  return wanted ? std::vector<std::string_view>{*wanted} : std::vector<std::string_view>();
}

PlacedSchedule asked_schedule(const TileOp& op, const std::vector<TileSchedule>& schedules,
                              const LoweringContext& context) {
  for (const TileSchedule* s : requested(op, candidates(op, schedules, context.scope))) {
    PlacedSchedule out{s, {}};
    if (s->place) out.layouts = s->place(op, *context.kernel);
    std::string declined;
    if (lowered_by(*s, *with_demanded_layouts(op, out.layouts), context, &declined)) return out;
  }
  return {};
}

void require_dispatch(const TileOp& op, const std::vector<TileSchedule>& schedules) {
  const std::string* wanted = wanted_name(op);
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
  require_dispatch(op, schedules);
  std::vector<const TileSchedule*> tried = candidates(op, schedules, context.scope);
  const std::vector<const TileSchedule*> asked = requested(op, tried);
  context.asked = !asked.empty();
  if (context.asked) tried = asked;
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
    if (!reasons.empty()) tried.clear();
  }
  ScheduleChoice choice{operation_text(op), op.span, {}, {}};
  for (const TileSchedule* s : tried) {
    std::string declined;
    if (Stmt lowered = lowered_by(*s, *settled, context, &declined)) {
      choice.schedule = std::string(s->name);
      if (context.choices) context.choices->push_back(std::move(choice));
      body.push_back(lowered);
      return seq(std::move(body), op.span);
    }
    declined = reason_of(*s, *settled, context, declined);
    reasons.push_back({{}, fmt::format("'{}' declined: {}", s->name, declined)});
    choice.declined.push_back({std::string(s->name), std::move(declined)});
  }
  throw UserError(Code::NoSchedule, op.span, {{"operation", operation_text(op)}}, std::move(reasons));
}

}  // namespace helve
