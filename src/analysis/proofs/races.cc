// Are the iterations of a loop independent?
// Two iterations conflict if one writes an element that the other reads or writes, in memory that both share.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "helve/analysis/iteration_scratch.h"
#include "helve/ir/expr/visit.h"
#include "helve/support/text.h"
#include "obligations.h"
#include "race_fault.h"

namespace helve::proofs {

namespace {

class LoopRace {
 public:
  LoopRace(const AccessModel& model, const IndependentLoop& loop, const SharedNames& names, PathFacts& facts,
           Budget& budget)
      : of_(model, loop), names_(names), facts_(facts), budget_(budget) {}

  Proof run() {
    Proof proof;
    proof.kind = ProofKind::Race;
    proof.span = of_.step.span;
    proof.question =
        fmt::format("{} {} are independent", of_.is_kernel ? (of_.mesh ? "cores" : "blocks") : "iterations",
                    join(of_.step.vars, ", ", [](const VarRef& v) { return v->name; }));
    proof.verdict = ProofVerdict::Proved;
    if (trivial()) return proof;
    for (const Pair& pair : conflicts(of_, names_, facts_)) {
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
    const std::optional<Update> update = is_private ? update_of(pair) : std::nullopt;
    const bool accumulates = update && may_accumulate(pair);
    if (is_private && !accumulates && !shows_order(pair)) return doubt_private(pair, proof);
    const Overlap overlap = overlap_of(of_, pair);
    const bool copies = in_blocks(of_, *pair.first, *pair.second);
    const Finding found = overlap.query.excludes(overlap.condition, budget_);
    if (is_private) {
      if (accumulates && found.verdict != ProofVerdict::Proved) warn_of_accumulation(pair, *update, proof);
      if (found.verdict != ProofVerdict::Refuted || !shows_order(pair)) return doubt_private(pair, proof);
      if (pair.first->write && pair.second->write) {
        return refute_scratch(of_, pair, overlap, found.witness, accumulates ? update : std::nullopt, proof);
      }
      return refute(of_, pair, overlap, found.witness, proof);
    }
    const bool by_cores = of_.is_kernel && of_.mesh;  // which collectives may order
    if (found.verdict == ProofVerdict::Unknown && !by_cores) warn_of_lost_updates(pair, found.reason, proof);
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
    } else if (by_cores && pair.first->write && pair.second->write) {
      // Cores with copies of the same block may store equal values, which is no race.
      weaken(proof, ProofVerdict::Unknown, "cores may store equal values there");
    } else if (found.verdict == ProofVerdict::Checked) {
      weaken(proof, ProofVerdict::Checked);
      const Span& span = later(pair).span;
      std::vector<Note> notes;
      if (of_.step.span != span) notes.push_back({of_.step.span, executors_text(of_)});
      proof.conditions.push_back(
          call_condition(*of_.model.function, found.condition, proof.question, span, std::move(notes)));
    } else {
      refute(of_, pair, overlap, found.witness, proof);
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

  /// The first update of a pair of them: stores of values that are made from the old ones, or under conditions that
  /// read these, as in a search for the greatest.
  std::optional<Update> update_of(const Pair& pair) const {
    std::optional<Update> first = update_by(of_, *pair.first);
    if (!first || !reads_old(*first)) return std::nullopt;
    if (pair.first == pair.second) return first;
    const std::optional<Update> second = update_by(of_, *pair.second);
    return second && reads_old(*second) ? first : std::nullopt;
  }

  /// May an element that iterations update come from before the loop, and is it read after the loop? Each then starts
  /// from that old value, and at most one of the results is kept.
  bool may_accumulate(const Pair& pair) const {
    const Buffer& buffer = *pair.first->buffer;
    return of_.step.stmt->kind == StmtKind::For &&
           reads_before_writing(static_cast<const For&>(*of_.step.stmt).body, buffer) != ReadFirst::Never &&
           read_after_loop(of_.model.function->body, *of_.step.stmt, buffer) != ReadFirst::Never;
  }

  /// One warning is enough for a buffer.
  void warn(const Buffer& buffer, Diagnostic warning, Proof& proof) {
    if (warned_.insert(&buffer).second) proof.warnings.push_back(std::move(warning));
  }

  void warn_of_lost_updates(const Pair& pair, const std::string& reason, Proof& proof) {
    const std::optional<Update> update = update_of(pair);
    if (!update) return;
    // A flag that is tested and then set is no loss, whoever sets it: the value has to depend on the old one.
    const bool depends = combination(*update) || reads_old({update->buffer, update->element, update->value});
    if (depends) warn(*update->buffer, racing_update(of_, *pair.first, *update, reason), proof);
  }

  void warn_of_accumulation(const Pair& pair, const Update& update, Proof& proof) {
    const Access& store = *pair.first;
    const std::string vars = join(of_.step.vars, ", ", [](const VarRef& v) { return v->name; });
    const Buffer& buffer = *store.buffer;
    warn(buffer,
         {Code::PrivateAccumulation,
          store.span,
          {{"buffer", buffer.name}, {"variables", vars}, {"remedy", private_remedy(update)}},
          {{buffer.span, fmt::format("'{}' is allocated here", buffer.name)}, {of_.step.span, executors_text(of_)}},
          {}},
         proof);
  }

  static void doubt_private(const Pair& pair, Proof& proof) {
    weaken(proof, ProofVerdict::Unknown,
           fmt::format("'{}' is private to a thread, which runs several iterations", pair.first->buffer->name));
  }

  static bool stores_constant(const StmtNode& stmt) {
    if (stmt.kind != StmtKind::Store) return false;
    const Store& store = static_cast<const Store&>(stmt);
    const ExprKind kind = store.value->kind;
    return store.mode == StoreMode::Write && (kind == ExprKind::IntImm || kind == ExprKind::FloatImm);
  }

  const Iterations of_;
  const SharedNames& names_;
  PathFacts& facts_;
  Budget& budget_;
  std::unordered_set<const Buffer*> warned_;
};

}  // namespace

std::vector<Proof> prove_races(const AccessModel& model, PathFacts& facts, Budget& budget) {
  std::vector<Proof> out;
  const SharedNames names(*model.function);
  for (const IndependentLoop& loop : model.loops) out.push_back(LoopRace(model, loop, names, facts, budget).run());
  return out;
}

}  // namespace helve::proofs
