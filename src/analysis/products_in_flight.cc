// Products of warpgroups that are unfinished while the program goes on.
// The state before a statement is the set of products that may be in flight on some path, each with the fewest groups
// that were committed after it. In a loop, a product of the iteration before is the same operation with the variable
// one less and other values of all names that the body defines, so that slots of a pipeline are told apart.
#include "helve/analysis/products_in_flight.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "helve/analysis/effects.h"
#include "helve/arith/contradictions.h"
#include "helve/ir/expr/visit.h"
#include "helve/ir/tensor/copy_queue.h"
#include "helve/ir/tensor/group_product.h"
#include "helve/ir/tensor/ring.h"
#include "helve/ir/tensor/visit.h"
#include "helve/support/diagnostic.h"

namespace helve {

namespace {

constexpr int64_t kOpen = -1;     // groups after a product that is not committed
constexpr int64_t kOldest = 64;   // more are not distinguished
constexpr int64_t kFarthest = 3;  // iterations back that are told apart
constexpr int64_t kOperations = 20'000;  // of isl for one pair

/// A product that may be in flight.
struct Flight {
  Stmt product;  ///< as the program has it
  Ref<const TileOp> op;  ///< in terms of the variables that are visible now
  int64_t younger = kOpen;  ///< groups committed after it, at least
  bool anywhere = false;    ///< its factors may be any part of their buffers
  Expr when = bool_imm(true);  ///< the iteration of it exists
  std::map<const Buffer*, int64_t> takes =
      {};  ///< of rings with its factors, how many slots were taken after it, at most
};

/// Slots taken on either path; true if that adds some.
bool take_most(Flight* flight, const Flight& other) {
  bool news = false;
  for (auto& [ring, count] : flight->takes) {
    const int64_t most = std::max(count, other.takes.at(ring));
    news |= std::exchange(count, most) != most;
  }
  return news;
}

/// Two flights of one operation differ in how many iterations ago they began.
using FlightKey = std::pair<int, int64_t>;

struct State {
  std::map<FlightKey, Flight> flights;
  bool fenced = false;                ///< on every path there was a fence
  std::set<const Buffer*> touched;  ///< registers that threads may have accessed since

  /// The union of two paths; true if it adds something.
  bool join(const State& other) {
    bool news = fenced && !other.fenced;
    fenced &= other.fenced;
    for (const Buffer* each : other.touched) news |= touched.insert(each).second;
    for (const auto& [key, flight] : other.flights) {
      const auto [at, fresh] = flights.emplace(key, flight);
      Flight& mine = at->second;
      news |= fresh || flight.younger < mine.younger || (flight.anywhere && !mine.anywhere);
      mine.younger = std::min(mine.younger, flight.younger);
      mine.anywhere |= flight.anywhere;
      news |= take_most(&mine, flight);
    }
    return news;
  }
};

bool is_product(const Stmt& s) {
  const TileOp* op = as<TileOp>(s);
  return op && op->begins_product();
}

bool orders_products(const TileOp& op) { return copy_queue(op).kind == CopyQueue::Kind::Products && !op.begins(); }

/// The names that statements below define, and the buffers.
std::vector<VarRef> names_below(const Stmt& s) {
  std::vector<VarRef> out;
  walk(s, [&](const Stmt& each) {
    if (const VarRef var = named_by(each)) out.push_back(var);
    if (const For* n = as<For>(each)) out.insert(out.end(), n->vars.begin(), n->vars.end());
    if (const ForTiles* n = as<ForTiles>(each)) out.insert(out.end(), n->vars.begin(), n->vars.end());
  });
  return out;
}

class Run {
 public:
  /// Places fences and waits, or only finds what comes too early.
  Run(const Kernel& kernel, bool insert) : insert_(insert), contradictions_(ExactEngine(kOperations)) {
    walk(kernel.body, [&](const Stmt& s) {
      if (!is_product(s)) return;
      const GroupOperands operands = group_operands(*as<TileOp>(s));
      for (const Region* each : {&operands.a, &operands.c}) {
        if (each->buffer->scope == MemoryScope::Fragment) registers_.insert(each->buffer.get());
      }
      const int64_t n = operands.product().n;
      const auto [at, fresh] = columns_.emplace(operands.c.buffer.get(), n);
      if (!fresh && at->second != n) at->second = 0;
    });
    for (const BufferRef& ring : rings_of(kernel.body)) {
      for (const BufferRef& buffer : buffers_of_ring(kernel.body, *ring)) ring_of_[buffer.get()] = ring.get();
    }
  }

