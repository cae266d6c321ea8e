// The conflict of a pair: by ranges, by the stride of the thread, by some threads that conflict, by isl.
// The cheap tests come first and decide most pairs.
#include "conflicts.h"

#include <algorithm>
#include <numeric>

#include "helve/analysis/instance_pair.h"
#include "helve/analysis/stepped.h"
#include "helve/arith/facts.h"
#include "helve/arith/simplify.h"
#include "helve/ir/expr/chain.h"
#include "helve/ir/expr/visit.h"
#include "witness.h"

namespace helve::barriers {

namespace {

constexpr int64_t kOperations = 20'000;  // of isl for one pair, a few milliseconds
constexpr size_t kFewGuards = 16;        // that are simplified under each other
constexpr int kMaxQueries = 32;           // of isl for one later access

/// The later access `b` as the first instance, whose variables keep their names, and the earlier `a` as the second one.
class Pair {
 public:
  Pair(const BlockAccess& a, const BlockAccess& b, bool carried, Between between, const AccessTable& table)
      : a_(a), b_(b), carried_(carried), between_(between), query_(table.constant()), two_(query_) {
    for (const VarRange& range : a.inner) two_.separate(range.var);
    if (!carried) return;
    for (const VarRange& range : a.loop->ranges) two_.separate(range.var);
    // A name has a different value in each iteration.
    const auto is_of_iteration = [&](const Expr& node) {
      const Var* var = as<Var>(node);
      return var && table.depth_of(var) == a.loop->depth;
    };
    const auto name = [&](const Expr& e) {
      if (!e) return;
      walk(e, [&](const Expr& node) {
        if (is_of_iteration(node)) two_.separate(VarRef(as<Var>(node)));
      });
    };
    const auto is_counted = [&](const Var* var) {
      return std::any_of(a.loop->ranges.begin(), a.loop->ranges.end(),
                         [&](const VarRange& range) { return range.var.get() == var; });
    };
    for (const Expr& index : a.indices) {
      name(index);
      if (!index) continue;
      walk(index, [&](const Expr& node) {
        depends_on_data_ |= is_of_iteration(node) && !is_counted(as<Var>(node));
        if (node->kind != ExprKind::Load) return;
        walk(node, [&](const Expr& part) { depends_on_data_ |= is_of_iteration(part); });
      });
    }
    for (const Expr& condition : a.conditions) name(condition);
    for (const VarRange& range : a.inner) {
      name(range.begin);
      name(range.extent);
    }
  }

  /// Does each element belong to one thread only? This decides most pairs, a hundred times faster than isl.
  bool threads_are_named() const {
    if (!a_.thread || !b_.thread) return false;
    const Expr earlier = two_.second(Expr(a_.thread));
    Facts facts;
    for (const VarRange& range : a_.inner) {
      if (!range.begin || !range.extent) continue;
      facts.bind_loop(VarRef(as<Var>(two_.second(Expr(range.var)))), two_.second(range.begin),
                      two_.second(range.extent));
    }
    for (const VarRange& range : b_.inner) {
      if (range.begin && range.extent) facts.bind_loop(range.var, range.begin, range.extent);
    }
    for (size_t d = 0; d < a_.indices.size(); ++d) {
      if (!a_.indices[d] || !b_.indices[d]) continue;
      const std::optional<Stepped> one = stepped_by(two_.second(a_.indices[d]), as<Var>(earlier)),
                                   other = stepped_by(b_.indices[d], b_.thread.get());
      if (!one || !other || one->step != other->step) continue;
      if (forces_equal(one->step, interval_of(simplify(one->rest - other->rest), facts))) return true;
    }
    return false;
  }

  /// Does an element of the earlier iteration depend on what memory holds for it, which may be anything?
  bool depends_on_data() const { return depends_on_data_; }

