// Are asynchronous copies complete where their buffers are used?
// Each copy that may be unfinished is tracked along all paths through the kernel, with the number of copies issued
// after it: a wait leaves that many of the youngest unfinished. Two places of one buffer are distinguished by what is
// known of the iteration in which the copy began (flights.h).
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "flights.h"
#include "helve/analysis/effects.h"
#include "helve/arith/simplify.h"
#include "helve/ir/tensor/ring.h"
#include "helve/ir/tensor/visit.h"
#include "obligations.h"

namespace helve::proofs {

namespace {

constexpr int64_t kOpen = -1;  // the age of a copy that is not committed

/// The state of a loop: before and after any of its iterations.
struct LoopState {
  Flights begin, end;
  LoopBody loop;
};

class Waits {
 public:
  Waits(const Function& f, Budget& budget) : function_(f), budget_(budget) {}

  std::vector<Proof> run() {
    for (const VarRef& dim : function_.dims) fixed_.insert(dim.get());
    for (const Param& param : function_.params) {
      if (const VarRef* scalar = std::get_if<VarRef>(&param)) fixed_.insert(scalar->get());
    }
    walk(function_.body, [&](const Stmt& s) {
      if (const Kernel* kernel = as<Kernel>(s)) {
        for (const VarRef& var : kernel->vars) fixed_.insert(var.get());
        visit(kernel->body);
      }
      now_ = Flights(crowded_);
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
    if (const Bind* n = as<Bind>(s); n && !has_load(n->value) && !is_large(n->value)) {
      names_.insert_or_assign(n->var.get(), substitute(n->value, names_));
    }
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

  static bool never_runs(const For& loop) {
    return std::any_of(loop.extents.begin(), loop.extents.end(), [](const Expr& e) {
      const int64_t* extent = int_value(e);
      return extent && *extent <= 0;
    });
  }

  /// Do the threads of a block share the iterations? Then their copies need a commit.
  static bool divides(const For& loop) {
    return loop.loop == LoopKind::Parallel || loop.loop == LoopKind::Vectorized || loop.loop == LoopKind::Thread;
  }

  /// Do a thread's iterations follow each other, the value of the variable growing by 1? Blocks run every so many of a
  /// Persistent loop.
  static bool is_counted(LoopKind loop) {
    return loop == LoopKind::Serial || loop == LoopKind::Unroll || loop == LoopKind::Pipelined;
  }

  /// Iterates to a fixed point of the state before an iteration. The state of a loop is kept: a visit that adds nothing
  /// returns at once, so that a nest is not walked again for each path through the loops around it.
  void loop(const Stmt& s, const Stmt& body, bool surely, bool divided) {
    if (const For* n = as<For>(s); n && never_runs(*n)) return;
    const auto [at, fresh] = loops_.try_emplace(s.get());
    LoopState& state = at->second;
    if (fresh) {
      const For* n = as<For>(s);
      if (n && is_counted(n->loop)) state.loop.counted = n;
      state.loop.divided = divided;
      state.loop.is_inside = in_iteration_;
      walk(body, [&](const Stmt& part) {
        if (const TileOp* op = as<TileOp>(part)) state.loop.own.insert(op);
      });
    }
    now_.enter(state.loop);
    const Var* const counter = state.loop.counted ? state.loop.counted->vars[0].get() : nullptr;
    if (counter) fixed_.insert(counter);
    const bool outer = std::exchange(in_iteration_, in_iteration_ || divided);
    for (bool news = state.begin.join(now_) || fresh; news;
         news = state.begin.join(state.end.seen_by_next(state.loop))) {
      now_ = state.begin;
      for (const RegionAccess& access : direct_accesses(s)) use(access, nullptr);
      visit(body);
      now_.next_iteration(state.loop);
      state.end = now_;
    }
    in_iteration_ = outer;
    if (counter) fixed_.erase(counter);
    now_ = state.end;
    if (!surely) now_.join(state.begin);
    now_.leave(state.loop);
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
      now_.add(place, op, {open && !alone ? kOpen : 0, alone});
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
    for (const auto& [key, entry] : now_.of) {
      const auto& [copy, flight] = entry;
      if (copy == by && in_iteration_ && key.second.elsewhere) continue;
      Proof& proof = proof_of(*copy);
      if (proof.verdict == ProofVerdict::Unknown) continue;  // for a reason that came before
      const auto meets = [&](const Region& copied) { return may_touch(copied, access.region, key.second); };
      const bool touches = meets(copy->region(1)) || (access.write && !flight.read && meets(copy->region(0)));
      if (!touches) continue;
      weaken(proof, ProofVerdict::Unknown,
             fmt::format("a copy to '{}' may be unfinished where '{}' is {} in line {}", copy->region(1).buffer->name,
                         access.region.buffer->name, access.write ? "written" : "read", access.span.line));
    }
  }

  bool may_touch(const Region& copied, const Region& used, const Instance& at) {
    if (copied.buffer != used.buffer) {
      return may_overlap(function_.may_alias, copied.buffer.get(), used.buffer.get());
    }
    if (at.any || copied.ranges.size() != used.ranges.size()) return true;
    Renaming then(at, fixed_);
    Expr common = then.condition();
    const auto value = [&](const Expr& e) { return substitute(e, names_); };
    for (size_t d = 0; d < copied.ranges.size(); ++d) {
      const Range &a = copied.ranges[d], &b = used.ranges[d];
      const Expr begin = then(value(a.begin)), end = begin + then(value(a.extent)), other = value(b.begin);
      common = logical_and(common, logical_and(less(begin, other + value(b.extent)), less(other, end)));
    }
    common = simplify(common);
    if (const int64_t* truth = int_value(common)) return *truth != 0;
    if (--budget_.queries < 0) return true;
    std::vector<VarRef> vars;
    walk(common, [&](const Expr& e) {
      const VarRef var(as<Var>(e));
      if (var && var->dtype.is_integer() && std::find(vars.begin(), vars.end(), var) == vars.end()) vars.push_back(var);
    });
    return IntegerSet(budget_.engine, vars, common).emptiness().verdict != Verdict::Proved;
  }

  const Function& function_;
  Budget& budget_;
  const std::shared_ptr<Crowded> crowded_ = std::make_shared<Crowded>();
  Flights now_{crowded_};
  bool in_iteration_ = false;  ///< inside of a loop whose iterations threads share
  std::unordered_set<const Var*> fixed_;  ///< have one value here and wherever else they are known
  Substitution names_;  ///< values of names that are expressions of variables
  std::unordered_map<const StmtNode*, LoopState> loops_;
  std::unordered_map<const TileOp*, int> places_;
  std::vector<BufferRef> buffers_;
  std::vector<Proof> proofs_;  ///< of `buffers_`
};

}  // namespace

std::vector<Proof> prove_waits(const Function& f, Budget& budget) { return Waits(f, budget).run(); }

}  // namespace helve::proofs
