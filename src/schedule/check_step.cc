// Is a step of a schedule legal? What a primitive says of its rewrite, put to the one checker.
// A region is what the primitive changed, or the block around it where that is several statements: the same statement
// of the old and the new function, so that each instance inside has a time in both.
#include "check_step.h"

#include <fmt/format.h>

#include <map>

#include "helve/ir/expr/text.h"
#include "helve/ir/tensor/verify.h"
#include "helve/ir/tensor/visit.h"
#include "helve/schedule/find.h"
#include "helve/schedule/legality.h"
#include "plain_update.h"
#include "unseen.h"

namespace helve {

namespace {

struct Numbered {
  Stmt stmt;
  size_t visit;
};
using Numbers = std::map<Cursor, Numbered>;

/// Statements below `s` with their numbers in `walk`'s order; `at` is the first of those in `s`.
void number(const Stmt& s, const Cursor& at, size_t& next, Numbers& out) {
  if (const Seq* list = as<Seq>(s)) {
    ++next;
    for (size_t i = 0; i < list->stmts.size(); ++i) number(list->stmts[i], at.at(at.position() + i), next, out);
    return;
  }
  out.emplace(at, Numbered{s, next++});
  for_each_block(s, [&](const std::string& field, const Stmt& body) {
    if (body) number(body, at.child(field, 0), next, out);
  });
}

struct NumberedRegion {
  Stmt stmt;
  Numbers numbers;

