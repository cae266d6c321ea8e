// Are asynchronous copies complete where their buffers are used?
// Each copy that may be unfinished is tracked along all paths through the kernel, with the number of copies issued
// after it: a wait leaves that many of the youngest unfinished. Two places of one buffer are distinguished within an
// iteration of the loops around both; a copy of an earlier iteration counts as one of the whole buffer.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "helve/analysis/effects.h"
#include "helve/ir/expr/visit.h"
#include "helve/ir/tensor/copy_queue.h"
#include "helve/ir/tensor/ring.h"
#include "helve/ir/tensor/visit.h"
#include "obligations.h"

namespace helve::proofs {

namespace {

constexpr int64_t kOpen = -1;    // the age of a copy that is not committed
constexpr int64_t kOldest = 64;  // greater ages are not distinguished

/// The youngest unfinished instance of one copy statement.
struct Flight {
  int64_t age = 0;       ///< copies issued after it
  bool earlier = false;  ///< may be from an earlier iteration of a loop around it, with other values of its variables
  bool read = false;  ///< it has read its source
};

class Flights {
 public:
  /// In program order, so that the first reason found is deterministic.
  std::map<int, std::pair<const TileOp*, Flight>> of;

  /// The union of two paths; true if it adds something.
  bool join(const Flights& other) {
    bool news = false;
    for (const auto& [place, entry] : other.of) {
      const auto [at, fresh] = of.emplace(place, entry);
      Flight& mine = at->second.second;
      const Flight both{std::min(mine.age, entry.second.age), mine.earlier || entry.second.earlier,
                        mine.read && entry.second.read};
      news |= fresh || both.age != mine.age || both.earlier != mine.earlier || both.read != mine.read;
      mine = both;
    }
    return news;
  }

  void age(const CopyQueue& queue) {
    for (auto& [place, entry] : of) {
      if (copy_queue(*entry.first) == queue) entry.second.age = std::min(entry.second.age + 1, kOldest);
    }
  }
  void become_earlier(const std::unordered_set<const TileOp*>& copies) {
    for (auto& [place, entry] : of) entry.second.earlier |= copies.contains(entry.first);
  }
  /// With `sources`, what copies write to global memory stays on its way.
  void complete(const CopyQueue& queue, int64_t pending, bool sources) {
    const auto is_done = [&](const std::pair<const TileOp*, Flight>& entry) {
      return entry.second.age >= pending && copy_queue(*entry.first) == queue;
    };
    for (auto& [place, entry] : of) entry.second.read |= is_done(entry);
    std::erase_if(of, [&](const auto& each) {
      return is_done(each.second) && !(sources && is_global(*each.second.first->region(1).buffer));
    });
  }
};

/// The state of a loop: before and after any of its iterations.
struct LoopState {
  Flights begin, end;
  std::unordered_set<const TileOp*> own;  ///< operations of its body
};

class Waits {
 public:
  Waits(const Function& f, Budget& budget) : function_(f), budget_(budget) {}

  std::vector<Proof> run() {
    walk(function_.body, [&](const Stmt& s) {
      if (const Kernel* kernel = as<Kernel>(s)) visit(kernel->body);
      now_ = {};
    });
    return std::move(proofs_);
  }

 private:
  void visit(const Stmt& s) {
    if (!s) return;
    if (const For* n = as<For>(s)) return loop(s, n->body, surely_runs(*n), divides(*n));
    if (const ForTiles* n = as<ForTiles>(s)) return loop(s, n->body, false, n->parallel);
    if (const While* n = as<While>(s)) return loop(s, n->body, false, false);
    if (const TileOp* n = as<TileOp>(s)) return operation(s, *n);
    for (const RegionAccess& access : direct_accesses(s)) use(access, nullptr);
    if (const If* n = as<If>(s)) {
      const Flights before = now_;
      visit(n->then_body);
      const Flights then = std::exchange(now_, before);
      visit(n->else_body);
      now_.join(then);
      return;
    }
    for_each_part(s, [](const Expr&) {}, [&](const Stmt& part) { visit(part); });
  }

  static bool surely_runs(const For& loop) {
    return std::all_of(loop.extents.begin(), loop.extents.end(), [](const Expr& e) {
      const int64_t* extent = int_value(e);
      return extent && *extent > 0;
    });
  }

  /// Do the threads of a block share the iterations? Then their copies need a commit.
  static bool divides(const For& loop) {
    return loop.loop == LoopKind::Parallel || loop.loop == LoopKind::Vectorized || loop.loop == LoopKind::Thread;
  }

