// A schedule: a function, and the steps that made it of another one.
// A step is a row of the table, its arguments and one check; traces are the list of steps back to the function.
#include "helve/schedule/schedule.h"

#include <fmt/format.h>

#include <unordered_set>

#include "check_step.h"
#include "helve/ir/expr/build.h"
#include "helve/ir/tensor/verify.h"
#include "helve/ir/tensor/visit.h"

namespace helve {

namespace {

/// The expression as the parser makes it: `-0` and conversions of 0, which a variable's value leaves, are constants
/// there.
Expr folded(const Expr& e, Memo<Expr>& known) {
  return known.of(e, [&] {
    const Expr below = map_children(e, [&](const Expr& child) { return folded(child, known); });
    const Cast* converted = as<Cast>(below);
    if (converted && converted->value->kind == ExprKind::IntImm) {
      return cast(converted->value, converted->dtype, below->span);
    }
    const Apply* negated = as_op(below, Op::Neg);
    if (!negated || negated->args[0]->kind != ExprKind::IntImm) return below;
    return apply(Op::Neg, negated->args, below->span);
  });
}

/// The statement with a copy of each node that is in `seen` already: every node is at one place.
Stmt apart(const Stmt& s, std::unordered_set<const StmtNode*>& seen, std::vector<Stmt>& alive) {
  Memo<Expr> known;
  const Stmt below = map_parts(
      s, [&](const Expr& e) { return folded(e, known); }, [&](const Stmt& inner) { return apart(inner, seen, alive); });
  if (seen.insert(below.get()).second) {
    alive.push_back(below);  // or a later node might have its address
    return below;
  }
  const Stmt copy = dispatch(below, [](const auto& node) -> Stmt {
    using N = std::decay_t<decltype(node)>;
    return Stmt(copy_with(node, [](N&) {}));
  });
  seen.insert(copy.get());
  alive.push_back(copy);
  return copy;
}

FunctionRef apart(const FunctionRef& f) {
  std::unordered_set<const StmtNode*> seen;
  std::vector<Stmt> alive;
  return with_body(f, apart(f->body, seen, alive));
}

std::vector<TraceArgument> kept(const Function& f, const std::vector<ScheduleArgument>& values) {
  std::vector<TraceArgument> out;
  for (const ScheduleArgument& value : values) {
    if (const Cursor* at = std::get_if<Cursor>(&value)) {
      out.emplace_back(finder_of(f, *at));
    } else if (const auto* all = std::get_if<std::vector<Cursor>>(&value)) {
      std::vector<Finder> finders;
      for (const Cursor& each : *all) finders.push_back(finder_of(f, each));
      out.emplace_back(std::move(finders));
    } else if (const int64_t* number = std::get_if<int64_t>(&value)) {
      out.emplace_back(*number);
    } else if (const ScheduleVersionRef* other = std::get_if<ScheduleVersionRef>(&value)) {
      out.emplace_back(*other);
    } else {
      out.emplace_back(std::get<std::string>(value));
    }
  }
  return out;
}

/// "loop 'i'", "single loop 'i'", "loop 'i' with number 2".
std::string what_of(const Finder& finder) {
  const std::string named = fmt::format("{} '{}'", to_string(finder.kind), finder.name);
  return finder.index == kOnlyOne ? "single " + named : fmt::format("{} with number {}", named, finder.index);
}

/// What a primitive makes; a subscript or an extent that the language refuses where it is made is a fault of the step.
Rewrite applied(const FunctionRef& f, const Arguments& arguments) {
  try {
    return arguments.row.apply(f, arguments);
  } catch (const UserError& fault) {
    const Code code = fault.diagnostic().code;
    if (code == Code::ScheduleForm || code == Code::ScheduleNothingFound || code == Code::ScheduleArgumentValue) throw;
    refuse_result(fault, arguments);
  }
}

Cursor required(const Function& f, const Finder& finder, const Span& place) {
  if (const std::optional<Cursor> at = found(f, finder)) return *at;
  throw UserError(Code::ScheduleNothingFound, place,
                  {{"function", f.name},
                   {"what", what_of(finder)},
                   {"known", fmt::format("{}", fmt::join(names_of(f, finder.kind), ", "))}});
}

std::vector<ScheduleArgument> resolved(const Function& f, const TraceStep& step, const Span& place) {
  std::vector<ScheduleArgument> out;
  for (const TraceArgument& argument : step.arguments) {
    if (const Finder* finder = std::get_if<Finder>(&argument)) {
      out.emplace_back(required(f, *finder, place));
    } else if (const auto* all = std::get_if<std::vector<Finder>>(&argument)) {
      std::vector<Cursor> cursors;
      for (const Finder& each : *all) cursors.push_back(required(f, each, place));
      out.emplace_back(std::move(cursors));
    } else if (const int64_t* number = std::get_if<int64_t>(&argument)) {
      out.emplace_back(*number);
    } else if (const ScheduleVersionRef* other = std::get_if<ScheduleVersionRef>(&argument)) {
      out.emplace_back(*other);
    } else {
      out.emplace_back(std::get<std::string>(argument));
    }
  }
  return out;
}

}  // namespace

std::string_view to_string(StepEffect effect) {
  switch (effect) {
    case StepEffect::Equal: return "equal";
    case StepEffect::Reassociated: return "reassociated";
    case StepEffect::Unproved: return "unproved";
  }
  __builtin_unreachable();
}

ScheduleVersionRef start_schedule(const FunctionRef& f) {
  verify(f);
  Ref<ScheduleVersion> out = make_ref<ScheduleVersion>();
  out->function = apart(f);
  return ScheduleVersionRef(out);
}

ScheduleVersionRef with_step(const ScheduleVersionRef& version, const PrimitiveRow& row,
                             std::vector<ScheduleArgument> values, const std::optional<std::string>& unsafe,
                             const Span& place) {
  const Arguments arguments{row, std::move(values), place};
  check_arguments(arguments);
  Rewrite rewrite = applied(version->function, arguments);
  const StepCheck check = check_step(version->function, rewrite, arguments, unsafe);
  Ref<ScheduleVersion> out = make_ref<ScheduleVersion>();
  out->function = apart(rewrite.edited.function);
  out->before = version;
  out->forward = rewrite.edited.forward;
  out->step = {std::string(row.name),
               kept(*version->function, arguments.values),
               unsafe,
               check.effect,
               check.reason,
               check.needs,
               place};
  out->results = std::move(rewrite.results);
  return ScheduleVersionRef(out);
}

FunctionRef unchecked_step(const ScheduleVersionRef& version, const PrimitiveRow& row,
                           std::vector<ScheduleArgument> values, const Span& place) {
  const Arguments arguments{row, std::move(values), place};
  check_arguments(arguments);
  const Rewrite rewrite = applied(version->function, arguments);
  require_valid(rewrite.edited.function, arguments);
  return apart(rewrite.edited.function);
}

ScheduleVersionRef replay_step(const ScheduleVersionRef& version, const TraceStep& step, const Span& place) {
  const PrimitiveRow* row = primitive_row(step.primitive);
  HELVE_CHECK(row, "a trace with an unknown primitive");
  return with_step(version, *row, resolved(*version->function, step, place), step.unsafe, place);
}

namespace {

/// Is one of them a loop, and not over the variables of the other?
bool is_another_loop(const Stmt& before, const Stmt& after) {
  const auto names = [](const Stmt& s) {
    std::vector<std::string> out;
    if (const For* loop = as<For>(s)) {
      for (const VarRef& var : loop->vars) out.push_back(var->name);
    }
    return out;
  };
  return names(before) != names(after);
}

}  // namespace

Carried carry(const Cursor& at, const ScheduleVersionRef& from, const ScheduleVersionRef& to) {
  std::vector<const ScheduleVersion*> steps;
  const ScheduleVersion* back = to.get();
  for (; back && back != from.get(); back = back->before.get()) steps.push_back(back);
  Carried out;
  if (!back) return out;
  out.related = true;
  out.cursor = at;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    const Stmt before = statement_at(*(*step)->before->function, *out.cursor);
    out.cursor = (*step)->forward(*out.cursor);
    const bool gone = !out.cursor || is_another_loop(before, statement_at(*(*step)->function, *out.cursor));
    if (gone && out.gone_by.empty()) out.gone_by = (*step)->step.primitive;
    if (!out.cursor) return out;
  }
  return out;
}

}  // namespace helve
