// Facts about variables, and intervals of expressions under them.
// Inequalities are kept as sums, so that guards, loop bounds and symbolic extents are one kind of fact.
#include "helve/arith/facts.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "helve/arith/simplify.h"
#include "helve/ir/expr/build.h"
#include "helve/ir/expr/equal.h"
#include "helve/ir/expr/rounding.h"
#include "helve/ir/expr/visit.h"
#include "helve/support/diagnostic.h"
#include "int64_ends.h"
#include "prove.h"

namespace helve {

namespace {

constexpr int kNarrowingRounds = 8;

Interval range_of_type(DType dtype) {
  if (dtype.is_bool()) return {0, 1};
  if (!dtype.is_data_int()) return {};
  if (dtype.code == TypeCode::UInt && dtype.bits >= 64) return {0, {}};
  return {extreme_int(dtype, true), extreme_int(dtype, false)};
}

bool inside(const Interval& inner, const Interval& outer) {
  return inner.low && (!outer.low || *inner.low >= *outer.low) && inner.high &&
         (!outer.high || *inner.high <= *outer.high);
}

/// The least 2^k - 1 that is not below `value` (>= 0).
int64_t ones_above(int64_t value) {
  uint64_t ones = 1;
  while (static_cast<int64_t>(ones) < value) ones = ones << 1 | 1;
  return static_cast<int64_t>(ones);
}

Interval bits_interval(Op op, const Interval& a, const Interval& b) {
  if (op == Op::BitAnd) {
    if (a.at_least(0) && b.at_least(0))
      return {0, a.high && b.high ? std::min(*a.high, *b.high) : a.high ? a.high : b.high};
    if (a.at_least(0)) return {0, a.high};
    return b.at_least(0) ? Interval{0, b.high} : Interval{};
  }
  if (!a.at_least(0) || !b.at_least(0)) return {};
  if (!a.high || !b.high) return {0, {}};
  return {0, ones_above(std::max(*a.high, *b.high))};
}

/// Intervals and residues of the parts of one expression under facts that do not change meanwhile.
class Ranges {
 public:
  explicit Ranges(const Facts& facts) : facts_(facts) {}

  Interval interval(const Sum& sum) {
    return fold<Interval>(sum, [this](const Expr& e) { return interval(e); });
  }
  Interval interval(const Term& term) {
    return product<Interval>(term, [this](const Expr& e) { return interval(e); });
  }
  Residue residue(const Sum& sum) {
    return fold<Residue>(sum, [this](const Expr& e) { return residue(e); });
  }
  Interval interval(const Expr& e);
  Residue residue(const Expr& e);

 private:
  /// The product of what is known of the factors, in a domain with + and *.
  template <class Domain, class F>
  static Domain product(const Term& term, F&& of) {
    Domain out = Domain::point(term.coefficient);
    for (const Expr& factor : term.factors) out = out * of(factor);
    return out;
  }
  template <class Domain, class F>
  static Domain fold(const Sum& sum, F&& of) {
    Domain out = Domain::point(sum.constant);
    for (const Term& term : sum.terms) out = out + product<Domain>(term, of);
    return out;
  }

  Interval index_interval(const Expr& e);
  Interval data_interval(const Expr& e);
  Interval atom_interval(const Expr& e);
  Residue index_residue(const Expr& e);