  Stmt run(const Kernel& kernel) { return body(kernel.body); }
  std::vector<EarlyUse> take() { return std::move(found_); }

 private:
  // Statements.

  Stmt body(const Stmt& s) {
    if (!s) return s;
    const Seq* several = as<Seq>(s);
    const std::vector<Stmt> parts = several ? several->stmts : std::vector{s};
    std::vector<Stmt> out;
    for (const Stmt& part : parts) {
      const TileOp* op = as<TileOp>(part);
      if (op && orders_products(*op)) {
        if (insert_) continue;
        order(*op);
      } else {
        wait_for(part, &out);
        out.push_back(statement(part, &out));
        if (insert_ && op && op->begins_product()) {
          out.push_back(tile_op(TileOpcode::WgmmaCommit, {}, op->span));
          commit();
        }
      }
    }
    if (insert_) leave_scope(parts, &out);
    for (const Stmt& part : parts) {
      if (const Alloc* n = as<Alloc>(part)) ended(*n->buffer, part);
    }
    if (out == parts) return s;
    return seq(std::move(out), s->span);
  }

  /// `out` gets the fence of a product, or of a loop.
  Stmt statement(const Stmt& s, std::vector<Stmt>* out) {
    if (is_product(s)) return product(s, out), s;
    if (const TileOp* op = as<TileOp>(s); op && ring_event(*op) == RingEvent::Wait) take_slot(*op->barriers()->buffer);
    if (const If* n = as<If>(s)) return branch(*n, s);
    if (const For* n = as<For>(s); n && n->loop != LoopKind::Thread) return loop(s, n->body, out);
    if (s->kind == StmtKind::While || s->kind == StmtKind::ForTiles) return loop(s, body_of(s), out);
    if (const Alloc* n = as<Alloc>(s); n && registers_.contains(n->buffer.get())) now_.touched.insert(n->buffer.get());
    for (const RegionAccess& access : accesses(s)) touch(*access.region.buffer);
    return s;
  }

  static Stmt body_of(const Stmt& s) {
    return s->kind == StmtKind::While ? static_cast<const While&>(*s).body : static_cast<const ForTiles&>(*s).body;
  }

  Stmt branch(const If& n, const Stmt& s) {
    for (const RegionAccess& access : direct_accesses(s)) touch(*access.region.buffer);
    State before = now_;
    const Stmt then_body = under(n.condition, [&] { return body(n.then_body); });
    std::swap(now_, before);
    const Stmt else_body = under(apply(Op::Not, {n.condition}), [&] { return body(n.else_body); });
    now_.join(before);
    if (then_body == n.then_body && else_body == n.else_body) return s;
    return if_then(n.condition, then_body, else_body, s->span);
  }

  Stmt loop(const Stmt& s, const Stmt& inside, std::vector<Stmt>* out) {
    for (const RegionAccess& access : direct_accesses(s)) touch(*access.region.buffer);
    if (insert_ && is_fenced_in_front(s, inside)) {
      out->push_back(tile_op(TileOpcode::WgmmaFence, {}, s->span));
      fence();
    }
    const State before = now_;
    const Stmt after = settled(s, inside);
    leave_loop(s);
    if (!surely_runs(s)) now_.join(before);
    if (after == inside) return s;
    return map_parts(s, [](const Expr& e) { return e; }, [&](const Stmt&) { return after; });
  }

  /// The body of a loop, after iterating to a fixed point of the state before an iteration.
  Stmt settled(const Stmt& s, const Stmt& inside) {
    State entry = now_;
    const bool outer = std::exchange(quiet_, true);
    for (bool news = true; news;) {
      now_ = entry;
      turn(s, inside);
      next_iteration(s);
      news = entry.join(now_);
    }
    quiet_ = outer;
    now_ = entry;
    return turn(s, inside);
  }

  /// Is one fence in front of the loop enough, and needed? The assembler then keeps products of all iterations in
  /// flight; it serializes those whose sums are set between a fence and its products.
  bool is_fenced_in_front(const Stmt& s, const Stmt& inside) {
    const bool lacks = has_operation(inside, [&](const TileOp& op) { return op.begins_product() && unfenced(op); });
    if (!lacks) return false;
    const State before = now_;
    fence();
    const Stmt body = settled(s, inside);
    now_ = before;
    return !has_operation(body, [](const TileOp& op) { return op.op == TileOpcode::WgmmaFence; });
  }

