// The proof that lanes of a loop may run in step.
// Conservative: an answer of no costs speed, a wrong yes would change results. Other subscripts are other memory
// (analysis/parameter_strides.h).
#include "helve/analysis/lanes.h"

#include <unordered_map>
#include <unordered_set>

#include "helve/analysis/effects.h"
#include "helve/ir/expr/equal.h"
#include "helve/ir/expr/visit.h"
#include "helve/ir/tensor/visit.h"

namespace helve {

namespace {

std::optional<int64_t> step_of_apply(const Apply& a, const StepOfVar& step_of) {
  std::vector<std::optional<int64_t>> steps;
  bool uniform = true;
  for (const Expr& arg : a.args) {
    steps.push_back(lane_step(arg, step_of));
    uniform &= steps.back() == 0;
  }
  if (uniform) return 0;
  if (!a.dtype.is_index()) return std::nullopt;  // data integers wrap
  for (const auto& s : steps) {
    if (!s) return std::nullopt;
  }
  int64_t out = 0;
  bool overflow = false;
  switch (a.op) {
    case Op::Add: overflow = __builtin_add_overflow(*steps[0], *steps[1], &out); break;
    case Op::Sub: overflow = __builtin_sub_overflow(*steps[0], *steps[1], &out); break;
    case Op::Neg: overflow = __builtin_sub_overflow(0, *steps[0], &out); break;
    case Op::Mul: {
      const int64_t* left = int_value(a.args[0]);
      const int64_t* right = int_value(a.args[1]);
      if (!left && !right) return std::nullopt;
      overflow = __builtin_mul_overflow(left ? *left : *steps[0], left ? *steps[1] : *right, &out);
      break;
    }
    default: return std::nullopt;
  }
  return overflow ? std::nullopt : std::optional(out);
}

class LaneProof {
 public:
  LaneProof(const For& loop, const std::vector<MayAlias>& may_alias)
      : lane_(loop.vars[0].get()), may_alias_(may_alias) {}

  bool holds(const For& loop) {
    if (!collect(loop.body)) return false;
    uses_ = element_uses(loop.body);
    return stores_are_private();
  }

 private:
  std::optional<int64_t> step(const Expr& e) {
    return lane_step(e, [this](const Var* v) -> std::optional<int64_t> {
      if (v == lane_) return 1;
      auto bound = steps_.find(v);
      return bound == steps_.end() ? std::optional<int64_t>(0) : bound->second;
    });
  }

  bool mentions_inner(const Expr& e) {
    bool found = false;
    walk(e, [&](const Expr& x) {
      const Var* v = as<Var>(x);
      found |= v && inner_.contains(v);
    });
    return found;
  }

  /// What is asked of a name later is answered where it is bound, once for all that names stand for in turn.
  void name(const Bind& bind) {
    const Var* var = bind.var.get();
    steps_[var] = step(bind.value);
    if (mentions_inner(bind.value)) inner_.insert(var);
    std::unordered_set<const Buffer*>& read = reads_[var];
    walk(bind.value, [&](const Expr& x) {
      if (const Load* l = as<Load>(x)) read.insert(&buffer_of(l->buffer));
      const Var* v = as<Var>(x);
      if (auto known = v ? reads_.find(v) : reads_.end(); known != reads_.end() && known->first != var) {
        read.insert(known->second.begin(), known->second.end());
      }
    });
  }

  /// False for a statement that cannot run in step.
  bool collect(const Stmt& s) {
    if (!s) return true;
    switch (s->kind) {
      case StmtKind::Seq:
        for (const Stmt& each : as<Seq>(s)->stmts) {
          if (!collect(each)) return false;
        }
        return true;
      case StmtKind::Bind: name(*as<Bind>(s)); break;
      case StmtKind::Store: return as<Store>(s)->mode == StoreMode::Write;
      case StmtKind::If: break;
      case StmtKind::For:
        for (const auto* bounds : {&as<For>(s)->begins, &as<For>(s)->extents}) {
          for (const Expr& e : *bounds) {
            if (step(e) != 0) return false;
          }
        }
        for (const VarRef& v : as<For>(s)->vars) inner_.insert(v.get());
        break;
      default: return false;
    }
    bool good = true;
    for_each_part(s, [](const Expr&) {}, [&](const Stmt& inner) { good = good && collect(inner); });
    return good;
  }

