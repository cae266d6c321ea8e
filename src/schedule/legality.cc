// The check of a rewrite, question by question.
// A statement that is another one makes the rest meaningless, so the first refutation ends the check.
#include "helve/schedule/legality.h"

#include <fmt/format.h>

#include "helve/ir/tensor/visit.h"
#include "helve/print/printer.h"
#include "helve/support/text.h"
#include "legality/evaluations.h"
#include "legality/mixed_radix.h"
#include "legality/rewrite.h"

namespace helve {

namespace {

/// The statement of a region that has the place of `s` in another one.
const StmtNode* counterpart(const StmtNode* s, const Stmt& other, const Stmt& region) {
  std::vector<const StmtNode*> all;
  walk(region, [&](const Stmt& each) { all.push_back(each.get()); });
  const StmtNode* out = s;
  size_t next = 0;
  walk(other, [&](const Stmt& each) {
    if (each.get() == s) out = all[next];
    ++next;
  });
  return out;
}

/// With `moved_by_value`, memory whose allocation moved is judged by the values that are read from it, else by the
/// order of its accesses. `moved` tells whether there is any.
Legality judged(const Dependences& before, const Stmt& after_region, const std::vector<Origin>& origins,
                const std::vector<BufferRef>& by_value, RegionForm form, bool moved_by_value, bool& moved) {
  Legality out;
  out.verdict = Verdict::Proved;
  std::optional<legality::Rewrite> rewrite = legality::make_rewrite(before, after_region, origins, by_value, out);
  if (rewrite) {
    rewrite->form = form;
    moved = !rewrite->moved.empty();
    if (moved_by_value) rewrite->staged.insert(rewrite->moved.begin(), rewrite->moved.end());
  }
  if (!rewrite || legality::worsen(out, legality::check_statements(*rewrite))) return out;
  if (legality::worsen(out, legality::check_instances(*rewrite))) return out;
  legality::worsen(out, legality::check_dealt(*rewrite));
  if (legality::worsen(out, legality::check_values(*rewrite))) return out;
  if (legality::worsen(out, legality::check_reductions(*rewrite))) return out;
  const bool has_new_memory = !rewrite->staged.empty() || !rewrite->partials.empty();
  if (has_new_memory && legality::worsen(out, legality::check_iterations(*rewrite))) return out;
  if (legality::worsen(out, legality::check_private(*rewrite))) return out;
  if (legality::worsen(out, legality::check_order(*rewrite))) return out;
  const bool may_share = moved || !rewrite->buffers.empty();
  if (may_share && !has_new_memory) legality::worsen(out, legality::check_iterations(*rewrite));
  return out;
}

/// The dependences, then values where memory moved.
Legality decided(const Dependences& before, const Stmt& after_region, const std::vector<Origin>& origins,
                 const std::vector<BufferRef>& by_value, RegionForm form) {
  bool moved = false;
  Legality out = judged(before, after_region, origins, by_value, form, false, moved);
  if (out.verdict == Verdict::Proved || !moved) return out;
  Legality values = judged(before, after_region, origins, by_value, form, true, moved);
  return values.verdict == Verdict::Proved ? values : out;
}

/// A rewrite that is legal so far evaluates nothing else that may fail. Where the new region was the old one before
/// values got stores of their own, what is new is in the old region.
Legality without_failures(Legality found, const Dependences& before, const Stmt& after_region,
                          const std::vector<Origin>& origins, RegionForm form) {
  if (found.verdict != Verdict::Proved) return found;
  const bool backwards = form == RegionForm::WithoutStores;
  if (!legality::may_fail(backwards ? before.region : after_region)) return found;
  const AccessModel after = access_model(*before.function, before.region, after_region);
  std::vector<Origin> turned;
  for (const Origin& origin : origins) turned.push_back({nullptr, origin.before_visit, origin.after_visit, {}});
  legality::worsen(found, backwards ? legality::check_evaluations(after, before.model, turned, before.engine)
                                    : legality::check_evaluations(before.model, after, origins, before.engine));
  return found;
}

}  // namespace

Legality check_rewrite(const Function& before, const Stmt& before_region, const Stmt& after_region,
                       const std::vector<Origin>& origins, const ExactEngine& engine,
                       const std::vector<BufferRef>& by_value, RegionForm form) {
  const Dependences all = dependences(before, before_region, engine);
  const Legality out = decided(all, after_region, origins, by_value, form);
  if (out.verdict != Verdict::Unknown) return without_failures(out, all, after_region, origins, form);
  const std::optional<legality::Question> other =
      legality::in_mixed_radix({FunctionRef(&before), before_region, after_region, origins});
  if (!other) return out;
  Legality found = decided(dependences(*other->before, other->before_region, engine), other->after_region,
                           other->origins, by_value, form);
  if (found.verdict == Verdict::Unknown) return out;
  for (std::optional<Instance>* instance : {&found.first, &found.second, &found.instead}) {
    if (!*instance) continue;
    (*instance)->stmt = counterpart((*instance)->stmt, other->before_region, before_region);
    (*instance)->stmt = counterpart((*instance)->stmt, other->after_region, after_region);
  }
  return without_failures(std::move(found), all, after_region, origins, form);
}

Legality check_rewrite(const Dependences& before, const Stmt& after_region, const std::vector<Origin>& origins,
                       const std::vector<BufferRef>& by_value, RegionForm form) {
  return without_failures(decided(before, after_region, origins, by_value, form), before, after_region, origins, form);
}

namespace {

/// "A[i - 1]", or the first line of the statement, "at i = 1, j = 0".
std::string text_of(const Instance& instance) {
  std::string what;
  if (instance.access) {
    what = text_of(*instance.access);
  } else {
    what = print(Stmt(instance.stmt));
    what = what.substr(0, what.find('\n'));
  }
  const std::string at =
      join(instance.at, ", ", [](const auto& each) { return fmt::format("{} = {}", each.first->name, each.second); });
  return at.empty() ? fmt::format("'{}'", what) : fmt::format("'{}' at {}", what, at);
}

/// "'A[i]' at i = 1" for who wrote a value.
std::string source_text(const std::optional<Instance>& writer) {
  return writer ? fmt::format("what {} writes", text_of(*writer)) : "what stood there before";
}

}  // namespace

std::string text_of(const Legality& legality) {
  if (legality.verdict == Verdict::Proved) return {};
  if (legality.verdict == Verdict::Unknown) return legality.reason;
  const std::string first = legality.first ? text_of(*legality.first) : std::string();
  const std::string instead = legality.nothing ? "nothing that was written" : source_text(legality.instead);
  const std::string second = legality.second ? text_of(*legality.second) : std::string();
  switch (legality.fault) {
    case RewriteFault::None: return {};
    case RewriteFault::Turned: return fmt::format("{} would run before {}, on which it depends", second, first);
    case RewriteFault::AtOnce:
      return fmt::format("{} depends on {}, and both would run in different iterations of one parallel loop", second,
                         first);
    case RewriteFault::Lost: return fmt::format("{} would not run", first);
    case RewriteFault::Twice: return fmt::format("{} would run twice", first);
    case RewriteFault::Added: return fmt::format("{} would run, and does not now", first);
    case RewriteFault::Changed: return fmt::format("{} would become another statement", first);
    case RewriteFault::Value:
      return fmt::format("{} reads {}, and would read {}", first, source_text(legality.second), instead);
    case RewriteFault::Left:
      return fmt::format("'{}' holds {} in the end, and would hold {}", legality.element, source_text(legality.second),
                         instead);
    case RewriteFault::Shared:
      return fmt::format("{} and {} would touch one element in iterations that have no order", first, second);
    case RewriteFault::Filled:
      return fmt::format("{} would use a partial result that does not begin with the identity of its operator", first);
    case RewriteFault::Merged:
      return fmt::format("what {} adds would not be merged next, into the element that it updates", first);
    case RewriteFault::Outside: return fmt::format("'{}' would be updated, and may not be now", legality.element);
    case RewriteFault::Seen: return fmt::format("{} reads what {} would write, and does not now", first, second);
    case RewriteFault::Memory:
      return fmt::format("{} depends on {}, and both would have memory of their own", second, first);
  }
  __builtin_unreachable();
}

}  // namespace helve
