// The order of elements, by the differences of their subscripts where these are known.
// Limits of an element keep its order: max(A[i], 0) <= max(A[k], 0) where A[i] <= A[k]. Elements at constant distances
// are a family. Two families lie one before the other, or at one place, or one behind the other, and each of the three
// orders all their elements: one condition of three cases instead of one of two cases for each two elements.
#include "order.h"

#include <fmt/format.h>

#include <algorithm>

#include "helve/arith/simplify.h"
#include "helve/arith/sum.h"
#include "helve/ir/expr/build.h"
#include "helve/ir/expr/visit.h"

namespace helve::proofs {

namespace {

constexpr size_t kFamilies = 4;  // more make too many cases

/// An element of a sorted parameter, converted, and limited from below or above by values that every call has one of.
struct Element {
  const Load* load;
  std::vector<std::pair<Op, Expr>> limits;  ///< inner first
};

/// Has each integer of the one type the same value in the other?
bool holds_all(DType wide, DType narrow) {
  if (!narrow.is_data_int()) return false;
  if (wide.is_index()) return true;
  if (!wide.is_data_int()) return false;
  const bool is_signed = wide.code == TypeCode::Int;
  return wide.code == narrow.code ? wide.bits >= narrow.bits : is_signed && wide.bits > narrow.bits;
}

std::optional<Element> element_of(const Expr& e) {
  if (const Cast* cast = as<Cast>(e)) {
    return holds_all(e->dtype, cast->value->dtype) ? element_of(cast->value) : std::nullopt;
  }
  if (const Load* load = as<Load>(e)) {
    return buffer_of(load->buffer).sorted ? std::optional<Element>({load, {}}) : std::nullopt;
  }
  const Apply* node = as<Apply>(e);
  if (!node || (node->op != Op::Max && node->op != Op::Min) || !int_value(node->args[1])) return std::nullopt;
  std::optional<Element> out = element_of(node->args[0]);
  if (out) out->limits.emplace_back(node->op, node->args[1]);
  return out;
}

/// Do greater elements have greater values?
bool alike(const Element& a, const Element& b) {
  return std::equal(a.limits.begin(), a.limits.end(), b.limits.begin(), b.limits.end(),
                    [](const auto& x, const auto& y) { return x.first == y.first && same_expr(x.second, y.second); });
}

/// Elements [base + distance] of one buffer.
struct Family {
  struct Member {
    int64_t distance;
    Expr value;
    Element element;
  };
  const Storage* buffer;
  Expr base;
  std::vector<Member> members;
};

void add(std::vector<Family>& families, const Expr& value, const Element& element) {
  const Expr& at = element.load->indices[0];
  for (Family& family : families) {
    if (family.buffer != element.load->buffer.get()) continue;
    const Expr apart = simplify(at - family.base);
    const int64_t* distance = int_value(apart);
    if (!distance) continue;
    const bool known = std::any_of(family.members.begin(), family.members.end(),
                                   [&](const Family::Member& each) { return same_expr(each.value, value); });
    if (!known) family.members.push_back({*distance, value, element});
    return;
  }
  families.push_back({element.load->buffer.get(), at, {{0, value, element}}});
}

Expr at_most(const Expr& a, const Expr& b) { return apply(Op::Le, {a, b}); }

Expr order_of(const Family& a, const Family& b) {
  Expr before = less(a.base, b.base), same = apply(Op::Eq, {a.base, b.base}), behind = less(b.base, a.base);
  for (const Family::Member& x : a.members) {
    for (const Family::Member& y : b.members) {
      if (!alike(x.element, y.element)) continue;
      const int64_t i = x.distance, k = y.distance;
      if (i <= k + 1) before = logical_and(before, at_most(x.value, y.value));
      if (i <= k) same = logical_and(same, at_most(x.value, y.value));
      if (k <= i) same = logical_and(same, at_most(y.value, x.value));
      if (k <= i + 1) behind = logical_and(behind, at_most(y.value, x.value));
    }
  }
  return apply(Op::Or, {apply(Op::Or, {before, same}), behind});
}

}  // namespace

std::vector<Expr> order_among(const std::vector<Expr>& conditions, const std::unordered_set<const Storage*>& constant) {
  std::vector<Family> families;
  for (const Expr& each : conditions) {
    walk(each, [&](const Expr& part) {
      if (!part->dtype.is_index() || changes(part, constant)) return;
      if (const std::optional<Element> element = element_of(part)) add(families, part, *element);
    });
  }
  std::vector<Expr> out;
  for (const Family& family : families) {
    for (const Family::Member& x : family.members) {
      for (const Family::Member& y : family.members) {
        if (x.distance < y.distance && alike(x.element, y.element)) out.push_back(at_most(x.value, y.value));
      }
    }
  }
  for (size_t i = 0; i < families.size(); ++i) {
    for (size_t k = i + 1; k < families.size() && families.size() <= kFamilies; ++k) {
      if (families[i].buffer == families[k].buffer) out.push_back(order_of(families[i], families[k]));
    }
  }
  return out;
}

std::vector<VarRef> loosen_limits(std::vector<Expr>& conditions) {
  std::vector<std::pair<Expr, VarRef>> known;
  std::vector<Expr> bounds;
  const auto loose = [&](const Expr& e) {
    const std::optional<Element> element = e->kind == ExprKind::Apply ? element_of(e) : std::nullopt;
    if (!element) return e;
    for (const auto& [value, var] : known) {
      if (same_expr(value, e)) return Expr(var);
    }
    const VarRef var = make_var("limited");
    for (const Expr& arg : as<Apply>(e)->args) {
      const bool above = as<Apply>(e)->op == Op::Max;
      bounds.push_back(above ? at_most(arg, Expr(var)) : at_most(Expr(var), arg));
    }
    known.emplace_back(e, var);
    return Expr(var);
  };
  for (Expr& each : conditions) each = rewrite(each, loose);
  conditions.insert(conditions.end(), bounds.begin(), bounds.end());
  std::vector<VarRef> out;
  for (const auto& [value, var] : known) out.push_back(var);
  return out;
}

std::vector<Proof> prove_order(const AccessModel& model) {
  std::vector<Proof> out;
  for (const Access& access : model.accesses) {
    if (!access.write || !access.buffer->sorted) continue;
    Proof proof;
    proof.kind = ProofKind::Call;
    proof.span = access.span;
    proof.question = fmt::format("'{}' stays sorted", access.buffer->name);
    proof.verdict = ProofVerdict::Refuted;
    proof.fault = Diagnostic{Code::SortedIsWritten,
                             access.span,
                             {{"parameter", access.buffer->name}},
                             {{access.buffer->span, fmt::format("'{}' is declared here", access.buffer->name)}},
                             {}};
    out.push_back(std::move(proof));
    break;
  }
  return out;
}

}  // namespace helve::proofs