  /// What `f` gives, where the condition holds.
  template <class F>
  Stmt under(const Expr& condition, F&& f) {
    known_.push_back(condition);
    Stmt out = f();
    known_.pop_back();
    return out;
  }

  static Expr range_of(const Stmt& s) {
    Expr out = bool_imm(true);
    const For* loop = as<For>(s);
    for (size_t d = 0; loop && d < loop->vars.size(); ++d) {
      const Expr var(loop->vars[d]);
      out = logical_and(
          out, logical_and(less(loop->begins[d] - int_imm(1), var), less(var, loop->begins[d] + loop->extents[d])));
    }
    return out;
  }

  Stmt turn(const Stmt& s, const Stmt& inside) {
    const Stmt out = under(range_of(s), [&] { return body(inside); });
    if (!insert_) return out;
    const bool several = std::any_of(now_.flights.begin(), now_.flights.end(),
                                     [](const auto& each) { return each.second.younger >= 1; });
    if (!several) return out;
    complete(1);
    return seq({out, wait(1, inside->span)}, inside->span);
  }

  static bool surely_runs(const Stmt& s) {
    const For* loop = as<For>(s);
    return loop && std::all_of(loop->extents.begin(), loop->extents.end(), [](const Expr& e) {
             const int64_t* extent = int_value(e);
             return extent && *extent > 0;
           });
  }

  void next_iteration(const Stmt& s) {
    const For* counted = as<For>(s);
    Substitution earlier;
    for (const VarRef& var : names_below(s)) earlier[var.get()] = Expr(make_var(var->name, var->dtype));
    if (counted && counted->vars.size() == 1) earlier[counted->vars[0].get()] = Expr(counted->vars[0]) - int_imm(1);
    std::map<FlightKey, Flight> moved;
    for (auto& [key, flight] : now_.flights) {
      if (!is_below(s, flight)) {
        merge(&moved, key, flight);
        continue;
      }
      const int64_t distance = std::min(key.second + 1, kFarthest);
      flight.op = Ref<const TileOp>(as<TileOp>(substitute(Stmt(flight.op), earlier)));
      flight.anywhere |= distance == kFarthest;
      flight.when = substitute(flight.when, earlier);
      if (counted && counted->vars.size() == 1) {
        flight.when = logical_and(flight.when, less(counted->begins[0], Expr(counted->vars[0])));
      }
      merge(&moved, {key.first, distance}, flight);
    }
    now_.flights = std::move(moved);
  }

  void leave_loop(const Stmt& s) {
    std::map<FlightKey, Flight> moved;
    for (auto& [key, flight] : now_.flights) {
      const bool below = is_below(s, flight);
      flight.anywhere |= below;
      merge(&moved, {key.first, below ? kFarthest : key.second}, flight);
    }
    now_.flights = std::move(moved);
  }

  static void merge(std::map<FlightKey, Flight>* flights, const FlightKey& key, const Flight& flight) {
    const auto [at, fresh] = flights->emplace(key, flight);
    if (fresh) return;
    at->second.younger = std::min(at->second.younger, flight.younger);
    at->second.anywhere = true;
    take_most(&at->second, flight);
  }

  bool is_below(const Stmt& s, const Flight& flight) {
    const auto [at, fresh] = below_.try_emplace(s.get());
    if (fresh) {
      walk(s, [&](const Stmt& each) {
        if (is_product(each)) at->second.insert(each.get());
      });
    }
    return at->second.contains(flight.product.get());
  }

  // Products.

  void product(const Stmt& s, std::vector<Stmt>* out) {
    const TileOp& op = *as<TileOp>(s);
    if (const Buffer* dirty = unfenced(op)) {
      if (insert_) {
        out->push_back(tile_op(TileOpcode::WgmmaFence, {}, op.span));
        fence();
      } else {
        report(*dirty, s, s);
      }
    }
    if (columns_.at(op.region(2).buffer.get()) == 0) touch(*op.region(2).buffer);  // by another instruction
    const int place = places_.emplace(s.get(), static_cast<int>(places_.size())).first->second;
    Flight flight{s, Ref<const TileOp>(&op)};
    for (const size_t i : kFactors) {
      const auto ring = ring_of_.find(op.region(i).buffer.get());
      if (ring != ring_of_.end()) flight.takes[ring->second] = 0;
    }
    now_.flights[{place, 0}] = std::move(flight);
  }