  /// The condition under which they conflict, over `vars`. If there are many guards, each part is simplified under the
  /// ranges alone, not under the parts before it.
  Expr conflict(std::vector<VarRef>* vars) {
    std::vector<const BlockLoop*> around;
    for (const BlockLoop* loop = b_.loop; loop; loop = loop->parent) around.push_back(loop);
    for (auto loop = around.rbegin(); loop != around.rend(); ++loop) {
      for (const VarRange& range : (*loop)->ranges) in_range(range, {});
    }
    if (carried_) {
      for (const VarRange& range : a_.loop->ranges) in_range(range, two_.renamed());
    }
    for (const VarRange& range : b_.inner) in_range(range, {});
    for (const VarRange& range : a_.inner) in_range(range, two_.renamed());
    const size_t ranges = query_.conditions().size();
    if (carried_ && a_.loop->ranges.size() == 1) query_.require(two_.after(a_.loop->ranges[0].var));
    for (const Expr& e : b_.conditions) query_.require(e);
    for (const Expr& e : a_.conditions) query_.require(two_.second(e));
    if (between_ == Between::Warpgroups) {
      const Expr one = warpgroup_of(a_), other = warpgroup_of(b_);
      if (one && other) query_.require(apply(Op::Ne, {two_.second(one), other}));
    } else if (a_.thread && b_.thread) {
      query_.require(apply(Op::Ne, {two_.second(Expr(a_.thread)), Expr(b_.thread)}));
    }
    two_.touch(b_.indices, a_.indices);
    vars->insert(vars->end(), query_.vars().begin(), query_.vars().end());
    std::vector<Expr> all = query_.conditions();
    if (guards(a_) + guards(b_) <= kFewGuards) return simplify(conjunction(all));
    for (size_t i = ranges; i < all.size(); ++i) all[i] = simplify(all[i], query_.facts());
    return conjunction(all);
  }

 private:
  /// The warpgroup of the thread; null if it is that of any.
  static Expr warpgroup_of(const BlockAccess& access) {
    if (access.warpgroup) return int_imm(*access.warpgroup);
    if (!access.thread) return {};
    return floor_div(Expr(access.thread) - int_imm(access.first_thread), int_imm(access.of_warpgroup));
  }
  static size_t guards(const BlockAccess& access) {
    size_t count = 0;
    for (const Expr& condition : access.conditions) {
      walk(condition, [&](const Expr& node) { count += node->dtype.is_bool(); });
    }
    return count;
  }

  /// What is known of the range holds; where nothing is, the variable has any value.
  void in_range(const VarRange& range, const Substitution& renamed) {
    Step step;
    step.vars = {range.var};
    if (range.begin && range.extent) {
      step.begins = {range.begin};
      step.extents = {range.extent};
    }
    query_.add(step, renamed);
    if (!range.begin || range.extent) return;
    const Expr known = apply(Op::Le, {range.begin, Expr(range.var)});
    query_.require(renamed.empty() ? known : substitute(known, renamed));
  }

