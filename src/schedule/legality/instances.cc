// Does every instance of the old region run exactly once?
// What is not affine in the conditions of a path (a guard that reads memory, an extent that is a product) is a value of
// the old instance: it becomes an entry of the tuple, and the new path must have the same value there. A bijection for
// every such value is one for the true ones.
#include <fmt/format.h>

#include <algorithm>

#include "helve/arith/relation_algebra.h"
#include "helve/ir/expr/chain.h"
#include "helve/ir/expr/text.h"
#include "matcher.h"
#include "rewrite.h"

namespace helve::legality {

namespace {

/// A part of the conditions that is not affine, and the variable that stands for its value.
struct Part {
  Expr expr;
  const Step* step;  ///< whose condition it is of; null: the value is the same everywhere
  VarRef value;
  Expr in_its_place;
};

class InstancesOf {
 public:
  InstancesOf(const Rewrite& rewrite, size_t was) : rewrite_(rewrite), was_(rewrite.before.statements[was]) {
    old_.now = &was_;
    old_.was = was;
    add_conditions(old_, rewrite.before.model, was_);
    for (const Copy& copy : rewrite.copies) {
      if (copy.was == was) copies_.push_back(&copy);
    }
  }

  Legality run() {
    Legality out;
    out.verdict = Verdict::Proved;
    abstract_old();
    const IntegerSet domain = set_of(rewrite_.before.model, old_);
    std::vector<IntegerRelation> runs;
    for (const Copy* copy : copies_) {
      std::vector<Expr> conditions;
      if (std::optional<std::string> reason = abstract_new(*copy, conditions)) {
        Legality unknown;
        unknown.reason = *reason;
        return unknown;
      }
      runs.push_back(relation_of(*copy, conditions));
    }
    for (size_t i = 0; i < runs.size(); ++i) {
      const Answer inside = range_of(runs[i]).is_subset_of(domain);
      if (worsen(out, found(inside, RewriteFault::Added))) return out;
      if (was_.pure) continue;
      const Answer once = runs[i].is_injective();
      if (worsen(out, of_copy(once, *copies_[i]))) return out;
      for (size_t k = i + 1; k < runs.size(); ++k) {
        const Answer apart = intersection_of(range_of(runs[i]), range_of(runs[k])).is_empty();
        if (worsen(out, found(apart, RewriteFault::Twice))) return out;
      }
    }
    if (!was_.pure) worsen(out, all_run(domain, runs));
    return out;
  }

 private:
  void abstract_old() {
    const Translation translation{&old_.facts, &rewrite_.before.model.constant};
    for (size_t c = 0; c < old_.conditions.size(); ++c) {
      for (const Expr& part : parts_of(old_.conditions[c], translation, rewrite_.before.model)) {
        const AccessModel& model = rewrite_.before.model;
        const bool fixed = !changes(part, model.constant) && !model.names_stay(part);
        const Step* step = fixed ? nullptr : old_.steps[c];
        const auto same = [&](const Part& known) { return known.step == step && same_expr(known.expr, part); };
        auto known = std::find_if(parts_.begin(), parts_.end(), same);
        if (known == parts_.end()) {
          const VarRef value = make_var("value");
          const Expr place = part->dtype.is_bool() ? apply(Op::Le, {int_imm(1), Expr(value)}) : Expr(value);
          known = parts_.insert(parts_.end(), {part, step, value, place});
        }
        old_.conditions[c] = with(old_.conditions[c], part, known->in_its_place);
      }
    }
  }

  /// The largest parts that are no affine functions of the loop variables; names of unknown values are parts as well.
  static std::vector<Expr> parts_of(const Expr& e, const Translation& translation, const AccessModel& model) {
    std::vector<Expr> out = inexact_parts(e, translation);
    if (!model.names_stay(e)) return out;
    walk(e, [&](const Expr& node) {
      const Var* var = as<Var>(node);
      const bool covered = std::any_of(out.begin(), out.end(), [&](const Expr& part) { return var && mentions(part, var); });
      if (var && model.names.contains(var) && !covered) out.push_back(node);
    });
    return out;
  }

  /// `e` with `value` in the place of `part`.
  static Expr with(const Expr& e, const Expr& part, const Expr& value) {
    Memo<Expr> known;
    const auto replace = [&](auto&& self, const Expr& node) -> Expr {
      if (same_expr(node, part)) return value;
      return known.of(node, [&] { return map_children(node, [&](const Expr& child) { return self(self, child); }); });
    };
    return replace(replace, e);
  }

