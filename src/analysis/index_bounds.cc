// Magnitudes of index expressions as sums over dynamic extents.
// |a + b| <= |a| + |b| and |a * b| <= |a| * |b| need no signs, so a bound of the whole bounds every part, and
// evaluating it without overflow is the whole check at a call.
#include "helve/analysis/index_bounds.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "helve/arith/simplify.h"
#include "helve/ir/expr/build.h"
#include "helve/ir/tensor/visit.h"
#include "helve/support/diagnostic.h"

namespace helve {

namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kMaxShift = 62;  // of 1, within int64
constexpr int64_t kWide = int64_t{1} << 40;

Sum atom_sum(Expr e) { return {{{1, {std::move(e)}}}, 0}; }

Expr power_of_two(Expr exponent) {
  return Expr(make_ref<Apply>(kIndex, Op::ShiftLeft, std::vector<Expr>{int_imm(1), std::move(exponent)}));
}

Expr absolute(const Expr& e) { return Expr(make_ref<Apply>(kIndex, Op::Abs, std::vector<Expr>{e})); }

/// Is each coefficient of `small` at most that of the same product in `large`?
bool implied(const Sum& small, const Sum& large) {
  if (small.constant > large.constant) return false;
  return std::all_of(small.terms.begin(), small.terms.end(), [&](const Term& term) {
    return std::any_of(large.terms.begin(), large.terms.end(), [&](const Term& other) {
      return term.coefficient <= other.coefficient && same_factors(term.factors, other.factors);
    });
  });
}

bool same_sum(const Sum& a, const Sum& b) { return implied(a, b) && implied(b, a); }

/// Products in bounds are not negative, so most answers are in the coefficients.
bool at_most(const Sum& a, const Sum& b, const Facts& facts) {
  return implied(a, b) || can_prove(apply(Op::Le, {expr_of(a), expr_of(b)}), facts);
}

/// Does the sum grow no faster than its products? Then extents of memory that exists keep it far below the limit of
/// int64.
bool is_polynomial(const Sum& sum) {
  bool powers = false;
  for (const Term& term : sum.terms) {
    for (const Expr& factor : term.factors) {
      walk(factor, [&](const Expr& e) { powers |= as_op(e, Op::ShiftLeft) != nullptr; });
    }
  }
  return !powers;
}

/// `factors` without those of `some`; empty if one is missing.
std::optional<std::vector<Expr>> without_factors(std::vector<Expr> factors, const std::vector<Expr>& some) {
  for (const Expr& each : some) {
    const auto found = std::find_if(factors.begin(), factors.end(), [&](const Expr& e) { return same_expr(e, each); });
    if (found == factors.end()) return std::nullopt;
    factors.erase(found);
  }
  return factors;
}

Expr product_of(const Term& term) { return expr_of(Sum{{{1, term.factors}}, 0}); }

/// Conditions on a variable from the end of its loop. If the extent is a quotient, as in loops that are divided among
/// others, the dividend gives a tighter bound: begin <= v < begin + (max(m, 0) + k) // c, with k < c, is also c * (v -
/// begin) + c - k <= m.
std::vector<Expr> conditions_of_end(const Expr& var, const Expr& begin, const Expr& extent) {
  std::vector<Expr> out = {less(var, begin + extent)};
  const Apply* quotient = as_op(extent, Op::FloorDiv);
  const int64_t* divisor = quotient ? int_value(quotient->args[1]) : nullptr;
  if (!divisor || *divisor <= 0) return out;
  const Expr turns = (var - begin + int_imm(1)) * int_imm(*divisor);  // at least the divisor
  out.push_back(apply(Op::Le, {turns, quotient->args[0]}));
  const Sum dividend = sum_of(quotient->args[0]);
  if (dividend.terms.size() != 1 || dividend.terms[0].coefficient != 1 || dividend.constant >= *divisor) return out;
  const Apply* most = dividend.terms[0].factors.size() == 1 ? as_op(dividend.terms[0].factors[0], Op::Max) : nullptr;
  for (size_t i = 0; most && i < 2; ++i) {
    const int64_t* least = int_value(most->args[i]);
    if (least && *least == 0) {
      out.push_back(apply(Op::Le, {turns, most->args[1 - i] + int_imm(dividend.constant)}));
    }
  }
  return out;
}

/// Can the operator leave the range of its operands?
bool grows(Op op) {
  switch (op) {
    case Op::Add:
    case Op::Sub:
    case Op::Mul:
    case Op::Neg:
    case Op::Abs:
    case Op::FloorDiv:
    case Op::ShiftLeft: return true;
    default: return false;
  }
}

}  // namespace

