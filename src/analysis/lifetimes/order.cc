// Which shared buffers no barrier keeps apart.
// A part of the program is summarised, as for barriers (barriers/effect.h): by the buffers that are accessed before its
// first barrier, and by those that are accessed after its last. Where two summaries meet without a barrier, so do the
// buffers. Which copies a wait covers is not analysed: only one for all copies ends their flight. What TMA copies
// shares bytes with nothing, so that copies by threads are the ones that matter.
#include "order.h"

#include <algorithm>
#include <optional>

#include "helve/analysis/effects.h"
#include "helve/arith/simplify.h"
#include "helve/ir/tensor/visit.h"

namespace helve::lifetimes {

namespace {

struct Order {
  BufferSet all;  ///< that the part accesses
  BufferSet exposed;  ///< before any barrier
  BufferSet pending;  ///< with no barrier behind
  BufferSet flight;  ///< by copies that it may not have waited for
  bool barrier = false;  ///< on every path
  bool drains = false;  ///< on every path it waits for all copies
  bool settles = false;  ///< and has a barrier behind the wait
};

bool waits(const Stmt& s) {
  return has_operation(s, [](const TileOp& op) { return op.op == TileOpcode::WaitAsync; });
}

class Orders {
 public:
  Orders(const Numbers& numbers, Interference& interference) : numbers_(numbers), interference_(interference) {}

  /// The order of `s`, where some variables have these values.
  Order of(const Stmt& s, const Substitution& values) {
    if (!s) return {};
    if (const Seq* n = as<Seq>(s)) {
      Order out;
      for (const Stmt& each : n->stmts) append(out, of(each, values));
      return out;
    }
    if (const If* n = as<If>(s)) return branch(*n, s, values);
    const For* counted = as<For>(s);
    if (s->kind == StmtKind::While || s->kind == StmtKind::ForTiles) return unknown_loop(s, values);
    if (counted && counted->loop != LoopKind::Thread) return loop(*counted, s, values);
    if (const TileOp* op = as<TileOp>(s)) {
      Order out;
      out.barrier = op->op == TileOpcode::SyncThreads || op->op == TileOpcode::SyncCluster || op->row().is_collective();
      out.drains = op->op == TileOpcode::WaitAsync && op->pending() == 0;
      if (out.barrier || op->row().rule == TileRule::Wait) return out;
    }
    return accessed(accesses(s), s);
  }

 private:
  Order branch(const If& n, const Stmt& s, const Substitution& values) {
    Order out = accessed(direct_accesses(s), {});
    const Expr condition = values.empty() ? n.condition : simplify(substitute(n.condition, values), facts_);
    if (!values.empty() && can_prove(condition, facts_)) {
      append(out, of(n.then_body, values));
    } else if (!values.empty() && can_prove(apply(Op::Not, {condition}), facts_)) {
      append(out, of(n.else_body, values));
    } else {
      append(out, one_of(of(n.then_body, values), of(n.else_body, values)));
    }
    return out;
  }

  static Order one_of(Order one, const Order& other) {
    for (BufferSet Order::* set : {&Order::all, &Order::exposed, &Order::pending, &Order::flight}) {
      (one.*set).add(other.*set);
    }
    one.barrier &= other.barrier;
    one.drains &= other.drains;
    one.settles &= other.settles;
    return one;
  }

  /// In its last iteration a pipeline waits for all copies; so that one is looked at on its own.
  Order loop(const For& n, const Stmt& s, const Substitution& values) {
    Order out = accessed(direct_accesses(s), {});
    const bool runs = std::all_of(n.extents.begin(), n.extents.end(), [&](const Expr& extent) {
      return can_prove(less(int_imm(0), substitute(extent, values)), facts_);
    });
    const Facts outside = facts_;
    for (size_t d = 0; d < n.vars.size(); ++d) facts_.bind_loop(n.vars[d], n.begins[d], n.extents[d]);
    Order body = of(n.body, values);
    facts_ = outside;
    append(body, Order(body));
    const bool has_last = runs && n.vars.size() == 1 && waits(n.body);
    if (!runs || has_last) body.barrier = body.drains = body.settles = false;
    if (has_last) {
      Substitution last = values;
      last[n.vars[0].get()] = simplify(substitute(n.begins[0] + n.extents[0] - int_imm(1), values), facts_);
      append(body, of(n.body, last));
    }
    append(out, body);
    return out;
  }

  Order unknown_loop(const Stmt& s, const Substitution& values) {
    Order head = accessed(direct_accesses(s), {}), body;
    for_each_part(s, [](const Expr&) {}, [&](const Stmt& part) { append(body, of(part, values)); });
    append(body, head);  // a condition is evaluated again
    append(body, Order(body));
    body.barrier = body.drains = body.settles = false;
    append(head, body);
    return head;
  }

  /// Accesses with nothing between them; the copies that `s` begins, if it is given, stay in flight.
  Order accessed(const std::vector<RegionAccess>& list, const Stmt& s) {
    Order out;
    const auto add = [&](const BufferRef& buffer, BufferSet& set) {
      const auto found = numbers_.find(buffer.get());
      if (found != numbers_.end()) set.add(found->second);
    };
    for (const RegionAccess& access : list) add(access.region.buffer, out.all);
    interference_.add(out.all, out.all);
    out.exposed = out.pending = out.all;
    if (!s) return out;
    walk(s, [&](const Stmt& each) {
      const TileOp* op = as<TileOp>(each);
      for (const size_t i : {0, 1}) {
        if (op && op->begins_copy()) add(op->region(i).buffer, out.flight);
      }
    });
    return out;
  }

  /// `first` followed by `second`.
  void append(Order& first, const Order& second) {
    interference_.add(first.pending, second.exposed);
    interference_.add(first.flight, second.all);
    first.all.add(second.all);
    if (!first.barrier) first.exposed.add(second.exposed);
    if (second.barrier) first.pending.clear();
    if (second.drains && !second.settles) first.pending.add(first.flight);
    if (second.drains) first.flight.clear();
    first.pending.add(second.pending);
    first.flight.add(second.flight);
    first.settles |= second.settles || (first.drains && second.barrier);
    first.barrier |= second.barrier;
    first.drains |= second.drains;
  }

  const Numbers& numbers_;
  Interference& interference_;
  Facts facts_;
};

}  // namespace

void add_unordered(const Kernel& kernel, const Numbers& numbers, Interference& interference) {
  Orders(numbers, interference).of(kernel.body, {});
}

}  // namespace helve::lifetimes
