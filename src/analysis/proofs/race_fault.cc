// Texts of races: who, where, when, and the remedy that fits the kind of loop and of access.
// Values are those of the witness; what it does not determine is printed as dots.
#include "race_fault.h"

#include <fmt/format.h>

#include <algorithm>

#include "helve/ir/expr/visit.h"
#include "helve/support/text.h"

namespace helve::proofs {

namespace {

std::string iteration_text(const Iterations& of, const Witness& witness, const Substitution& renamed) {
  return join(of.step.vars, ", ", [&](const VarRef& var) {
    auto it = renamed.find(var.get());
    const Var* named = it == renamed.end() ? var.get() : as<Var>(it->second);
    return fmt::format("{}={}", var->name, value_in(witness, named).value_or(0));
  });
}

std::string element_text(const Access& access, const std::vector<Expr>& element, const Witness& witness) {
  return access.buffer->name + "[" +
         join(element, ", ",
              [&](const Expr& e) {
                const std::optional<int64_t> value = evaluate(e, witness);
                return value ? std::to_string(*value) : std::string("...");
              }) +
         "]";
}

/// The values outside of the loop on which the element depends.
std::string outer_text(const Iterations& of, const Pair& pair, const Witness& witness) {
  Witness outer;
  for (const auto& [var, value] : witness) {
    bool inner = false;
    for (const Access* t : {pair.first, pair.second}) {
      for (size_t i = of.from; i < t->path.size(); ++i) {
        for (const VarRef& bound : t->path[i]->vars) inner |= bound == var;
      }
    }
    if (!inner) outer.emplace_back(var, value);
  }
  std::vector<Expr> exprs;
  for (const Access* t : {pair.first, pair.second}) {
    for (const Range& r : t->ranges) exprs.insert(exprs.end(), {r.begin, r.extent});
  }
  return mentioned_text(outer, exprs);
}

bool same_element(const Access& a, const Access& b) {
  return std::equal(a.ranges.begin(), a.ranges.end(), b.ranges.begin(), b.ranges.end(),
                    [](const Range& x, const Range& y) { return same_expr(x.begin, y.begin); });
}

const char* serial(const Iterations& of) {
  return of.step.stmt->kind == StmtKind::ForTiles ? "T.foreach_tiles(..., parallel=False)" : "T.serial";
}

/// Are the iterations the threads of T.thread()?
bool is_of_threads(const Iterations& of) {
  return of.step.stmt->kind == StmtKind::For && static_cast<const For*>(of.step.stmt)->loop == LoopKind::Thread;
}

std::string who(const Iterations& of) {
  if (is_of_threads(of)) return "threads of this block";
  if (of.is_kernel) return of.mesh ? "cores of this kernel" : "blocks of this kernel";
  return of.is_persistent ? "iterations of this T.Persistent loop" : "iterations of this parallel loop";
}

std::string block_remedy(const Iterations& of, const std::string& atomic) {
  return fmt::format("give each {} elements of its own, {}or split the work into two kernels",
                     of.mesh ? "core" : "block", atomic.empty() || of.mesh ? "" : "write " + atomic + ", ");
}

/// Is the loop inside of iterations that are divided already, each of which has one thread?
bool is_nested(const Iterations& of) {
  return std::any_of(of.loop.begin(), of.loop.begin() + static_cast<std::ptrdiff_t>(of.at), [](const StepRef& step) {
    return step->stmt && step->stmt->kind == StmtKind::For &&
           static_cast<const For*>(step->stmt)->loop == LoopKind::Parallel;
  });
}

/// A reduction is no remedy where memory decides which element an iteration updates, nor in a part of another loop.
std::string update_remedy(const Iterations& of, const Update& update) {
  const std::string atomic = atomic_text(update);
  if (of.is_kernel) return block_remedy(of, atomic);
  const std::optional<Op> op = combination(update);
  const bool reduces = op && !is_nested(of) && std::none_of(update.element.begin(), update.element.end(), has_load);
  std::string out;
  if (reduces)
    out = fmt::format("reduce outside the loop, by {} into '{}', ", reduction_text(*op), update.buffer->name);
  if (!atomic.empty()) out += "write " + atomic + ", ";
  return fmt::format("{}{}make the loop {}", out, out.empty() ? "" : "or ", serial(of));
}

/// A barrier orders two statements, and no statement with itself.
std::string thread_remedy(const Pair& pair, const std::string& atomic) {
  const bool one = pair.first->stmt == pair.second->stmt;
  const std::string first =
      one || (pair.first->write && pair.second->write) ? "give each thread elements of its own" : "";
  const std::string second = !atomic.empty() ? "write " + atomic : one ? "" : "put T.sync_threads() between the two";
  return first + (first.empty() || second.empty() ? "" : ", or ") + second;
}

std::string remedy(const Iterations& of, const Pair& pair) {
  const Access &a = *pair.first, &b = *pair.second;
  const std::string& buffer = a.buffer->name;
  const bool both_write = a.write && b.write;
  if (a.stmt == b.stmt && same_element(a, b)) {
    const std::optional<Update> update = update_by(of, a.write ? a : b);
    const bool updates = update && reads_old(*update);
    if (is_of_threads(of)) return thread_remedy(pair, updates ? atomic_text(*update) : "");
    if (updates) return update_remedy(of, *update);
  }
  if (is_of_threads(of)) return thread_remedy(pair, "");
  if (of.is_kernel) return block_remedy(of, "");
  if (is_atomic(a.mode) || is_atomic(b.mode)) {
    return fmt::format("split the loop in two, so that {}, or make the loop {}",
                       !both_write ? fmt::format("'{}' is not read in the loop that updates it", buffer)
                                   : "each updates or stores in one way only",
                       serial(of));
  }
  if (!both_write) return fmt::format("read from a copy of '{}', or make the loop {}", buffer, serial(of));
  const std::string vars = join(of.step.vars, ", ", [](const VarRef& v) { return v->name; });
  return fmt::format("index '{}' with every loop variable ({}), or make the loop {}", buffer, vars, serial(of));
}

}  // namespace

const char* executors_text(const Iterations& of) {
  return of.is_kernel ? "the kernel" : is_of_threads(of) ? "the threads" : "the loop";
}

const Access& later(const Pair& pair) {
  return pair.first->visit == pair.second->visit && pair.first->write ? *pair.first : *pair.second;
}

void refute(const Iterations& of, const Pair& pair, const Overlap& overlap, const Witness& witness, Proof& proof) {
  const Access &a = *pair.first, &b = *pair.second;
  const std::string noun = is_of_threads(of) ? "thread" : !of.is_kernel ? "iteration" : of.mesh ? "core" : "block";
  const std::string one = iteration_text(of, witness, {}), two = iteration_text(of, witness, overlap.renamed);
  const std::string place = element_text(a, overlap.element, witness);
  std::string text;
  if (a.write && b.write) {
    text = fmt::format("{}s {} and {} both write {}", noun, one, two, place);
  } else {
    text = fmt::format("{} {} writes {}, {} {} reads it", noun, a.write ? one : two, place, noun, a.write ? two : one);
  }
  const std::string outer = outer_text(of, pair, witness);
  if (!outer.empty()) text += fmt::format(", when {}", outer);
  weaken(proof, ProofVerdict::Refuted);
  proof.witness = text;
  const Access& last = later(pair);
  const Access& other = &last == &a ? b : a;
  std::vector<Note> notes = {{a.stmt == b.stmt ? Span{} : other.span, text}};
  if (of.step.span != last.span) notes.push_back({of.step.span, executors_text(of)});
  proof.fault = Diagnostic{Code::RacingLoop,
                           last.span,
                           {{"who", who(of)},
                            {"conflict", a.write && b.write ? "write" : "read and write"},
                            {"buffer", a.buffer->name},
                            {"remedy", remedy(of, pair)}},
                           std::move(notes),
                           {}};
}

void refute_scratch(const Iterations& of, const Pair& pair, const Overlap& overlap, const Witness& witness,
                    const std::optional<Update>& update, Proof& proof) {
  const Access& last = later(pair);
  std::vector<std::string> fixes;
  if (update) fixes.push_back(private_remedy(*update));
  weaken(proof, ProofVerdict::Refuted);
  proof.witness = fmt::format("iterations {} and {} both leave a value", iteration_text(of, witness, {}),
                              iteration_text(of, witness, overlap.renamed));
  const std::string vars = join(of.step.vars, ", ", [](const VarRef& v) { return v->name; });
  proof.fault = Diagnostic{Code::LoopScratch,
                           last.span,
                           {{"buffer", last.buffer->name}, {"variables", vars}},
                           {{last.buffer->span, fmt::format("'{}' is allocated here", last.buffer->name)},
                            {of.step.span, executors_text(of)},
                            {{}, proof.witness}},
                           std::move(fixes)};
}

Diagnostic racing_update(const Iterations& of, const Access& store, const Update& update, const std::string& reason) {
  return {Code::RacingUpdate,
          store.span,
          {{"who", who(of)}, {"buffer", update.buffer->name}, {"remedy", update_remedy(of, update)}},
          {{of.step.span, executors_text(of)},
           {{}, fmt::format("they are not proved to update different elements: {}", reason)}},
          {}};
}

}  // namespace helve::proofs