IndexBounds::IndexBounds(FunctionRef lowered) : function_(std::move(lowered)) {
  for (const VarRef& dim : function_->dims) {
    inputs_.insert(dim.get());
    context_.facts.bind(dim, {0, std::nullopt});
    limits_.bind(dim, {0, kLargestExtent});
  }
  for (const Param& param : function_->params) {
    if (const VarRef* var = std::get_if<VarRef>(&param)) inputs_.insert(var->get());
  }
  collect(function_->body);
  walk_guarded(function_->body, [&](const Stmt& s) {
    const Kernel* kernel = as<Kernel>(s);
    const Bind* bind = as<Bind>(s);
    if (kernel) require_below(kernel->body);
    if (bind && has_load(bind->value)) require_below(s);  // a kernel of its own, although it is in none
    return !kernel;
  });
  drop_implied();
  find_unpromised();
}

IndexBounds::Reach IndexBounds::constant(int64_t value) { return {Reach::Bounded, Sum{{}, value}}; }

IndexBounds::Reach IndexBounds::magnitude(int64_t value) {
  return value < -kMax ? Reach{Reach::Beyond, {}} : constant(std::abs(value));
}

IndexBounds::Reach IndexBounds::bounded(std::optional<Sum> sum) {
  return sum ? Reach{Reach::Bounded, std::move(*sum)} : Reach{Reach::Beyond, {}};
}

IndexBounds::Reach IndexBounds::plus(const Reach& a, const Reach& b) {
  if (a.kind != Reach::Bounded) return a.kind == Reach::Beyond && b.kind == Reach::None ? b : a;
  return b.kind == Reach::Bounded ? bounded(add(a.sum, b.sum)) : b;
}

IndexBounds::Reach IndexBounds::times(const Reach& a, const Reach& b) {
  if (a.kind != Reach::Bounded) return a.kind == Reach::Beyond && b.kind == Reach::None ? b : a;
  if (b.kind != Reach::Bounded) return b;
  if ((a.sum.terms.size() + 1) * (b.sum.terms.size() + 1) <= kTermLimit) return bounded(multiply(a.sum, b.sum));
  return bounded(multiply(atom_sum(expr_of(a.sum)), atom_sum(expr_of(b.sum))));  // not expanded
}

/// The sum with the larger coefficients bounds both.
IndexBounds::Reach IndexBounds::either(const Reach& a, const Reach& b) {
  if (a.kind != Reach::Bounded) return a.kind == Reach::Beyond && b.kind == Reach::None ? b : a;
  if (b.kind != Reach::Bounded) return b;
  Reach out = a;
  out.sum.constant = std::max(a.sum.constant, b.sum.constant);
  for (const Term& term : b.sum.terms) {
    auto same = std::find_if(out.sum.terms.begin(), out.sum.terms.end(),
                             [&](const Term& known) { return same_factors(known.factors, term.factors); });
    if (same == out.sum.terms.end()) {
      out.sum.terms.push_back(term);
    } else {
      same->coefficient = std::max(same->coefficient, term.coefficient);
    }
  }
  return out;
}

/// The definitions of variables; copies of a body share its variables, so one may have several.
void IndexBounds::collect(const Stmt& s) {
  walk(s, [&](const Stmt& each) {
    if (const Bind* n = as<Bind>(each)) {
      definitions_[n->var.get()].push_back({n->value, {}});
    } else if (const Store* n = as<Store>(each); n && n->previous) {
      definitions_[n->previous.get()].push_back({Expr(make_ref<Load>(StorageRef(n->buffer), n->indices)), {}});
    } else if (const For* n = as<For>(each)) {
      for (size_t d = 0; d < n->vars.size(); ++d) {
        definitions_[n->vars[d].get()].push_back({n->begins[d], n->extents[d]});
      }
    } else if (const Kernel* n = as<Kernel>(each)) {
      for (size_t d = 0; d < n->vars.size(); ++d) definitions_[n->vars[d].get()].push_back({int_imm(0), n->extents[d]});
    }
  });
}