  const Buffer* unfenced(const TileOp& op) const {
    for (const size_t i : {2, 0}) {
      const Buffer* buffer = op.region(i).buffer.get();
      if (registers_.contains(buffer) && (!now_.fenced || now_.touched.contains(buffer))) return buffer;
    }
    return nullptr;
  }

  void touch(const Buffer& buffer) {
    if (registers_.contains(&buffer)) now_.touched.insert(&buffer);
  }
  void fence() {
    now_.fenced = true;
    now_.touched.clear();
  }
  void commit() {
    for (auto& [key, flight] : now_.flights) flight.younger = std::min(flight.younger + 1, kOldest);
  }
  void complete(int64_t pending) {
    std::erase_if(now_.flights, [&](const auto& each) { return each.second.younger >= pending; });
  }
  void order(const TileOp& op) {
    if (op.op == TileOpcode::WgmmaFence) fence();
    if (op.op == TileOpcode::WgmmaCommit) commit();
    if (op.op == TileOpcode::WgmmaWait) complete(op.pending());
  }

  static Stmt wait(int64_t pending, const Span& span) { return tile_op(TileOpcode::WgmmaWait, {pending}, span); }

  // What touches a product in flight.

  /// A wait for all that the statement, or one below it, touches; without insertion a report of it. What stands below
  /// a loop or a branch meets its own products later.
  void wait_for(const Stmt& s, std::vector<Stmt>* out) {
    if (now_.flights.empty()) return;
    std::optional<int64_t> pending;
    meet(s, &pending);
    if (!pending) return;
    out->push_back(wait(*pending, s->span));
    complete(*pending);
  }

  void meet(const Stmt& s, std::optional<int64_t>* pending) {
    const TileOp* op = as<TileOp>(s);
    const TileOp* product = op && op->begins_product() ? op : nullptr;
    if (op && passes_memory_on(*op)) return meet_slots(*op, s, pending);
    if (op && op->is_by_tma() && op->barriers() && is_ring(*op->barriers()->buffer)) return;  // the ring has its room
    for (const RegionAccess& access : direct_accesses(s)) {
      for (const auto& [key, flight] : now_.flights) {
        if (!meets(flight, access, product)) continue;
        if (!insert_) {
          report(*access.region.buffer, flight.product, s);
        } else if (!*pending || flight.younger < **pending) {
          *pending = flight.younger;
        }
      }
    }
    if (const If* n = as<If>(s)) {
      under(n->condition, [&] { return meet(n->then_body, pending), Stmt(); });
      if (n->else_body) under(apply(Op::Not, {n->condition}), [&] { return meet(n->else_body, pending), Stmt(); });
      return;
    }
    for_each_part(
        s, [](const Expr&) {},
        [&](const Stmt& part) { under(range_of(s), [&] { return meet(part, pending), Stmt(); }); });
  }

  /// Does it tell others by mbarriers that they may write memory which a product may use? What counts copies by TMA
  /// tells nobody, and of a ring only a release does.
  static bool passes_memory_on(const TileOp& op) {
    using enum TileOpcode;
    const bool counts = op.op == MbarrierInit || op.op == MbarrierCommit || op.op == MbarrierWait;
    const std::optional<RingEvent> event = ring_event(op);
    return op.barriers() && !op.is_by_tma() && !counts && (!event || event == RingEvent::Release);
  }
  /// A release meets the products whose slots it gives back; else any may use what is passed on.
  void meet_slots(const TileOp& op, const Stmt& s, std::optional<int64_t>* pending) {
    const Buffer* ring = op.barriers()->buffer.get();
    for (const auto& [key, flight] : now_.flights) {
      const auto taken = flight.takes.find(ring);
      const bool keeps = ring_event(op) && (taken == flight.takes.end() || taken->second < op.pending());
      if (keeps) continue;
      if (!insert_) {
        report(*ring, flight.product, s);
      } else if (!*pending || flight.younger < **pending) {
        *pending = flight.younger;
      }
    }
  }
  void take_slot(const Buffer& ring) {
    for (auto& [key, flight] : now_.flights) {
      const auto taken = flight.takes.find(&ring);
      if (taken != flight.takes.end()) taken->second = std::min(taken->second + 1, kOldest);
    }
  }