  const Facts& facts_;
  Memo<Interval> intervals_;
  Memo<Residue> residues_;
};

Interval Ranges::interval(const Expr& e) {
  if (e->dtype.is_float()) return {};
  if (!e->dtype.is_index()) return data_interval(e);
  if (const int64_t* value = int_value(e)) return Interval::point(*value);
  if (const Var* var = as<Var>(e)) return facts_.range_of(var);
  return intervals_.of(e, [&] { return index_interval(e); });
}

Interval Ranges::index_interval(const Expr& e) {
  const Sum sum = sum_of(e);
  return sum.atom() != e ? interval(sum) : atom_interval(e);
}

Interval Ranges::data_interval(const Expr& e) {
  const Interval type = range_of_type(e->dtype);
  const int64_t* value = int_value(e);
  if (value && (*value >= 0 || type.at_most(std::numeric_limits<int64_t>::max()))) return Interval::point(*value);
  if (const Var* var = as<Var>(e)) return intersect(type, facts_.range_of(var));
  const Cast* cast = as<Cast>(e);  // a conversion that cannot wrap keeps its operand's values
  if (!cast || !cast->value->dtype.is_integer() || !e->dtype.is_data_int()) return type;
  const Interval from = interval(cast->value);
  return inside(from, type) ? from : type;
}

Interval Ranges::atom_interval(const Expr& e) {
  if (const Cast* cast = as<Cast>(e)) return interval(cast->value);
  if (const Misalignment* place = as<Misalignment>(e)) {
    return {0, std::max<int64_t>(place->unit - place->buffer->dtype.bytes(), 0)};
  }
  const Apply* node = as<Apply>(e);
  if (!node) return {};
  auto arg = [&](size_t i) { return interval(node->args[i]); };
  switch (node->op) {
    case Op::Add: return arg(0) + arg(1);
    case Op::Sub: return arg(0) + -arg(1);
    case Op::Neg: return -arg(0);
    case Op::Mul: return arg(0) * arg(1);
    case Op::FloorDiv: return floor_div(arg(0), arg(1));
    case Op::FloorMod: return floor_mod(arg(0), arg(1));
    case Op::Min: return min(arg(0), arg(1));
    case Op::Max: return max(arg(0), arg(1));
    case Op::Abs: return abs(arg(0));
    case Op::Select: return unite(arg(1), arg(2));
    case Op::BitAnd:
    case Op::BitOr:
    case Op::BitXor: return bits_interval(node->op, arg(0), arg(1));
    case Op::ShiftLeft:
    case Op::ShiftRight: {
      const Interval amount = arg(1);
      if (!amount.within(0, 62)) return {};
      const Interval power{int64_t{1} << *amount.low, int64_t{1} << *amount.high};
      return node->op == Op::ShiftLeft ? arg(0) * power : floor_div(arg(0), power);
    }
    default: return {};
  }
}

Residue Ranges::residue(const Expr& e) {
  if (const int64_t* value = int_value(e)) {
    const bool wraps = e->dtype == DType{TypeCode::UInt, 64} && *value < 0;  // the pattern of a value beyond int64
    return wraps ? Residue::everything() : Residue::point(*value);
  }
  if (const Var* var = as<Var>(e)) return facts_.residue_of(var);
  if (!e->dtype.is_index()) return {};
  return residues_.of(e, [&] { return index_residue(e); });
}

Residue Ranges::index_residue(const Expr& e) {
  const Sum sum = sum_of(e);
  if (sum.atom() != e) return residue(sum);
  if (const Misalignment* place = as<Misalignment>(e)) return Residue::of(place->buffer->dtype.bytes(), 0);
  const Apply* node = as<Apply>(e);
  if (!node) return {};
  auto arg = [&](size_t i) { return residue(node->args[i]); };
  switch (node->op) {
    case Op::Add: return arg(0) + arg(1);  // a sum that did not fit
    case Op::Sub: return arg(0) + -arg(1);
    case Op::Neg: return -arg(0);
    case Op::Mul: return arg(0) * arg(1);
    case Op::FloorDiv: return floor_div(arg(0), arg(1));
    case Op::FloorMod: return floor_mod(arg(0), arg(1));
    case Op::Min:
    case Op::Max: return unite(arg(0), arg(1));
    case Op::Select: return unite(arg(1), arg(2));
    case Op::Abs: return unite(arg(0), -arg(0));
    default: return {};
  }
}

Bits bit_of(const Var* var) { return Bits{1} << (hash_mix(0, reinterpret_cast<uintptr_t>(var)) & 63); }
Bits bit_of(const Expr& e) {
  const Var* var = as<Var>(e);
  return var ? bit_of(var) : Bits{1} << (structural_hash(e) & 63);
}

const Apply* as_equation(const Expr& e) {
  const Apply* node = as<Apply>(e);
  return node && (node->op == Op::Eq || node->op == Op::Ne) ? node : nullptr;
}

/// One for a == b and a != b, so that what is known of either is found for both.
uint64_t truth_hash(const Expr& condition) {
  const Apply* equation = as_equation(condition);
  if (!equation) return structural_hash(condition);
  return hash_mix(structural_hash(equation->args[0]), structural_hash(equation->args[1]));
}

bool same_terms(const Sum& a, const Sum& b) {
  return a.terms.size() == b.terms.size() && std::all_of(a.terms.begin(), a.terms.end(), [&](const Term& term) {
           return std::any_of(b.terms.begin(), b.terms.end(), [&](const Term& other) {
             return term.coefficient == other.coefficient && same_factors(term.factors, other.factors);
           });
         });
}

}  // namespace

Bits bits_of(const Term& term) {
  Bits out = 0;
  for (const Expr& factor : term.factors) out |= bit_of(factor);
  return out;
}

Inequality::Inequality(Sum given) : sum(std::make_shared<const Sum>(std::move(given))) {
  for (const Term& term : sum->terms) {
    const bool rises = term.coefficient > 0;
    uint64_t factors = 0;  // in any order
    for (const Expr& factor : term.factors) factors += structural_hash(factor);
    form += hash_mix(static_cast<uint64_t>(term.coefficient), factors);
    (rises ? positive : negative) |= bits_of(term);
    const bool plain = term.factors.size() == 1 && term.factors[0]->kind == ExprKind::Var;
    Bits variables = 0;
    for (const Expr& factor : term.factors) {
      walk(factor, [&](const Expr& e) { variables |= e->kind == ExprKind::Var ? bit_of(e) : 0; });
    }
    if (!plain || rises) reads_high |= variables;
    if (!plain || !rises) reads_low |= variables;
  }
}

Interval interval_of(const Sum& sum, const Facts& facts) { return Ranges(facts).interval(sum); }
Interval interval_of(const Term& term, const Facts& facts) { return Ranges(facts).interval(term); }
Interval interval_of(const Expr& e, const Facts& facts) { return Ranges(facts).interval(e); }
Residue residue_of(const Sum& sum, const Facts& facts) { return Ranges(facts).residue(sum); }
Residue residue_of(const Expr& e, const Facts& facts) { return Ranges(facts).residue(e); }

Interval Facts::range_of(const Var* var) const {
  auto it = ranges_.find(var);
  return it == ranges_.end() ? Interval{} : it->second;
}

void Facts::bind(const Var* var, Interval range) {
  HELVE_CHECK(var->dtype.is_integer(), "a range is bound to an integer variable");
  narrow(var, range);
  narrow_ranges();
}

Residue Facts::residue_of(const Var* var) const {
  auto it = residues_.find(var);
  return it == residues_.end() ? Residue{} : it->second;
}

void Facts::bind_residue(const Var* var, const Residue& residue) {
  HELVE_CHECK(var->dtype.is_integer(), "a residue is bound to an integer variable");
  const std::optional<Residue> both = intersect(residue_of(var), residue);
  contradictory_ |= !both;
  if (!both || *both == Residue{}) return;
  residues_[var] = *both;
  narrow_ranges();
}

void Facts::bind_value(const Var* var, const Expr& e) {
  bind_residue(var, helve::residue_of(e, *this));
  bind(var, interval_of(e, *this));
}

void Facts::bind_loop(const VarRef& var, const Expr& begin, const Expr& extent) {
  HELVE_CHECK(var->dtype.is_index() && begin->dtype.is_index() && extent->dtype.is_index(),
              "a loop runs over index values");
  const Sum self = sum_of(Expr(var));
  const Sum first = sum_of(simplify(begin, *this)), count = sum_of(simplify(extent, *this));
  learn_nonnegative(add(self, first, -1));
  std::optional<Sum> end = add(first, count);
  if (end) end = add(*end, self, -1);
  if (end) learn_nonnegative(add_constant(*end, -1));
  learn_nonnegative(add_constant(count, -1));
  narrow_ranges();
}

bool Facts::assume(const Expr& condition) {
  HELVE_CHECK(condition->dtype.is_bool(), "a fact is a condition");
  const Expr normal = simplify(condition, *this);
  if (const int64_t* value = int_value(normal)) {
    contradictory_ |= *value == 0;
    return *value == 0;
  }
  assume_normal(normal);
  return true;
}

void Facts::assume_normal(const Expr& condition, bool value) {
  learn(condition, value);
  narrow_ranges();
}

void Facts::learn(const Expr& condition, bool value) {
  const Apply* node = as<Apply>(condition);
  if (node && node->op == Op::Not) return learn(node->args[0], !value);
  truths_.append({condition, value, truth_hash(condition)});
  if (!node) return;
  if (node->op == (value ? Op::And : Op::Or)) {
    learn(node->args[0], value);
    learn(node->args[1], value);
    return;
  }
  if (row_of(node->op).rule != OpRule::Compare || !node->args[0]->dtype.is_index()) return;
  const Sum a = sum_of(node->args[0]), b = sum_of(node->args[1]);
  const std::optional<Sum> above = add(a, b, -1), below = add(b, a, -1);
  auto strictly = [](const std::optional<Sum>& sum) { return sum ? add_constant(*sum, -1) : sum; };
  switch (node->op) {
    case Op::Lt: return learn_nonnegative(value ? strictly(below) : above);
    case Op::Le: return learn_nonnegative(value ? below : strictly(above));
    case Op::Gt: return learn_nonnegative(value ? strictly(above) : below);
    case Op::Ge: return learn_nonnegative(value ? above : strictly(below));
    case Op::Eq:
    case Op::Ne:
      if (value != (node->op == Op::Eq)) return;
      if (above) learn_congruence(*above, 0);
      learn_nonnegative(below);
      return learn_nonnegative(above);
    default: return;
  }
}

void Facts::learn_nonnegative(std::optional<Sum> sum) {
  if (!sum) return;
  if (sum->is_constant()) {
    contradictory_ |= sum->constant < 0;
    return;
  }
  Inequality added(tightened(*sum));
  if (!add_inequality(added)) return;
  narrow_by(*added.sum);
  // k*min(a, b) + rest >= 0 says the same of a and of b (k > 0); so does a maximum with k < 0.
  for (const Term& term : sum->terms) {
    const Apply* node = term.factors.size() == 1 ? as<Apply>(term.factors[0]) : nullptr;
    if (!node || node->op != (term.coefficient > 0 ? Op::Min : Op::Max)) continue;
    const std::optional<Sum> rest = add(*sum, Sum{{term}, 0}, -1);
    for (size_t i = 0; rest && i < 2; ++i) learn_nonnegative(add(*rest, sum_of(node->args[i]), term.coefficient));
    return;
  }
}

bool Facts::add_inequality(Inequality added) {
  for (size_t i = 0; i < inequalities_.size(); ++i) {
    const Inequality& known = inequalities_[i];
    if (known.form != added.form || !same_terms(*known.sum, *added.sum)) continue;
    if (known.sum->constant <= added.sum->constant) return false;
    inequalities_.replace(i, std::move(added));
    return true;
  }
  inequalities_.append(std::move(added));
  return true;
}

/// k*v + rest = 0 modulo m places v in a residue, and so does (k*v + rest) % c = r for every part of the sum that is
/// known.
void Facts::learn_congruence(const Sum& sum, int64_t modulus) {
  for (size_t i = 0; i < sum.terms.size(); ++i) {
    const Term& term = sum.terms[i];
    if (term.factors.size() != 1 || !term.factors[0]->dtype.is_index()) continue;
    Sum rest = sum;
    rest.terms.erase(rest.terms.begin() + static_cast<std::ptrdiff_t>(i));
    const Residue product = Residue::of(modulus, 0) + -helve::residue_of(rest, *this);
    const std::optional<Residue> value = divided(product, term.coefficient);
    if (!value) {
      contradictory_ = true;
      return;
    }
    if (const Var* var = as<Var>(term.factors[0])) {
      bind_residue(var, *value);
      continue;
    }
    const Apply* inner = as_op(term.factors[0], Op::FloorMod);
    const int64_t* divisor = inner ? int_value(inner->args[1]) : nullptr;
    if (!divisor || *divisor <= 0) continue;
    // x % c lies in the residue, so x does modulo the divisor that both share.
    const int64_t shared = std::gcd(value->modulus, *divisor);
    if (shared <= 1) continue;
    const int64_t remainder = Residue::of(shared, value->remainder).remainder;
    if (auto known = add_constant(sum_of(inner->args[0]), -remainder)) learn_congruence(*known, shared);
  }
}

/// Until nothing changes, but not for ever: two inequalities may narrow each other's ranges one by one.
void Facts::narrow_ranges() {
  for (const auto& [var, residue] : residues_) narrow(var, tightened(range_of(var), residue));
  for (int round = 0; (low_changed_ | high_changed_) && round < kNarrowingRounds; ++round) {
    const Bits low = std::exchange(low_changed_, 0), high = std::exchange(high_changed_, 0);
    for (const Inequality& known : inequalities_) {
      if ((known.reads_low & low) || (known.reads_high & high)) narrow_by(*known.sum);
    }
    for (const auto& [var, residue] : residues_) narrow(var, tightened(range_of(var), residue));
  }
}

bool Facts::narrow(const Var* var, const Interval& range) {
  Interval& known = ranges_[var];
  const Interval both = intersect(known, range);
  contradictory_ |= both.is_empty();
  if (known.low != both.low) low_changed_ |= bit_of(var);
  if (known.high != both.high) high_changed_ |= bit_of(var);
  return std::exchange(known, both) != both;
}

/// k*v + rest >= 0 bounds v by the greatest value of rest.
void Facts::narrow_by(const Sum& sum) {
  std::vector<Interval> values;
  for (const Term& term : sum.terms) values.push_back(interval_of(term, *this));
  for (size_t i = 0; i < sum.terms.size(); ++i) {
    const Term& term = sum.terms[i];
    const Var* var = term.factors.size() == 1 ? as<Var>(term.factors[0]) : nullptr;
    if (!var || term.coefficient == kInt64Min) continue;
    Interval others = Interval::point(sum.constant);
    for (size_t k = 0; k < values.size(); ++k) {
      if (k != i) others = others + values[k];
    }
    if (!others.high) continue;
    const Interval least = floor_div(Interval::point(*others.high), Interval::point(std::abs(term.coefficient)));
    if (narrow(var, term.coefficient > 0 ? Interval{(-least).low, {}} : Interval{{}, least.high}))
      values[i] = interval_of(term, *this);
  }
}

std::optional<bool> Facts::known(const Expr& condition) const {
  if (truths_.empty()) return std::nullopt;
  const uint64_t hash = truth_hash(condition);
  const Apply* equation = as_equation(condition);
  for (const Truth& truth : truths_) {
    if (truth.hash != hash) continue;
    if (same_expr(truth.condition, condition)) return truth.value;
    const Apply* other = equation ? as_equation(truth.condition) : nullptr;
    if (other && other->op != equation->op && same_expr(other->args[0], equation->args[0]) &&
        same_expr(other->args[1], equation->args[1]))
      return !truth.value;
  }
  return std::nullopt;
}

}  // namespace helve