  /// The conditions of a copy over the values of the old parts; or what has none.
  std::optional<std::string> abstract_new(const Copy& copy, std::vector<Expr>& out) const {
    const Translation translation{&copy.facts, &rewrite_.after.constant};
    Matcher matcher(rewrite_, copy);
    for (size_t c = 0; c < copy.conditions.size(); ++c) {
      Expr condition = copy.conditions[c];
      for (const Expr& part : parts_of(condition, translation, rewrite_.after)) {
        const auto same = [&](const Part& old) {
          return matcher.same(old.expr, part) && (!old.step || matcher.same_place(*old.step, *copy.steps[c]));
        };
        const auto known = std::find_if(parts_.begin(), parts_.end(), same);
        if (known == parts_.end()) return fmt::format("'{}' is not affine", brief_text(part));
        condition = with(condition, part, known->in_its_place);
      }
      out.push_back(std::move(condition));
    }
    return std::nullopt;
  }

  std::vector<VarRef> with_values(std::vector<VarRef> tuple) const {
    for (const Part& part : parts_) tuple.push_back(part.value);
    return tuple;
  }
  Expr under(const std::vector<Expr>& conditions) const {
    std::vector<Expr> all = rewrite_.given;
    all.insert(all.end(), conditions.begin(), conditions.end());
    return conjunction(all);
  }

  IntegerSet set_of(const AccessModel& model, const Copy& of) const {
    return IntegerSet(rewrite_.before.engine, with_values(of.now->vars), under(of.conditions), of.locals,
                      Translation{&of.facts, &model.constant});
  }
  IntegerRelation relation_of(const Copy& copy, const std::vector<Expr>& conditions) const {
    std::vector<Expr> image;
    for (const VarRef& var : was_.vars) image.push_back(copy.values.at(var.get()));
    for (const Part& part : parts_) image.emplace_back(part.value);
    return IntegerRelation(rewrite_.before.engine, with_values(copy.now->vars), image, under(conditions),
                           copy.locals, Translation{&copy.facts, &rewrite_.after.constant});
  }

  Legality all_run(const IntegerSet& domain, const std::vector<IntegerRelation>& runs) const {
    if (runs.empty()) {
      Answer none = domain.is_empty();
      return found(none, RewriteFault::Lost);
    }
    IntegerSet all = range_of(runs[0]);
    for (size_t i = 1; i < runs.size(); ++i) all = union_of(all, range_of(runs[i]));
    return found(domain.is_subset_of(all), RewriteFault::Lost);
  }

  Legality found(const Answer& answer, RewriteFault fault) const {
    Legality out;
    out.verdict = answer.verdict;
    out.reason = answer.reason;
    if (answer.verdict != Verdict::Refuted) return out;
    out.fault = fault;
    Instance at{was_.stmt, {}, {}};
    // The tuple of an image has variables of its own, in the order of the old ones.
    const size_t params = answer.witness.size() - was_.vars.size() - parts_.size();
    for (size_t i = 0; i < answer.witness.size(); ++i) {
      if (i < params) {
        out.given.push_back(answer.witness[i]);
      } else if (i < params + was_.vars.size()) {
        at.at.emplace_back(was_.vars[i - params], answer.witness[i].second);
      }
    }
    out.first = at;
    return out;
  }

  Legality of_copy(const Answer& answer, const Copy& copy) const {
    Legality out;
    out.verdict = answer.verdict;
    out.reason = answer.reason;
    if (answer.verdict != Verdict::Refuted) return out;
    out.fault = RewriteFault::Twice;
    out.first = instance_at(rewrite_, copy, answer.witness);
    const size_t params = answer.witness.size() - copy.now->vars.size() - parts_.size();
    out.given.assign(answer.witness.begin(), answer.witness.begin() + static_cast<int64_t>(params));
    return out;
  }

  const Rewrite& rewrite_;
  const RegionStatement& was_;
  Copy old_;
  std::vector<const Copy*> copies_;
  std::vector<Part> parts_;
};

}  // namespace

Legality check_instances(const Rewrite& rewrite) {
  Legality out;
  out.verdict = Verdict::Proved;
  for (size_t was = 0; was < rewrite.before.statements.size(); ++was) {
    if (worsen(out, InstancesOf(rewrite, was).run())) break;
  }
  return out;
}

}  // namespace helve::legality
