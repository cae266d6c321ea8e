// The coordinates of a thread's iterations as expressions.
// coordinate = sum over the digits of a dimension, each times the product of the extents of the faster ones.
#include "digits.h"

#include "helve/arith/simplify.h"
#include "helve/ir/expr/visit.h"
#include "helve/ir/tensor/visit.h"
#include "helve/support/diagnostic.h"

namespace helve {

namespace {

Expr scaled(const Expr& e, int64_t factor) { return factor == 1 ? e : e * int_imm(factor); }
Expr sum(const Expr& a, const Expr& b) { return a ? a + b : b; }

}  // namespace

int64_t threads_of(const ThreadLayout& layout) { return layout.layout().span(axes::tx()); }

Expr thread_digit(const Iter& iter, const Expr& tx, int64_t threads) {
  const Expr above = iter.stride == 1 ? tx : floor_div(tx, int_imm(iter.stride));
  return iter.stride * iter.extent == threads ? above : floor_mod(above, int_imm(iter.extent));
}

Expr is_first_replica(const ThreadLayout& layout, const Expr& tx, int64_t threads) {
  Expr all;
  for (const Iter& iter : layout.layout().replica()) {
    if (iter.axis != axes::tx() || iter.extent == 1) continue;
    const Expr first = apply(Op::Eq, {thread_digit(iter, tx, threads), int_imm(0)});
    all = all ? logical_and(all, first) : first;
  }
  return all;
}

Digits::Digits(const ThreadLayout& layout, const std::vector<Expr>& extents, const Expr& tx, const Facts& facts)
    : tx_(tx), threads_(threads_of(layout)), facts_(facts) {
  HELVE_CHECK(extents.size() == layout.rank(), "a loop and its layout differ in rank");
  for (size_t d = 0; d < extents.size(); ++d) {
    const Iters iters = layout.block(d);
    const int64_t domain = layout.domain()[d];
    const int64_t* extent = int_value(extents[d]);
    std::optional<int64_t> passes;
    if (extent) passes = std::max<int64_t>(1, (*extent + domain - 1) / domain);
    coords_.emplace_back();
    digits_.emplace_back();
    if (!passes || *passes > 1) {
      const VarRef pass = make_var("pass");
      const Expr count = passes ? int_imm(*passes) : simplify(ceil_div(extents[d], int_imm(domain)), facts_);
      loops_.push_back({pass, count, d, false});
      facts_.bind_loop(pass, int_imm(0), count);
      coords_[d] = scaled(Expr(pass), domain);
    }
    add_dimension(d, iters, d + 1 == extents.size());
    add_guard(d, extents[d], domain, passes);
  }
}

void Digits::add_dimension(size_t d, const Iters& iters, bool last) {
  int64_t weight = 1;
  for (const Iter& iter : iters) weight *= iter.extent;
  for (size_t k = 0; k < iters.size(); ++k) {
    const Iter& iter = iters[k];
    weight /= iter.extent;
    digits_[d].emplace_back();
    if (iter.axis == axes::tx()) {
      coords_[d] = sum(coords_[d], scaled(thread_digit(iter, tx_, threads_), weight));
      continue;
    }
    const bool fastest = last && k + 1 == iters.size() && iter.stride == 1;
    const VarRef var = make_var(fastest ? "v" : "r");
    facts_.bind_loop(var, int_imm(0), int_imm(iter.extent));
    if (fastest) {
      lane_ = var;
      lanes_ = iter.extent;
    } else {
      loops_.push_back({var, int_imm(iter.extent), d, true});
    }
    digits_[d][k] = Expr(var);
    coords_[d] = sum(coords_[d], scaled(Expr(var), weight));
  }
  if (!coords_[d]) coords_[d] = int_imm(0);
}

void Digits::add_guard(size_t d, const Expr& extent, int64_t domain, const std::optional<int64_t>& passes) {
  const int64_t* n = int_value(extent);
  if (n && passes && *n == *passes * domain) return;
  const bool whole_vectors = n && lane_ && *n % lanes_ == 0;
  const Expr at = whole_vectors ? substitute(coords_[d], {{lane_.get(), int_imm(0)}}) : coords_[d];
  const Expr exists = less(at, extent);
  guard_ = guard_ ? logical_and(guard_, exists) : exists;
}

Expr Digits::register_of(const ThreadLayout& fragment, const std::vector<int>& dims) const {
  Expr number;
  for (size_t k = 0; k < dims.size(); ++k) {
    if (dims[k] < 0) continue;
    const Iters iters = fragment.block(k);
    const std::vector<Expr>& digits = digits_[static_cast<size_t>(dims[k])];
    HELVE_CHECK(iters.size() == digits.size(), "a fragment and its loop are divided differently");
    for (size_t i = 0; i < iters.size(); ++i) {
      if (digits[i]) number = sum(number, scaled(digits[i], iters[i].stride));
    }
  }
  return number ? number : int_imm(0);
}

Stmt Digits::nest(const Stmt& body, bool vector) const {
  Stmt out = guard_ ? if_then(simplify(guard_, facts_), body) : body;
  out = lane_ ? vectorized(out, vector) : out;
  for (size_t k = loops_.size(); k-- > 0;) {
    out = for_loop(loops_[k].unrolled ? LoopKind::Unroll : LoopKind::Serial, loops_[k].var, loops_[k].extent, out);
  }
  return out;
}

Stmt Digits::register_nest(const Stmt& body, const std::vector<size_t>& kept) const {
  Stmt out = body;
  const auto is_kept = [&](size_t d) { return std::find(kept.begin(), kept.end(), d) != kept.end(); };
  if (lane_ && is_kept(coords_.size() - 1)) out = for_loop(LoopKind::Unroll, lane_, int_imm(lanes_), out);
  for (size_t k = loops_.size(); k-- > 0;) {
    if (is_kept(loops_[k].dim)) out = for_loop(LoopKind::Unroll, loops_[k].var, loops_[k].extent, out);
  }
  return out;
}

/// A comparison p < n over multiples of the number of lanes is the same in all lanes.
Expr Digits::over_lanes(const Expr& condition) const {
  if (!mentions(condition, lane_.get())) return condition;
  const Apply* node = as<Apply>(condition);
  if (node && (node->op == Op::And || node->op == Op::Or || node->op == Op::Not)) {
    return map_children(condition, [&](const Expr& e) { return over_lanes(e); });
  }
  if (!node || (node->op != Op::Lt && node->op != Op::Le)) return condition;
  const Substitution first = {{lane_.get(), int_imm(0)}}, next = {{lane_.get(), Expr(lane_) + int_imm(1)}};
  const Expr room = node->args[1] - node->args[0] + int_imm(node->op == Op::Le ? 1 : 0);
  const Expr change = simplify(substitute(room, next) - room, facts_);  // from any lane to the next one
  const int64_t* step = int_value(change);
  if (!step || *step != -1) return condition;
  const std::optional<int64_t> rest =
      residue_of(simplify(substitute(room, first), facts_), facts_).remainder_by(lanes_);
  return rest && *rest == 0 ? substitute(condition, first) : condition;
}

Stmt Digits::vectorized(const Stmt& s, bool vector) const {
  if (const If* n = as<If>(s)) {
    const Expr condition = over_lanes(simplify(n->condition, facts_));
    if (!mentions(condition, lane_.get())) {
      return if_then(condition, vectorized(n->then_body, vector),
                     n->else_body ? vectorized(n->else_body, vector) : Stmt(), s->span);
    }
  }
  if (const Seq* n = as<Seq>(s)) {
    const bool separate = std::all_of(n->stmts.begin(), n->stmts.end(), [](const Stmt& part) {
      return part->kind != StmtKind::Alloc && !named_by(part);
    });
    if (separate) {
      std::vector<Stmt> out;
      for (const Stmt& part : n->stmts) out.push_back(vectorized(part, vector));
      return seq(std::move(out), s->span);
    }
  }
  bool plain = true;  // contains no loops, private memory, reports or atomic stores, which are not vectorized
  walk(s, [&](const Stmt& inner) {
    const Store* store = as<Store>(inner);
    plain &= inner->kind != StmtKind::For && inner->kind != StmtKind::While && inner->kind != StmtKind::Alloc &&
             inner->kind != StmtKind::Report && !(store && store->mode != StoreMode::Write);
  });
  // The same statement may occur in two branches; each gets a variable of its own.
  const VarRef lane = make_var(lane_->name);
  const Stmt body = substitute(s, {{lane_.get(), Expr(lane)}});
  return for_loop(vector && plain ? LoopKind::Vectorized : LoopKind::Unroll, lane, int_imm(lanes_), body, s->span);
}

}  // namespace helve