void IndexBounds::require(Use use, const std::function<Reach()>& find, const Expr& e, const Span& span) {
  Reach reach = find();
  const auto holds_always = [&] {
    return reach.kind == Reach::None || (reach.kind == Reach::Bounded && interval_of(reach.sum, limits_).high);
  };
  if (holds_always()) return;
  const bool bounded = reach.kind == Reach::Bounded;
  if (!bounded || (use == Use::Value && conditions_ > 0) || !is_polynomial(reach.sum)) {
    const Reach closer = under_guards(find);
    if (bounded && (closer.kind != Reach::Bounded || !same_sum(closer.sum, reach.sum))) eased_.push_back(reach.sum);
    reach = closer;
    if (holds_always()) return;
  }
  requirements_.push_back({reach.kind == Reach::Bounded ? std::optional(reach.sum) : std::nullopt, e, span});
}

/// The result of `find` where the guards hold. Guards that read memory may have ceased to hold.
IndexBounds::Reach IndexBounds::under_guards(const std::function<Reach()>& find) {
  if (!guarded_) {
    for (const Expr& guard : guards_) range_of(guard);
    guarded_ = Context{context_.facts, {}, {}, {}, {}};
    for (const Expr& guard : guards_) {
      if (!has_load(guard)) guarded_->facts.assume(guard);
    }
  }
  if (guarded_->facts.contradictory()) return constant(0);
  std::swap(context_, *guarded_);
  for (const Expr& guard : guards_) range_of(guard);
  Reach out = find();
  std::swap(context_, *guarded_);
  return out;
}

/// Visits every statement, with the conditions and loop ends around it in `guards_`; its parts if `f` returns true.
void IndexBounds::walk_guarded(const Stmt& s, const std::function<bool(const Stmt&)>& f) {
  if (!s || !f(s)) return;
  const auto walk_under = [&](std::vector<Expr> guards, const Stmt& part) {
    const size_t around = guards_.size();
    guards_.insert(guards_.end(), guards.begin(), guards.end());
    guarded_.reset();
    walk_guarded(part, f);
    guards_.resize(around);
    guarded_.reset();
  };
  if (const If* branch = as<If>(s)) {
    ++conditions_;
    walk_under({branch->condition}, branch->then_body);
    walk_under({apply(Op::Not, {branch->condition})}, branch->else_body);
    --conditions_;
  } else if (const For* loop = as<For>(s)) {
    std::vector<Expr> ends;
    for (size_t d = 0; d < loop->vars.size(); ++d) {
      const std::vector<Expr> end = conditions_of_end(Expr(loop->vars[d]), loop->begins[d], loop->extents[d]);
      ends.insert(ends.end(), end.begin(), end.end());
    }
    walk_under(std::move(ends), loop->body);
  } else {
    for_each_part(s, [](const Expr&) {}, [&](const Stmt& part) { walk_guarded(part, f); });
  }
}

void IndexBounds::require_below(const Stmt& body) {
  const auto require_element = [&](const Buffer& buffer, const std::vector<Expr>& at, const Expr& e, const Span& span) {
    require(Use::Address, [&] { return reach_of_address(buffer, at); }, e, span);
  };
  walk_guarded(body, [&](const Stmt& s) {
    if (const For* n = as<For>(s)) {
      for (const VarRef& var : n->vars) require(Use::Address, [&] { return reach_of_var(var); }, Expr(var), s->span);
    } else if (const Store* n = as<Store>(s)) {
      const Expr element(make_ref<Load>(StorageRef(n->buffer), n->indices));
      require_element(*n->buffer, n->indices, element, s->span);
    } else if (const TileOp* n = as<TileOp>(s)) {
      for (const TileOperand& operand : n->operands) {
        if (const Region* region = std::get_if<Region>(&operand)) require_region(*region, s->span);
      }
    }
    return true;
  });
  const auto look = [&](const Expr& e) {
    if (const Load* load = as<Load>(e)) require_element(buffer_of(load->buffer), load->indices, e, e->span);
    const Apply* node = e->dtype.is_index() ? as<Apply>(e) : nullptr;
    if (node && grows(node->op)) require(Use::Value, [&] { return reach_of(e); }, e, e->span);
  };
  walk_guarded(body, [&](const Stmt& s) {
    for_each_part(s, [&](const Expr& e) { walk(e, look); }, [](const Stmt&) {});
    return true;
  });
}