  /// Iterates to a fixed point of the state before an iteration. The state of a loop is kept: a visit that adds nothing
  /// returns at once, so that a nest is not walked again for each path through the loops around it.
  void loop(const Stmt& s, const Stmt& body, bool surely, bool divided) {
    const auto [at, fresh] = loops_.try_emplace(s.get());
    LoopState& state = at->second;
    if (fresh) {
      walk(body, [&](const Stmt& part) {
        if (const TileOp* op = as<TileOp>(part)) state.own.insert(op);
      });
    }
    const bool outer = std::exchange(in_iteration_, in_iteration_ || divided);
    for (bool news = state.begin.join(now_) || fresh; news; news = state.begin.join(state.end)) {
      now_ = state.begin;
      for (const RegionAccess& access : direct_accesses(s)) use(access, nullptr);
      visit(body);
      now_.become_earlier(state.own);
      state.end = now_;
    }
    in_iteration_ = outer;
    now_ = state.end;
    if (!surely) now_.join(state.begin);
  }

  void operation(const Stmt& s, const TileOp& op) {
    const bool sources = op.waits_for_sources();
    const bool alone = op.is_by_tma() && !op.begins_copy();  // waited for at once
    if (op.barriers() && is_ring(*op.barriers()->buffer)) return;  // rings have a proof of their own (analysis/rings.h)
    const bool copies = op.begins_copy() || (alone && sources && is_global(*op.region(1).buffer));
    const bool open = in_iteration_ || !is_group(op);  // until the next commit
    for (const RegionAccess& access : direct_accesses(s)) use(access, copies ? &op : nullptr);
    if (copies) {
      proof_of(op);
      if (!open && !alone) now_.age(copy_queue(op));
      const int place = places_.emplace(&op, static_cast<int>(places_.size())).first->second;
      now_.of[place] = {&op, {open && !alone ? kOpen : 0, false, alone}};
    } else if (commits(op)) {
      now_.age(copy_queue(op));
    } else if (op.row().rule == TileRule::Wait) {
      now_.complete(copy_queue(op), op.pending(), sources);
    }
  }

  /// The first copy into a buffer creates its proof.
  Proof& proof_of(const TileOp& copy) {
    const BufferRef& buffer = copy.region(1).buffer;
    const auto known = std::find(buffers_.begin(), buffers_.end(), buffer);
    if (known != buffers_.end()) return proofs_[static_cast<size_t>(known - buffers_.begin())];
    Proof proof;
    proof.kind = ProofKind::Async;
    proof.span = copy.span;
    proof.question = fmt::format("copies to {} are complete where it is used", buffer->name);
    proof.verdict = ProofVerdict::Proved;
    buffers_.push_back(buffer);
    proofs_.push_back(std::move(proof));
    return proofs_.back();
  }

  /// Nothing may access what a copy writes, and nothing may write what it reads. Whether iterations of one independent
  /// loop copy to different places is proved as absence of races.
  void use(const RegionAccess& access, const TileOp* by) {
    for (const auto& [place, entry] : now_.of) {
      const auto& [copy, flight] = entry;
      if (copy == by && in_iteration_) continue;
      const bool touches = may_touch(copy->region(1), access.region, flight) ||
                           (access.write && !flight.read && may_touch(copy->region(0), access.region, flight));
      if (!touches) continue;
      weaken(proof_of(*copy), ProofVerdict::Unknown,
             fmt::format("a copy to '{}' may be unfinished where '{}' is {} in line {}", copy->region(1).buffer->name,
                         access.region.buffer->name, access.write ? "written" : "read", access.span.line));
    }
  }

  bool may_touch(const Region& copied, const Region& used, const Flight& flight) {
    if (copied.buffer != used.buffer) {
      return may_overlap(function_.may_alias, copied.buffer.get(), used.buffer.get());
    }
    if (flight.earlier || copied.ranges.size() != used.ranges.size() || --budget_.queries < 0) return true;
    Expr common = bool_imm(true);
    for (size_t d = 0; d < copied.ranges.size(); ++d) {
      const Range &a = copied.ranges[d], &b = used.ranges[d];
      common = logical_and(common, logical_and(less(a.begin, b.begin + b.extent), less(b.begin, a.begin + a.extent)));
    }
    std::vector<VarRef> vars;
    walk(common, [&](const Expr& e) {
      const VarRef var(as<Var>(e));
      if (var && var->dtype.is_integer() && std::find(vars.begin(), vars.end(), var) == vars.end()) vars.push_back(var);
    });
    return IntegerSet(budget_.engine, vars, common).emptiness().verdict != Verdict::Proved;
  }

  const Function& function_;
  Budget& budget_;
  Flights now_;
  bool in_iteration_ = false;  ///< inside of a loop whose iterations threads share
  std::unordered_map<const StmtNode*, LoopState> loops_;
  std::unordered_map<const TileOp*, int> places_;
  std::vector<BufferRef> buffers_;
  std::vector<Proof> proofs_;  ///< of `buffers_`
};

}  // namespace

std::vector<Proof> prove_waits(const Function& f, Budget& budget) { return Waits(f, budget).run(); }

}  // namespace helve::proofs
