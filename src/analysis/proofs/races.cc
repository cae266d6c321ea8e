// Are the iterations of a loop independent?
// Two iterations conflict if one writes an element that the other reads or writes, in memory that both share.
#include <fmt/format.h>

#include <algorithm>

#include "helve/analysis/iteration_scratch.h"
#include "helve/ir/expr/visit.h"
#include "helve/support/text.h"
#include "obligations.h"
#include "race_fault.h"
#include "updates.h"

namespace helve::proofs {

namespace {

class LoopRace {
 public:
  LoopRace(const AccessModel& model, const IndependentLoop& loop, PathFacts& facts, Budget& budget)
      : of_(model, loop), facts_(facts), budget_(budget) {}

  Proof run() {
    Proof proof;
    proof.kind = ProofKind::Race;
    proof.span = of_.step.span;
    proof.question =
        fmt::format("{} {} are independent", of_.is_kernel ? (of_.mesh ? "cores" : "blocks") : "iterations",
                    join(of_.step.vars, ", ", [](const VarRef& v) { return v->name; }));
    proof.verdict = ProofVerdict::Proved;
    if (trivial()) return proof;
    for (const Pair& pair : conflicts(of_, facts_)) {
      ask(pair, proof);
      if (proof.verdict == ProofVerdict::Refuted) break;
    }
    return proof;
  }

 private:
  /// At most one iteration.
  bool trivial() const {
    int64_t count = 1;
    for (const Expr& extent : of_.step.extents) {
      const int64_t* v = int_value(extent);
      if (!v || (count > 0 && *v > 1)) return false;
      count = std::min(count, *v);
    }
    return true;
  }

  void ask(const Pair& pair, Proof& proof) {
    if (pair.first->buffer != pair.second->buffer) {
      return weaken(proof, ProofVerdict::Unknown,
                    fmt::format("'{}' and '{}' may share memory", pair.first->buffer->name, pair.second->buffer->name));
    }
    const bool is_private = pair.first->buffer->scope == MemoryScope::Local;
    const bool accumulates = is_private && may_accumulate(pair);
    if (is_private && !accumulates && !shows_order(pair)) return doubt_private(pair, proof);
    const Meeting met = meeting(of_, pair);
    const bool copies = in_blocks(of_, *pair.first, *pair.second);
    const Finding found = met.query.excludes(met.condition, budget_);
    if (is_private) {
      if (accumulates && found.verdict != ProofVerdict::Proved) warn_of_accumulation(pair, proof);
      if (found.verdict != ProofVerdict::Refuted || !shows_order(pair)) return doubt_private(pair, proof);
      if (pair.first->write && pair.second->write) {
        return refute_scratch(of_, pair, met, found.witness, may_accumulate(pair), proof);
      }
      return refute(of_, pair, met, found.witness, proof);
    }
    if (found.verdict == ProofVerdict::Proved || found.verdict == ProofVerdict::Unknown) {
      return weaken(proof, found.verdict, found.reason);
    }
    if (of_.is_kernel && pair.first == pair.second && stores_constant(*pair.first->stmt)) {
      weaken(proof, ProofVerdict::Unknown,
             fmt::format("several store to '{}', each time the same constant", pair.first->buffer->name));
    } else if (copies) {
      weaken(proof, ProofVerdict::Unknown,
             fmt::format("copies of one block of '{}' are one memory where it is one array, and several cores use them",
                         pair.first->buffer->name));
    } else if (of_.is_kernel && of_.mesh && pair.first->write && pair.second->write) {
      // Cores with copies of the same block may store equal values, which is no race.
      weaken(proof, ProofVerdict::Unknown, "cores may store equal values there");
    } else if (found.verdict == ProofVerdict::Checked) {
      weaken(proof, ProofVerdict::Checked);
      const Span& span = later(pair).span;
      std::vector<Note> notes;
      if (of_.step.span != span) notes.push_back({of_.step.span, of_.is_kernel ? "the kernel" : "the loop"});
      proof.conditions.push_back(
          call_condition(*of_.model.function, found.condition, proof.question, span, std::move(notes)));
    } else {
      refute(of_, pair, met, found.witness, proof);
    }
  }