  bool reads(const Expr& e, const Buffer* buffer) {
    bool found = false;
    walk(e, [&](const Expr& x) {
      if (const Load* l = as<Load>(x)) found |= &buffer_of(l->buffer) == buffer;
      if (const Var* v = as<Var>(x)) {
        if (auto bound = reads_.find(v); bound != reads_.end()) found |= bound->second.contains(buffer);
      }
    });
    return found;
  }

  /// Dimension `d` keeps the lanes of `buffer` apart: every access has the same index there, and it moves with the lane
  /// alone.
  bool separates(const Buffer* buffer, size_t d, const Expr& index) {
    const std::optional<int64_t> moved = step(index);
    if (!moved || *moved == 0 || mentions_inner(index) || reads(index, buffer)) return false;
    for (const ElementUse& a : uses_) {
      if (a.buffer == buffer && !structural_equal((*a.indices)[d], index)) return false;
    }
    return true;
  }

  bool stores_are_private() {
    for (const ElementUse& store : uses_) {
      if (!store.write) continue;
      if (shares_memory(store)) return false;
      bool apart = false;
      for (size_t d = 0; d < store.indices->size() && !apart; ++d)
        apart = separates(store.buffer, d, (*store.indices)[d]);
      if (!apart && !sole_scatter(store)) return false;
    }
    return true;
  }

  /// Is an element that another name may stand for among the accesses?
  bool shares_memory(const ElementUse& store) const {
    return std::any_of(uses_.begin(), uses_.end(), [&](const ElementUse& a) {
      return a.buffer != store.buffer && may_overlap(may_alias_, a.buffer, store.buffer);
    });
  }

  /// The only access of its buffer, once an iteration: a scatter stores its lanes in order.
  bool sole_scatter(const ElementUse& store) {
    if (!inner_.empty()) return false;
    bool varies = false;
    for (const Expr& index : *store.indices) varies |= step(index) != 0;
    int count = 0;
    for (const ElementUse& a : uses_) count += a.buffer == store.buffer;
    return varies && count == 1;
  }

  const Var* lane_;
  std::unordered_map<const Var*, std::optional<int64_t>> steps_;  ///< of names, from lane to lane
  std::unordered_map<const Var*, std::unordered_set<const Buffer*>> reads_;  ///< by names
  std::unordered_set<const Var*> inner_;  ///< variables of loops inside, and names that mention them
  std::vector<ElementUse> uses_;  ///< of the body
  const std::vector<MayAlias>& may_alias_;
};

}  // namespace

std::optional<int64_t> lane_step(const Expr& e, const StepOfVar& step_of) {
  switch (e->kind) {
    case ExprKind::IntImm:
    case ExprKind::FloatImm: return 0;
    case ExprKind::Var: return step_of(as<Var>(e));
    case ExprKind::Apply: return step_of_apply(*as<Apply>(e), step_of);
    default: break;
  }
  bool uniform = true;
  for_each_child(e, [&](const Expr& child) { uniform &= lane_step(child, step_of) == 0; });
  return uniform ? std::optional<int64_t>(0) : std::nullopt;
}

std::optional<int64_t> pair_step(const Expr& e, const Var* lane, const StepOfVar& step_of) {
  const VarRef pair = make_var("pair");
  const Expr in_pairs = rewrite(e, [&](const Expr& x) {
    const Apply* a = as<Apply>(x);
    const int64_t* by = a && a->op == Op::FloorDiv && a->dtype.is_index() ? int_value(a->args[1]) : nullptr;
    return by && *by == 2 && as<Var>(a->args[0]) == lane ? Expr(pair) : x;
  });
  return lane_step(in_pairs, [&](const Var* v) -> std::optional<int64_t> {
    if (v == pair.get()) return 1;
    return v != lane && step_of(v) == 0 ? std::optional<int64_t>(0) : std::nullopt;
  });
}

bool lanes_independent(const For& loop, const std::vector<MayAlias>& may_alias) {
  return loop.vars.size() == 1 && LaneProof(loop, may_alias).holds(loop);
}

}  // namespace helve
