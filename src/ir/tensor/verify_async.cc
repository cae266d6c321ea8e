// Asynchronous copies: which an iteration may begin, and that a kernel waits for all of them.
// Counted here is the least number of copies that are unfinished, whichever way control takes: what it finds is a fault
// of every run, and the interpreter finds the others.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "helve/ir/tensor/copy_queue.h"
#include "helve/ir/tensor/verify.h"
#include "helve/ir/tensor/visit.h"
#include "verify_rules.h"

namespace helve::verify_rules {

namespace {

/// How many groups of a queue are unfinished at least, and the oldest of them that the text shows.
struct Queue {
  CopyQueue queue;
  int64_t count = 0;
  Span span;

  bool operator==(const Queue&) const = default;
};

/// The queues that have unfinished groups.
class Unfinished {
 public:
  void begin(const CopyQueue& queue, const Span& span) {
    const auto at = find(queue);
    if (at == queues_.end()) {
      queues_.push_back({queue, 1, span});
    } else {
      ++at->count;
    }
  }
  void wait(const CopyQueue& queue, int64_t pending) {
    const auto at = find(queue);
    if (at == queues_.end()) return;
    at->count = std::min(at->count, pending);
    if (at->count == 0) queues_.erase(at);
  }
  void limit_to(const Unfinished& other) {
    for (size_t i = queues_.size(); i-- > 0;) {
      const auto at = queues_.begin() + static_cast<std::ptrdiff_t>(i);
      const auto theirs = std::find_if(other.queues_.begin(), other.queues_.end(),
                                       [&](const Queue& each) { return each.queue == at->queue; });
      if (theirs == other.queues_.end()) {
        queues_.erase(at);
      } else if (theirs->count < at->count) {
        *at = *theirs;
      }
    }
  }
  const Queue* first() const { return queues_.empty() ? nullptr : &queues_.front(); }

  bool operator==(const Unfinished&) const = default;

 private:
  std::vector<Queue>::iterator find(const CopyQueue& queue) {
    return std::find_if(queues_.begin(), queues_.end(), [&](const Queue& each) { return each.queue == queue; });
  }

  std::vector<Queue> queues_;
};

Unfinished fewer(Unfinished a, const Unfinished& b) {
  a.limit_to(b);
  return a;
}

bool runs(const For& loop) {
  return std::all_of(loop.extents.begin(), loop.extents.end(), [](const Expr& e) {
    const int64_t* extent = int_value(e);
    return extent && *extent > 0;
  });
}

/// The states after statements, each loop once for each state before it: bodies are followed twice, and nested ones
/// would be followed twice as often with each level.
class Following {
 public:
  Unfinished after(const Stmt& s, const Unfinished& state) {
    if (!s || (s->kind != StmtKind::For && s->kind != StmtKind::While)) return after_new(s, state);
    std::vector<std::pair<Unfinished, Unfinished>>& known = known_[s.get()];
    for (const auto& [before, result] : known) {
      if (before == state) return result;
    }
    Unfinished result = after_new(s, state);
    known_[s.get()].emplace_back(state, result);
    return result;
  }

 private:
  Unfinished after_new(const Stmt& s, Unfinished state);

  std::unordered_map<const StmtNode*, std::vector<std::pair<Unfinished, Unfinished>>> known_;
};

Unfinished Following::after_new(const Stmt& s, Unfinished state) {
  if (!s) return state;
  if (const TileOp* op = as<TileOp>(s)) {
    if (is_group(*op) || commits(*op)) state.begin(copy_queue(*op), s->span);
    if (op->row().rule == TileRule::Wait) state.wait(copy_queue(*op), op->pending());
    return state;
  }
  if (const Seq* n = as<Seq>(s)) {
    for (const Stmt& part : n->stmts) state = after(part, state);
    return state;
  }
  if (const If* n = as<If>(s)) return fewer(after(n->then_body, state), after(n->else_body, state));
  if (const For* n = as<For>(s)) {
    const bool independent =
        n->loop == LoopKind::Parallel || n->loop == LoopKind::Vectorized || n->loop == LoopKind::Thread;
    if (independent) return state;  // until they are committed
    // The least over all numbers of iterations: it grows with each or falls with each.
    const Unfinished once = after(n->body, state);
    const Unfinished later = fewer(once, after(n->body, once));
    return runs(*n) ? later : fewer(state, later);
  }
  if (const While* n = as<While>(s)) return fewer(state, after(n->body, state));
  return state;
}

Unfinished at_end(const Kernel& kernel) { return Following().after(kernel.body, {}); }

}  // namespace

void verify_copies_end(const Kernel& kernel) {
  const Unfinished end = at_end(kernel);
  if (const Queue* left = end.first()) {
    const std::string work = work_text(left->queue);
    throw UserError(Code::UnfinishedCopy, left->span, {{"work", work}}, {{kernel.span, "the kernel"}},
                    {"end with " + wait_text(left->queue) + (work == "copy" ? ", which waits for all copies" : "")});
  }
}

void verify_run(const TileOp& op) {
  for (size_t i = 0; i < op.operands.size(); ++i) {
    const Region* region = std::get_if<Region>(&op.operands[i]);
    if (!region) continue;
    for (size_t d = 0; d < region->ranges.size(); ++d) {
      const int64_t* extent = int_value(region->ranges[d].extent);
      if (extent && (*extent == 1 || d + 1 == region->ranges.size())) continue;
      refuse_argument(operation_text(op), std::string(op.row().params[i].name), shape_text(region->shape()),
                      "an iteration copies one run of constant length along the last dimension",
                      "give each iteration a run of its own, or move the copy out of the loop", op.place(i),
                      {declaration_note(*region->buffer)});
    }
  }
}

}  // namespace helve::verify_rules

namespace helve {

bool leaves_copies(const Kernel& kernel) { return verify_rules::at_end(kernel).first() != nullptr; }

}  // namespace helve