  /// Each iteration has private memory of its own. The order of iterations is visible in the values that are read after
  /// the loop, and in an element that each iteration updates from its previous value.
  bool shows_order(const Pair& pair) const {
    const Buffer& buffer = *pair.first->buffer;
    if (pair.first->write && pair.second->write) {
      return read_after_loop(of_.model.function->body, *of_.step.stmt, buffer) == ReadFirst::Always;
    }
    const bool single = std::all_of(buffer.shape.begin(), buffer.shape.end(), [](const Expr& e) {
      const int64_t* extent = int_value(e);
      return extent && *extent == 1;
    });
    return single && of_.step.stmt->kind == StmtKind::For &&
           reads_before_writing(static_cast<const For&>(*of_.step.stmt).body, buffer) == ReadFirst::Always;
  }

  /// Is it a store of a value made from the old one, or under a condition that reads it, as in a search for the
  /// greatest?
  bool updates(const Access& access) const {
    if (updated_by(access)) return true;
    return access.write &&
           std::any_of(access.path.begin() + static_cast<std::ptrdiff_t>(of_.at), access.path.end(),
                       [&](const StepRef& step) { return loads_from(step->condition, *access.buffer); });
  }

  static bool loads_from(const Expr& e, const Buffer& buffer) {
    bool found = false;
    if (e) {
      walk(e, [&](const Expr& node) {
        const Load* load = as<Load>(node);
        found |= load && &buffer_of(load->buffer) == &buffer;
      });
    }
    return found;
  }

  /// Do iterations combine an element that may come from before the loop with values of theirs, and is it read after
  /// the loop? Each then starts from that old value, and at most one of the results is kept.
  bool may_accumulate(const Pair& pair) const {
    const Buffer& buffer = *pair.first->buffer;
    return of_.step.stmt->kind == StmtKind::For && updates(*pair.first) && updates(*pair.second) &&
           reads_before_writing(static_cast<const For&>(*of_.step.stmt).body, buffer) != ReadFirst::Never &&
           read_after_loop(of_.model.function->body, *of_.step.stmt, buffer) != ReadFirst::Never;
  }

  void warn_of_accumulation(const Pair& pair, Proof& proof) const {
    const Access& store = *pair.first;
    if (std::any_of(proof.warnings.begin(), proof.warnings.end(),
                    [&](const Diagnostic& each) { return each.notes[0].span == store.buffer->span; }))
      return;
    const std::string vars = join(of_.step.vars, ", ", [](const VarRef& v) { return v->name; });
    proof.warnings.push_back(
        {Code::PrivateAccumulation,
         store.span,
         {{"buffer", store.buffer->name}, {"variables", vars}},
         {{store.buffer->span, fmt::format("'{}' is allocated here", store.buffer->name)}, {of_.step.span, "the loop"}},
         {}});
  }

  static void doubt_private(const Pair& pair, Proof& proof) {
    weaken(proof, ProofVerdict::Unknown,
           fmt::format("'{}' is private to a thread, which runs several iterations", pair.first->buffer->name));
  }

  static bool stores_constant(const StmtNode& stmt) {
    if (stmt.kind != StmtKind::Store) return false;
    const ExprKind kind = static_cast<const Store&>(stmt).value->kind;
    return kind == ExprKind::IntImm || kind == ExprKind::FloatImm;
  }

  const Iterations of_;
  PathFacts& facts_;
  Budget& budget_;
};

}  // namespace

std::vector<Proof> prove_races(const AccessModel& model, PathFacts& facts, Budget& budget) {
  std::vector<Proof> out;
  for (const IndependentLoop& loop : model.loops) out.push_back(LoopRace(model, loop, facts, budget).run());
  return out;
}

}  // namespace helve::proofs