  NumberedRegion(Stmt region, const Cursor& first) : stmt(std::move(region)) {
    size_t next = 0;
    number(stmt, first, next, numbers);
  }
};

/// What runs where: the statements that cursors carried along, then the pieces.
std::vector<Origin> origins(const Rewrite& rewrite, const NumberedRegion& before, const NumberedRegion& after) {
  std::map<Cursor, Origin> found;
  const auto add = [&](const Cursor& from, const Cursor& to, const LoopValues& values) {
    const auto there = after.numbers.find(to);
    HELVE_CHECK(there != after.numbers.end(), "a statement of a rewrite is outside of what it changed");
    found.insert_or_assign(
        to, Origin{there->second.stmt.get(), there->second.visit, before.numbers.at(from).visit, values});
  };
  for (const auto& [at, numbered] : before.numbers) {
    if (rewrite.meaning) break;  // cursors are of the new function
    if (const std::optional<Cursor> now = rewrite.edited.forward(at)) add(at, *now, rewrite.values);
  }
  for (const Piece& piece : rewrite.pieces) {
    for (const auto& [at, numbered] : before.numbers) {
      if (at.within(piece.before)) add(at, at.rebased(piece.before, piece.after), piece.values);
    }
  }
  for (const Inlined& each : rewrite.inlined) {
    const std::optional<Cursor> now = rewrite.edited.forward(each.at);
    HELVE_CHECK(now && found.contains(*now), "a value in a statement that is gone");
    found.at(*now).inlined.push_back({each.load, before.numbers.at(each.writer).visit, each.values});
  }
  std::vector<Origin> out;
  for (auto& [at, origin] : found) out.push_back(std::move(origin));
  return out;
}

/// The loops that are meant, compared with those in whose place the operation, or the program of cores, is; or the
/// statements of a function without its schedule, of which pieces tell all that stands in their block. An
/// operation combines in any order: integers wrap, so that plain sums of them are sums in any order; those of floats
/// are not.
Legality legality_of(const FunctionRef& f, const Rewrite& rewrite, const Meaning& meaning) {
  if (meaning.form == RegionForm::Program) {
    const NumberedRegion before(statement_at(*f, rewrite.before.first), rewrite.before.first);
    const NumberedRegion after(seq(statements_of(meaning.edited.function, meaning.place)), meaning.place.first);
    return check_rewrite(*f, before.stmt, after.stmt, origins(rewrite, before, after), ExactEngine(), rewrite.by_value);
  }
  std::optional<Stmt> ordered;
  const Stmt updated = helve::rewrite(statement_at(*f, rewrite.before.first), [&](const Stmt& s) {
    const Stmt out = plain_update(s);
    if (out != s && as<Store>(s)->buffer->dtype.is_float()) ordered = s;
    return out;
  });
  const FunctionRef was = replace(f, rewrite.before, {updated}).function;
  const NumberedRegion before(statement_at(*was, rewrite.before.first), rewrite.before.first);
  const NumberedRegion after(seq(statements_of(meaning.edited.function, meaning.place)), meaning.place.first);
  Legality out =
      check_rewrite(*was, before.stmt, after.stmt, origins(rewrite, before, after), ExactEngine(), {}, meaning.form);
  if (out.verdict == Verdict::Proved && ordered) {
    out.verdict = Verdict::Unknown;
    out.reason = fmt::format("the order of '{}' is part of the program, where T.update would leave it open",
                             head_text(*ordered));
  }
  if (out.verdict != Verdict::Proved || !rewrite.unseen) return out;
  const bool reassociates = out.reassociates;
  out = check_unseen(*rewrite.unseen);
  out.reassociates = reassociates;
  return out;
}

/// What the fault of the way back is on the way there.
Legality turned_round(Legality legality) {
  if (legality.fault == RewriteFault::Lost) {
    legality.fault = RewriteFault::Added;
  } else if (legality.fault == RewriteFault::Added) {
    legality.fault = RewriteFault::Lost;
  } else if (legality.fault == RewriteFault::Value || legality.fault == RewriteFault::Left) {
    if (!legality.nothing) std::swap(legality.second, legality.instead);
  }
  return legality;
}

/// Does the old function what the new one does? Then the new one does what the old one does.
Legality legality_backwards(const FunctionRef& f, const Rewrite& rewrite) {
  const FunctionRef& made = rewrite.edited.function;
  const NumberedRegion before(body_around(*made, rewrite.after.first), rewrite.after.first.at(0));
  const NumberedRegion after(body_around(*f, rewrite.before.first), rewrite.before.first.at(0));
  std::map<Cursor, Origin> found;
  for (const auto& [at, numbered] : after.numbers) {
    const std::optional<Cursor> from = rewrite.edited.forward(at);
    HELVE_CHECK(from, "a statement is gone in a rewrite that is judged backwards");
    found.emplace(at, Origin{numbered.stmt.get(), numbered.visit, before.numbers.at(*from).visit, {}});
  }
  for (const Inlined& each : rewrite.inlined) {
    found.at(each.at).inlined.push_back({each.load, before.numbers.at(each.writer).visit, each.values});
  }
  std::vector<Origin> origins;
  for (auto& [at, origin] : found) origins.push_back(std::move(origin));
  return turned_round(check_rewrite(*made, before.stmt, after.stmt, origins, ExactEngine(), rewrite.by_value,
                                    RegionForm::WithoutStores));
}

Legality legality_of(const FunctionRef& f, const Rewrite& rewrite) {
  if (rewrite.backwards) return legality_backwards(f, rewrite);
  if (rewrite.meaning && !rewrite.meaning->carries) return legality_of(f, rewrite, *rewrite.meaning);
  if (rewrite.meaning) {
    Rewrite meant = rewrite;
    meant.edited = rewrite.meaning->edited;
    meant.after = rewrite.meaning->place;
    meant.meaning.reset();
    return legality_of(f, meant);
  }
  const ExactEngine engine;
  if (rewrite.before.size == 1) {
    const NumberedRegion before(statement_at(*f, rewrite.before.first), rewrite.before.first);
    const NumberedRegion after(seq(statements_of(rewrite.edited.function, rewrite.after)), rewrite.after.first);
    return check_rewrite(*f, before.stmt, after.stmt, origins(rewrite, before, after), engine, rewrite.by_value);
  }
  const NumberedRegion before(body_around(*f, rewrite.before.first), rewrite.before.first.at(0));
  const NumberedRegion after(body_around(*rewrite.edited.function, rewrite.after.first), rewrite.after.first.at(0));
  return check_rewrite(*f, before.stmt, after.stmt, origins(rewrite, before, after), engine, rewrite.by_value);
}

std::string values_text(const Witness& at) {
  std::string out;
  for (const auto& [var, value] : at) out += fmt::format("{}{} = {}", out.empty() ? "" : ", ", var->name, value);
  return out;
}

void add_note(std::vector<Note>& notes, const std::optional<Instance>& instance) {
  if (!instance) return;
  const std::string when = values_text(instance->at);
  const std::string does =
      instance->access ? fmt::format("{} {}", instance->access->write ? "writes" : "reads", text_of(*instance->access))
                       : "runs";
  notes.push_back({instance->access ? instance->access->span : instance->stmt->span,
                   when.empty() ? does : fmt::format("{} at {}", does, when)});
}

/// The remedy for a fault; `moved`: statements were moved that may run again, none that copy were added.
std::string remedy(RewriteFault fault, bool moved) {
  switch (fault) {
    case RewriteFault::Lost:
    case RewriteFault::Twice:
    case RewriteFault::Added: return "choose a tail, or extents, with which every iteration runs once";
    case RewriteFault::Changed: return "let the statement read the values that it reads now";
    case RewriteFault::Value:
      return moved ? "leave the statement where the last write of what it reads is the one that it sees now"
                   : "copy what the statement reads behind its last write, and in front of the read";
    case RewriteFault::Left:
      return moved ? "name a loop that needs every element that the statement writes"
                   : "copy back all that is written, and nothing else";
    case RewriteFault::Shared: return "let each iteration have a buffer of its own, or make the loop serial()";
    case RewriteFault::Filled: return "fill partial results with the identity in front of their first update";
    case RewriteFault::Merged: return "merge each partial result behind its last update, once";
    case RewriteFault::Outside: return "merge only elements that are updated now";
    case RewriteFault::Seen: return "let statements read what is computed now only, or leave out tail=\"whole\"";
    case RewriteFault::Memory: return "allocate the buffer around the loops that share it";
    case RewriteFault::None:
    case RewriteFault::Turned:
    case RewriteFault::AtOnce: break;
  }
  return "leave the order of these instances as it is, or remove the dependence";
}

/// Does the region add floats atomically? Such sums depend on the order of their terms, which the language leaves open
/// and the checker does not compare.
bool adds_in_any_order(const Stmt& region) {
  bool found = false;
  walk(region, [&](const Stmt& s) {
    if (const Store* n = as<Store>(s)) found |= n->mode == StoreMode::AtomicAdd && n->buffer->dtype.is_float();
    const TileOp* n = as<TileOp>(s);
    if (!n || n->op != TileOpcode::AtomicAdd) return;
    for (size_t i = 0; i < n->operands.size(); ++i) found |= n->is_region(i) && n->region(i).buffer->dtype.is_float();
  });
  return found;
}

/// The function in the calls of a version that may assume more of them.
FunctionRef in_calls_of(const FunctionRef& version, const FunctionRef& f) {
  if (version->assumptions.size() == f->assumptions.size()) return f;
  Ref<Function> out = make_ref<Function>(*f);
  out->assumptions = version->assumptions;
  return FunctionRef(out);
}

std::vector<std::string> added_assumptions(const FunctionRef& before, const FunctionRef& after) {
  std::vector<std::string> out;
  for (size_t i = before->assumptions.size(); i < after->assumptions.size(); ++i) {
    out.push_back(to_text(after->assumptions[i].condition));
  }
  return out;
}

}  // namespace

void refuse_result(const UserError& fault, const Arguments& arguments) {
  std::vector<Note> notes{{fault.diagnostic().span, fault.diagnostic().message()}};
  throw UserError(Code::ScheduleForm, arguments.place,
                  {{"primitive", std::string(arguments.row.name)},
                   {"reason", fmt::format("the result would be refused, {}", fault.diagnostic().code_text())}},
                  std::move(notes), {"see the note for what the language demands"});
}

void require_valid(const FunctionRef& f, const Arguments& arguments) {
  try {
    verify(f);
  } catch (const UserError& fault) {
    refuse_result(fault, arguments);
  }
}

StepCheck check_step(const FunctionRef& f, const Rewrite& rewrite, const Arguments& arguments,
                     const std::optional<std::string>& unsafe) {
  require_valid(rewrite.edited.function, arguments);
  if (rewrite.meaning && rewrite.meaning->carries) {
    require_valid(rewrite.meaning->edited.function, arguments);
  }
  Legality legality = legality_of(in_calls_of(rewrite.edited.function, f), rewrite);
  if (legality.verdict == Verdict::Proved && !rewrite.unproved.empty()) {
    legality.verdict = Verdict::Unknown;
    legality.reason = rewrite.unproved;
  }
  std::vector<std::string> needs = added_assumptions(f, rewrite.edited.function);
  if (legality.verdict == Verdict::Proved) {
    const bool open = adds_in_any_order(seq(statements_of(f, rewrite.before)));
    const bool reassociates = legality.reassociates || rewrite.reassociates || open;
    return {reassociates ? StepEffect::Reassociated : StepEffect::Equal, {}, std::move(needs)};
  }
  const std::string why = text_of(legality);
  std::vector<Note> notes;
  add_note(notes, legality.first);
  add_note(notes, legality.second);
  add_note(notes, legality.instead);
  if (const std::string given = values_text(legality.given); !given.empty()) notes.push_back({{}, "with " + given});
  if (legality.verdict == Verdict::Refuted) {
    throw UserError(Code::ScheduleIllegal, arguments.place,
                    {{"primitive", std::string(arguments.row.name)}, {"reason", why}}, std::move(notes),
                    {remedy(legality.fault, !rewrite.by_value.empty())});
  }
  if (unsafe) return {StepEffect::Unproved, why, std::move(needs)};
  std::vector<std::string> fixes;
  if (!legality.remedy.empty()) fixes.push_back(legality.remedy);
  throw UserError(Code::ScheduleUnproved, arguments.place,
                  {{"primitive", std::string(arguments.row.name)}, {"reason", why}}, std::move(notes),
                  std::move(fixes));
}

}  // namespace helve