  const BlockAccess& a_;
  const BlockAccess& b_;
  bool carried_;
  Between between_;
  bool depends_on_data_ = false;
  PathConditions query_;
  InstancePair two_;
};

/// Any integer with the residue of the expression.
Expr any_like(const Expr& e) {
  const Residue known = residue_of(e, {});
  if (known.modulus == 0) return e;
  const Expr any(make_var("base"));
  return any * int_imm(known.modulus) + int_imm(known.remainder);
}

/// Is there no conflict, for all values of `vars`?
Answer answer_of(Pair& pair, std::vector<VarRef> vars, const ExactEngine& engine, const AccessTable& table) {
  const Expr conflict = pair.conflict(&vars);
  Translation translation;
  translation.constant = &table.constant();
  return IntegerSet(engine, vars, conflict, {}, translation).emptiness();
}

bool reads_memory(const Expr& e) {
  bool found = false;
  walk(e, [&](const Expr& node) { found |= node->kind == ExprKind::Load; });
  return found;
}

/// Do conditions on it become many cases?
bool is_costly(const Expr& e) {
  bool found = false;
  walk(e, [&](const Expr& node) {
    const Apply* n = as<Apply>(node);
    found |= n && (n->op == Op::FloorDiv || n->op == Op::FloorMod || n->op == Op::Min || n->op == Op::Max);
  });
  return found;
}

/// Does it depend on the access's own variables only?
bool is_own(const Expr& e, const BlockAccess& access) {
  bool own = true;
  walk(e, [&](const Expr& node) {
    const Var* var = as<Var>(node);
    own &= !var || std::any_of(access.inner.begin(), access.inner.end(),
                               [&](const VarRange& range) { return range.var.get() == var; });
  });
  return own;
}

/// Forgets of conditions and ranges what depends on other variables, which the access has no more.
void keep_own(BlockAccess& access) {
  std::erase_if(access.conditions, [&](const Expr& condition) { return !is_own(condition, access); });
  for (VarRange& range : access.inner) {
    if (range.begin && !is_own(range.begin, access)) range.begin = {};
    if (range.extent && !is_own(range.extent, access)) range.extent = {};
  }
}

}  // namespace

ConflictQueries::ConflictQueries(const FunctionRef& f, AccessTable& table, Separator separator, Between between)
    : function_(f), table_(table), separator_(separator), between_(between), engine_(kOperations) {}

bool ConflictQueries::may_conflict(const BlockAccess& a, const BlockAccess& b) const {
  if (separator_ == Separator::Fence) return a.write && !a.in_async_proxy && b.in_async_proxy;
  if (separator_ == Separator::Arrival) return a.write && a.in_async_proxy && is_global(*a.buffer);
  return conflict(a, b);
}

bool ConflictQueries::places_apart(AccessId a, AccessId b, bool carried) const {
  const std::vector<Place>&one = table_.places(a), &other = table_.places(b);
  for (size_t d = 0; d < one.size(); ++d) {
    if (!one[d].base || one[d].base != other[d].base) continue;
    if (carried && one[d].depth == table_.depth(a)) continue;  // the base differs between iterations
    if (intersect(one[d].offset, other[d].offset).is_empty()) return true;
    if (!intersect(one[d].step, other[d].step)) return true;
  }
  return false;
}

namespace {

/// The values of `thread` of each warpgroup, by its number; a copy that one starts has no thread. Nothing if they are
/// not known.
std::vector<std::pair<int64_t, std::optional<Interval>>> warpgroups_of(const BlockAccess& access) {
  if (access.warpgroup) return {{*access.warpgroup, std::nullopt}};
  const auto at = std::find_if(access.inner.begin(), access.inner.end(),
                               [&](const VarRange& range) { return access.thread && range.var == access.thread; });
  const int64_t* begin = at != access.inner.end() && at->begin ? int_value(at->begin) : nullptr;
  const int64_t* extent = at != access.inner.end() && at->extent ? int_value(at->extent) : nullptr;
  if (!begin || !extent || *begin != access.first_thread || *extent % access.of_warpgroup != 0) return {};
  std::vector<std::pair<int64_t, std::optional<Interval>>> out;
  for (int64_t group = 0; group < *extent / access.of_warpgroup; ++group) {
    const int64_t first = *begin + group * access.of_warpgroup;
    out.emplace_back(group, Interval{first, first + access.of_warpgroup - 1});
  }
  return out;
}

/// Of an offset, where the thread is one of `threads`.
Interval range_of(const Expr& offset, const BlockAccess& access, const std::optional<Interval>& threads) {
  Facts facts;
  for (const VarRange& range : access.inner) {
    if (threads && range.var == access.thread) {
      facts.bind_loop(range.var, int_imm(*threads->low), int_imm(*threads->high - *threads->low + 1));
    } else if (range.begin && range.extent) {
      facts.bind_loop(range.var, range.begin, range.extent);
    }
  }
  return interval_of(simplify(offset, facts), facts);
}

/// May a value of each be equal, or, for a modulus other than 0, have the same remainder?
bool may_be_equal(const Interval& one, const Interval& other, int64_t modulus) {
  if (modulus == 0) return !intersect(one, other).is_empty();
  const Interval difference = other + -one;
  if (!difference.low || !difference.high) return true;
  return floor_quotient(*difference.high, modulus) * modulus >= *difference.low;
}

}  // namespace

std::optional<ComparedOffsets> ConflictQueries::compared_offsets(AccessId a, AccessId b, bool carried, size_t d) const {
  const Place &earlier = table_.places(a)[d], &later = table_.places(b)[d];
  if (!earlier.base || !later.base) return std::nullopt;
  const bool is_same = earlier.base == later.base && !(carried && earlier.depth == table_.depth(a));
  if (is_same) return ComparedOffsets{earlier.offset_value, later.offset_value, 0};
  const Residue one = residue_of(earlier.base_value, {}), other = residue_of(later.base_value, {});
  return ComparedOffsets{earlier.offset_value + int_imm(one.remainder), later.offset_value + int_imm(other.remainder),
                         std::gcd(one.modulus, other.modulus)};
}

bool ConflictQueries::warpgroups_apart(AccessId a, AccessId b, bool carried) const {
  const BlockAccess &one = table_.access(a), &other = table_.access(b);
  const auto groups = warpgroups_of(one), others = warpgroups_of(other);
  if (groups.empty() || others.empty()) return false;
  for (size_t d = 0; d < table_.places(a).size(); ++d) {
    const std::optional<ComparedOffsets> compared = compared_offsets(a, b, carried, d);
    if (!compared || compared->modulus == 1) continue;
    std::vector<std::pair<int64_t, Interval>> theirs;
    for (const auto& [group, threads] : others) theirs.emplace_back(group, range_of(compared->later, other, threads));
    const bool apart = std::all_of(groups.begin(), groups.end(), [&](const auto& group) {
      const Interval mine = range_of(compared->earlier, one, group.second);
      return std::all_of(theirs.begin(), theirs.end(), [&](const auto& each) {
        return each.first == group.first || !may_be_equal(mine, each.second, compared->modulus);
      });
    });
    if (apart) return true;
  }
  return false;
}

std::optional<AccessId> ConflictQueries::common_box(AccessId a, AccessId b, bool carried) const {
  if (!carried || (table_.access(a).thread && table_.access(b).thread)) return std::nullopt;
  const std::optional<AccessId> box = table_.box_around(a);
  if (!box || box != table_.box_around(b)) return std::nullopt;
  return may_conflict(table_.access(*box), table_.access(*box)) ? box : std::nullopt;
}

bool ConflictQueries::apart_for_any_bases(AccessId a, AccessId b, bool carried) {
  BlockAccess one = table_.access(a), other = table_.access(b);
  if (!one.thread || !other.thread) return false;
  const std::vector<Place>&places = table_.places(a), &others = table_.places(b);
  std::vector<ComparedOffsets> compared;
  bool costly = false;
  for (size_t d = 0; d < places.size(); ++d) {
    const std::optional<ComparedOffsets> offsets = compared_offsets(a, b, carried, d);
    if (!offsets || !is_own(places[d].offset_value, one) || !is_own(others[d].offset_value, other)) {
      one.indices[d] = other.indices[d] = {};
      continue;
    }
    const bool is_same = offsets->modulus == 0;
    const Expr begin = any_like(places[d].base_value),
               begin_of_other = is_same ? begin : any_like(others[d].base_value);
    one.indices[d] = begin + places[d].offset_value;
    other.indices[d] = begin_of_other + others[d].offset_value;
    compared.push_back(*offsets);
    costly |= is_costly(places[d].base_value) || is_costly(others[d].base_value);
  }
  if (!costly) return false;
  for (BlockAccess* each : {&one, &other}) {
    each->loop = table_.kernel_loop();
    keep_own(*each);
  }
  if (const std::optional<bool> counted = threads_apart(one, other, compared)) return *counted;
  ++work_.queries;
  Pair pair(one, other, false, between_, table_);
  return answer_of(pair, {}, engine_, table_).verdict == Verdict::Proved;
}

std::vector<VarRef> ConflictQueries::shared_variables() const {
  std::vector<VarRef> out(function_->dims.begin(), function_->dims.end());
  out.insert(out.end(), kernel_->vars.begin(), kernel_->vars.end());
  return out;
}

Conflict ConflictQueries::without_data(const BlockAccess& a, const BlockAccess& b, bool carried) {
  BlockAccess one = a, other = b;
  size_t guards = 0;
  for (BlockAccess* each : {&one, &other}) guards += std::erase_if(each->conditions, reads_memory);
  if (guards == 0) return Conflict::Undecided;
  ++work_.queries;
  Pair pair(one, other, carried, between_, table_);
  const Answer answer = answer_of(pair, shared_variables(), engine_, table_);
  if (answer.verdict == Verdict::Proved) return Conflict::None;
  return answer.reason == kOverBudget ? Conflict::Undecided : Conflict::Possible;
}

Conflict ConflictQueries::ask(AccessId a, AccessId b, bool carried) {
  const size_t depth = std::min(table_.depth(a), table_.depth(b));
  a = table_.seen_from(a, depth);
  b = table_.seen_from(b, depth);
  ++work_.pairs;
  if (table_.memory(a) != table_.memory(b)) return Conflict::None;
  const BlockAccess &one = table_.access(a), &other = table_.access(b);
  if (!may_conflict(one, other)) return Conflict::None;
  const bool of_warpgroups = between_ == Between::Warpgroups;
  if (of_warpgroups && one.warpgroup && one.warpgroup == other.warpgroup) return Conflict::None;
  if (one.buffer != other.buffer) {  // tensors that share memory may overlap anywhere
    return may_overlap(function_->may_alias, one.buffer.get(), other.buffer.get()) ? Conflict::Possible
                                                                                   : Conflict::None;
  }
  if (places_apart(a, b, carried)) return Conflict::None;
  const uint64_t key = (uint64_t{a} << 32 | b) << 1 | static_cast<uint64_t>(carried);
  const auto [it, fresh] = answers_.emplace(key, Conflict::Undecided);
  Conflict& out = it->second;
  if (!fresh) return out;
  if (of_warpgroups && warpgroups_apart(a, b, carried)) return out = Conflict::None;
  Pair pair(one, other, carried, between_, table_);
  if (pair.threads_are_named()) return out = Conflict::None;
  if (!of_warpgroups && found_in_conflict(*function_, one, other, carried)) {
    ++work_.found;
    return out = one.exact && other.exact ? Conflict::Certain : Conflict::Possible;
  }
  const std::optional<AccessId> box = common_box(a, b, carried);
  if (box && hopeful_.contains(*box) && ask(*box, *box, true) == Conflict::None) return out = Conflict::None;
  if (apart_for_any_bases(a, b, carried)) return out = Conflict::None;
  if (++queries_[b] > kMaxQueries) return out;
  ++work_.queries;
  const Answer answer = answer_of(pair, shared_variables(), engine_, table_);
  if (answer.verdict == Verdict::Proved) {
    if (box) hopeful_.insert(*box);
    return out = Conflict::None;
  }
  if (answer.reason == kOverBudget && !pair.depends_on_data()) return out = without_data(one, other, carried);
  const bool certain = answer.verdict == Verdict::Refuted && one.exact && other.exact;
  return out = certain ? Conflict::Certain : Conflict::Possible;
}

}  // namespace helve::barriers