void IndexBounds::require_region(const Region& region, const Span& span) {
  std::vector<Expr> ends;
  for (const Range& range : region.ranges) ends.push_back(range.begin + range.extent);
  require(
      Use::Address, [&] { return reach_of_address(*region.buffer, ends); },
      Expr(make_ref<Load>(StorageRef(region.buffer), ends)), span);
}

void IndexBounds::drop_implied() {
  std::vector<IndexRequirement> kept;
  for (size_t i = 0; i < requirements_.size(); ++i) {
    const IndexRequirement& each = requirements_[i];
    bool needed = true;
    for (size_t j = 0; j < requirements_.size() && needed && each.reach; ++j) {
      const IndexRequirement& other = requirements_[j];
      if (i == j || !other.reach || !implied(*each.reach, *other.reach)) continue;
      needed = j > i && implied(*other.reach, *each.reach);  // of equal ones the first is kept
    }
    if (needed) kept.push_back(each);
  }
  requirements_ = std::move(kept);
}

void IndexBounds::find_unpromised() {
  for (const Sum& sum : eased_) {
    const bool required = std::any_of(requirements_.begin(), requirements_.end(), [&](const IndexRequirement& each) {
      return each.reach && implied(sum, *each.reach);
    });
    if (!required) unpromised_.push_back(sum);
  }
}

bool IndexBounds::is_promised(const Reach& reach) const {
  return reach.kind == Reach::Bounded &&
         std::none_of(unpromised_.begin(), unpromised_.end(), [&](const Sum& sum) { return implied(sum, reach.sum); });
}

/// Adds the range of a variable to the facts.
void IndexBounds::resolve(const Var* var) const {
  auto places = definitions_.find(var);
  if (places == definitions_.end() || context_.variables.contains(var)) return;
  if (!context_.resolving.insert(var).second) return;
  std::optional<Interval> range;
  Reach reach;
  for (const Definition& place : places->second) {
    Interval values = range_of(place.begin);
    Reach far = reach_of(place.begin);
    if (place.extent) {
      Interval count = max(range_of(place.extent), Interval::point(1));
      if (count.high && *count.high == kMax) count.high.reset();  // the range of a 64-bit type is no bound
      values = {values.low, (values + count + Interval::point(-1)).high};
      far = plus(far, count.high && *count.high <= kWide ? constant(*count.high) : reach_of(place.extent));
    }
    reach = range ? either(reach, far) : far;
    range = range ? unite(*range, values) : values;
  }
  if (var->dtype.is_integer()) context_.facts.bind(var, *range);
  context_.variables.emplace(var, std::move(reach));
}

Interval IndexBounds::range_of(const Expr& e) const {
  walk(e, [&](const Expr& part) {
    if (const Var* var = as<Var>(part)) resolve(var);
  });
  return interval_of(e, context_.facts);
}

IndexBounds::Reach IndexBounds::reach_of_var(const VarRef& var) const {
  resolve(var.get());
  if (auto known = context_.variables.find(var.get()); known != context_.variables.end()) return known->second;
  if (!inputs_.contains(var.get())) return {};
  return bounded(atom_sum(never_negative(Expr(var))));
}

/// A value of inputs if it is not negative in any call, or its magnitude: a guard says nothing about calls in which its
/// code does not run, and the reach is evaluated in those too.
Expr IndexBounds::never_negative(const Expr& e) const { return interval_of(e, limits_).at_least(0) ? e : absolute(e); }