  /// Waits for products whose buffers end with these statements.
  void leave_scope(const std::vector<Stmt>& parts, std::vector<Stmt>* out) {
    std::optional<int64_t> pending;
    for (const Stmt& part : parts) {
      const Alloc* n = as<Alloc>(part);
      if (!n) continue;
      for (const auto& [key, flight] : now_.flights) {
        if (uses(flight, *n->buffer) && (!pending || flight.younger < *pending)) pending = flight.younger;
      }
    }
    if (!pending) return;
    out->push_back(wait(*pending, parts.back()->span));
    complete(*pending);
  }

  void ended(const Buffer& buffer, const Stmt& declaration) {
    for (const auto& [key, flight] : now_.flights) {
      if (uses(flight, buffer)) report(buffer, flight.product, declaration);
    }
  }

  static bool uses(const Flight& flight, const Buffer& buffer) {
    return std::any_of(std::begin(kRegions), std::end(kRegions),
                       [&](size_t i) { return flight.op->region(i).buffer.get() == &buffer; });
  }

  bool meets(const Flight& flight, const RegionAccess& access, const TileOp* product) {
    const TileOp& op = *flight.op;
    const Buffer* buffer = access.region.buffer.get();
    // A fence takes A's registers anew.
    if (insert_ && product && op.region(0).buffer.get() == buffer && registers_.contains(buffer) &&
        unfenced(*product)) {
      return true;
    }
    if (op.region(2).buffer.get() == buffer) {
      const bool adds = product && product->region(2).buffer.get() == buffer && columns_.at(buffer) != 0;
      return !adds;
    }
    if (!access.write) return false;
    return std::any_of(std::begin(kFactors), std::end(kFactors), [&](size_t i) {
      return op.region(i).buffer.get() == buffer &&
             (flight.anywhere || overlap(op.region(i), access.region, flight.when));
    });
  }

  /// Conditions that memory decides say nothing.
  bool overlap(const Region& a, const Region& b, const Expr& when) {
    if (a.ranges.size() != b.ranges.size()) return true;
    std::vector<Expr> around, both;
    std::copy_if(known_.begin(), known_.end(), std::back_inserter(around), [](const Expr& e) { return !has_load(e); });
    if (!has_load(when)) both.push_back(when);
    bool known = true;
    for (size_t d = 0; d < a.ranges.size(); ++d) {
      const Range &x = a.ranges[d], &y = b.ranges[d];
      for (const Expr& e : {x.begin, x.extent, y.begin, y.extent}) known &= !has_load(e);
      both.push_back(less(x.begin, y.begin + y.extent));
      both.push_back(less(y.begin, x.begin + x.extent));
    }
    return !known || !contradictions_.found(contradictions_.known(around), contradictions_.known(both), {});
  }

  void report(const Buffer& buffer, const Stmt& product, const Stmt& use) {
    if (quiet_) return;
    const bool known = std::any_of(found_.begin(), found_.end(), [&](const EarlyUse& each) {
      return each.product == product && each.use == use && each.buffer.get() == &buffer;
    });
    if (!known) found_.push_back({BufferRef(&buffer), product, use});
  }

  static constexpr size_t kFactors[] = {0, 1}, kRegions[] = {0, 1, 2};

  const bool insert_;
  Contradictions contradictions_;
  State now_;
  std::vector<Expr> known_;  ///< conditions and ranges around the current statement
  bool quiet_ = false;  ///< inside of a loop whose state is not known yet
  std::unordered_set<const Buffer*> registers_;  ///< that products take or leave
  /// Of sums, the columns of the instructions that add to them; 0: of several shapes, which order themselves by waits.
  std::unordered_map<const Buffer*, int64_t> columns_;
  std::unordered_map<const Buffer*, const Buffer*> ring_of_;  ///< of buffers whose slots a ring hands over
  std::unordered_map<const StmtNode*, int> places_;
  std::unordered_map<const StmtNode*, std::unordered_set<const StmtNode*>> below_;
  std::vector<EarlyUse> found_;
};

}  // namespace

std::vector<EarlyUse> early_uses(const Kernel& kernel) {
  Run run(kernel, false);
  run.run(kernel);
  return run.take();
}

Ref<const Kernel> with_product_waits(const Ref<const Kernel>& kernel) {
  const Stmt body = Run(*kernel, true).run(*kernel);
  if (body == kernel->body) return kernel;
  return copy_with(*kernel, [&](Kernel& out) { out.body = body; });
}

}  // namespace helve