IndexBounds::Reach IndexBounds::reach_of(const Expr& e) const {
  if (!e->dtype.is_index()) return {};
  auto& found = guards_asked_ ? context_.known : context_.limits;
  if (auto known = found.find(e.get()); known != found.end()) return known->second.reach;
  const Interval range = range_of(e);
  Reach out;
  const bool ranged = range.low && range.high && *range.low > -kMax;
  if (ranged) out = constant(std::max(std::abs(*range.low), std::abs(*range.high)));
  // A range as wide as a 64-bit type is worse than the parameter itself, which the call knows.
  if (!ranged || out.sum.constant > kWide) {
    const Reach parts = reach_of_parts(e);
    if (!ranged || (parts.kind == Reach::Bounded && !parts.sum.is_constant())) out = parts;
  }
  if (out.kind == Reach::Beyond || (out.kind == Reach::Bounded && !out.sum.is_constant())) out = closest(e, out);
  found.emplace(e.get(), Known{e, out});
  return out;
}

IndexBounds::Reach IndexBounds::reach_of_parts(const Expr& e) const {
  if (const int64_t* value = int_value(e)) return magnitude(*value);
  if (const Var* var = as<Var>(e)) return reach_of_var(VarRef(var));
  if (const Cast* cast = as<Cast>(e)) {
    const Var* var = as<Var>(cast->value);
    if (var && inputs_.contains(var) && var->dtype.is_integer()) return bounded(atom_sum(absolute(e)));
  }
  const Apply* node = as<Apply>(e);
  return node ? reach_of_apply(*node, e) : Reach{};
}

/// Terms are collected first, so that those that cancel do not count.
IndexBounds::Reach IndexBounds::reach_of_sum(const Expr& e) const {
  const Sum sum = sum_of(e);
  if (sum.atom() == e) {  // too large to collect
    const Apply& node = *as<Apply>(e);
    if (node.op == Op::Neg) return reach_of(node.args[0]);
    return node.op == Op::Mul ? times(reach_of(node.args[0]), reach_of(node.args[1]))
                              : plus(reach_of(node.args[0]), reach_of(node.args[1]));
  }
  Reach out = magnitude(sum.constant);
  for (const Term& term : sum.terms) out = plus(out, reach_of_term(term));
  return out;
}

IndexBounds::Reach IndexBounds::reach_of_term(const Term& term) const {
  Reach out = magnitude(term.coefficient);
  for (const Expr& factor : term.factors) out = times(out, reach_of(factor));
  return out;
}

bool IndexBounds::is_input(const Term& term) const {
  bool input = true;
  for (const Expr& factor : term.factors) {
    walk(factor, [&](const Expr& e) {
      const Var* var = as<Var>(e);
      if (var ? !inputs_.contains(var) : e->kind == ExprKind::Load) input = false;
    });
  }
  return input;
}

/// The maximum of a product, by the definitions of its variables; guards are not used, since they may need this in
/// turn. Empty if there is no bound, or a variable is being resolved.
std::optional<Sum> IndexBounds::limit_of(const Term& term) const {
  bool resolved = true;
  for (const Expr& factor : term.factors) {
    walk(factor, [&](const Expr& e) {
      const Var* var = as<Var>(e);
      resolved &= !as<Load>(e) && (!var || inputs_.contains(var) || context_.variables.contains(var));
    });
  }
  if (!resolved) return std::nullopt;
  const bool asked = std::exchange(guards_asked_, false);
  const Reach out = reach_of_term(term);
  guards_asked_ = asked;
  return out.kind == Reach::Bounded ? std::optional(out.sum) : std::nullopt;
}

/// The inequality with limits in place of the terms that are not inputs.
std::optional<Sum> IndexBounds::limited(const Sum& inequality) const {
  std::optional<Sum> out = Sum{{}, inequality.constant};
  for (const Term& term : inequality.terms) {
    const bool stays = term.coefficient < 0 || is_input(term);
    const std::optional<Sum> part = stays ? Sum{{term}, 0} : limit_of(term);
    if (part) out = add(*out, *part);
    if (!part || !out) return std::nullopt;
  }
  return out;
}

/// The tightest bound of the magnitude: `known`, or one from guards. Ranges are those of the current facts: variables
/// of other guards may be in the process of being resolved, and resolving adds to the facts.
IndexBounds::Reach IndexBounds::closest(const Expr& e, Reach known) const {
  if (!guards_asked_ || context_.facts.inequalities().empty()) return known;
  const Sum sum = sum_of(e);
  const SharedList<Inequality> guards = context_.facts.inequalities();
  for (const Inequality& each : guards) {
    const std::optional<Sum> inequality = limited(*each.sum);
    const std::optional<Sum> by = inequality ? limit_by(*inequality, sum) : std::nullopt;
    if (!by || (known.kind == Reach::Bounded && !at_most(*by, known.sum, context_.facts))) continue;
    known = bounded(by);
    known.sum.constant = std::max<int64_t>(by->constant, 0);
  }
  return known;
}

/// The sum with inputs unchanged, and bounds in place of the rest.
IndexBounds::Reach IndexBounds::over_inputs(const Sum& sum) const {
  Reach out = constant(0);
  for (const Term& term : sum.terms) {
    const bool positive = interval_of(product_of(term), context_.facts).at_least(0);
    if (positive && term.coefficient < 0) continue;
    if (!positive || !is_input(term)) {
      out = plus(out, reach_of_term(term));
      continue;
    }
    Term magnitude = term;
    for (Expr& factor : magnitude.factors) factor = never_negative(factor);
    out = plus(out, bounded(Sum{{std::move(magnitude)}, 0}));
  }
  return out.kind == Reach::Bounded ? bounded(add_constant(out.sum, sum.constant)) : out;
}

/// From limit - x >= 0, where limit is a sum of inputs and no term of x is negative: any sum of those terms, with
/// coefficients at most k times those of x, has at most the magnitude of k * limit; multiplied by a common factor m, of
/// m * k * limit. A sum that is not negative is at most itself plus k * (limit - x), where negative constants count.
std::optional<Sum> IndexBounds::limit_by(const Sum& inequality, const Sum& sum) const {
  Sum limit{{}, std::max<int64_t>(inequality.constant, 0)};
  std::vector<Term> x;
  for (const Term& term : inequality.terms) {
    if (is_input(term)) {
      limit.terms.push_back(term);
    } else if (term.coefficient < 0 && interval_of(product_of(term), context_.facts).at_least(0)) {
      x.push_back(term);
    } else {
      return std::nullopt;
    }
  }
  std::optional<std::vector<Expr>> shared;
  int64_t often = 0;
  Sum rest = sum;
  std::erase_if(rest.terms, [&](const Term& term) {
    return std::any_of(x.begin(), x.end(), [&](const Term& part) {
      const std::optional<std::vector<Expr>> others = without_factors(term.factors, part.factors);
      if (!others || (shared && !same_factors(*shared, *others)) || term.coefficient < -kMax) return false;
      shared = others;
      const bool rounded = term.coefficient % part.coefficient != 0;
      often = std::max(often, std::abs(term.coefficient / part.coefficient) + rounded);
      return true;
    });
  });
  if (!shared) return std::nullopt;
  Reach out;
  if (shared->empty() && interval_of(expr_of(sum), context_.facts).at_least(0)) {
    if (const std::optional<Sum> above = add(sum, inequality, often)) out = over_inputs(*above);
  } else {
    out = plus(times(reach_of_term({often, *shared}), over_inputs(limit)), reach_of(expr_of(rest)));
  }
  return out.kind == Reach::Bounded ? std::optional(out.sum) : std::nullopt;
}

/// A quotient is at most its dividend; by a constant it is smaller by that factor, plus one for rounding negative
/// values down.
IndexBounds::Reach IndexBounds::reach_of_quotient(const Apply& node) const {
  const Reach value = reach_of(node.args[0]);
  const int64_t* divisor = int_value(node.args[1]);
  if (value.kind != Reach::Bounded || !divisor || *divisor == 0 || *divisor < -kMax) return value;
  const Expr whole =
      Expr(make_ref<Apply>(kIndex, Op::FloorDiv, std::vector<Expr>{expr_of(value.sum), int_imm(std::abs(*divisor))}));
  const Reach quotient = bounded(sum_of(simplify(whole, limits_)));
  return range_of(node.args[0]).at_least(0) && *divisor > 0 ? quotient : plus(quotient, constant(1));
}

/// The smallest number up to 62 that inequalities prove to bound a shift amount.
std::optional<int64_t> IndexBounds::proved_amount(const Expr& amount) const {
  if (context_.facts.inequalities().empty()) return std::nullopt;
  const auto proved = [&](int64_t most) { return can_prove(less(amount, int_imm(most + 1)), context_.facts); };
  int64_t low = 0, high = kMaxShift;
  if (!proved(high)) return std::nullopt;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (proved(middle))
      high = middle;
    else
      low = middle + 1;
  }
  return high;
}

/// a << b is a * 2^b, and the power grows with b.
IndexBounds::Reach IndexBounds::reach_of_shift(const Apply& node) const {
  const Reach value = reach_of(node.args[0]);
  if (value.kind == Reach::Bounded && value.sum.is_constant() && value.sum.constant == 0) return value;
  Interval amount = range_of(node.args[1]);
  if (!amount.at_most(kMaxShift)) {
    if (const std::optional<int64_t> most = proved_amount(node.args[1])) amount.high = most;
  }
  if (amount.at_most(kMaxShift)) return times(value, constant(int64_t{1} << std::max<int64_t>(*amount.high, 0)));
  Reach exponent = reach_of(node.args[1]);
  if (exponent.kind == Reach::Bounded && exponent.sum.is_constant()) {  // too large: another bound may be tighter
    const Reach closer = closest(node.args[1], {Reach::Beyond, {}});
    if (closer.kind == Reach::Bounded) exponent = closer;
  }
  if (exponent.kind != Reach::Bounded) return exponent.kind == Reach::None ? exponent : plus(value, exponent);
  if (exponent.sum.is_constant()) return plus(value, {Reach::Beyond, {}});
  return times(value, bounded(atom_sum(power_of_two(expr_of(exponent.sum)))));
}

IndexBounds::Reach IndexBounds::reach_of_apply(const Apply& node, const Expr& e) const {
  auto arg = [&](size_t i) { return reach_of(node.args[i]); };
  switch (node.op) {
    case Op::Add:
    case Op::Sub:
    case Op::Mul:
    case Op::Neg: return reach_of_sum(e);
    case Op::Abs: return arg(0);
    case Op::FloorDiv: return reach_of_quotient(node);
    case Op::FloorMod: return arg(1);
    case Op::Min:
    case Op::Max: return either(arg(0), arg(1));
    case Op::Select: return either(arg(1), arg(2));
    case Op::BitAnd:
    case Op::BitOr:
    case Op::BitXor: return plus(times(plus(arg(0), arg(1)), constant(2)), constant(1));  // below the next power of two
    case Op::BitNot: return plus(arg(0), constant(1));
    case Op::ShiftRight: return arg(0);
    case Op::ShiftLeft: return reach_of_shift(node);
    default: HELVE_FAIL("operator " + std::string(row_of(node.op).name) + " has no index value");
  }
}

IndexBounds::Reach IndexBounds::reach_of_address(const Buffer& buffer, const std::vector<Expr>& indices) const {
  Reach total = constant(0), stride = constant(1);
  for (size_t d = indices.size(); d-- > 0;) {
    const Reach by = buffer.strides.empty() ? stride : reach_of(buffer.strides[d]);
    total = plus(total, times(plus(reach_of(indices[d]), constant(1)), by));  // strides must fit as well
    if (buffer.strides.empty() && d > 0) stride = times(stride, reach_of(buffer.shape[d]));
  }
  return times(total, constant(std::max<int64_t>(buffer.dtype.bytes(), 1)));
}

bool IndexBounds::fits64(const Expr& e) const { return is_promised(reach_of(e)); }

bool IndexBounds::fits32(const Expr& e) const {
  return e->dtype.is_index() &&
         range_of(e).within(std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max());
}

bool IndexBounds::address_fits64(const Buffer& buffer, const std::vector<Expr>& indices) const {
  return is_promised(reach_of_address(buffer, indices));
}

}  // namespace helve
