// Does every instance of the old region run exactly once?
// What is not affine in the conditions of a path (a guard that reads memory, an extent that is a product) is a value of
// the old instance: it becomes an entry of the tuple, and the new path must have the same value there. A bijection for
// every such value is one for the true ones.
#include <fmt/format.h>

#include <algorithm>

#include "dimensions.h"
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
  InstancesOf(const Rewrite& rewrite, size_t was, KeptDimensions& kept)
      : rewrite_(rewrite),
        kept_(kept),
        was_(rewrite.before.statements[was]),
        any_number_(was_.pure || counts_by_value(rewrite, was_)) {
    old_.now = &was_;
    old_.was = was;
    const Translation translation = old_.translation(rewrite.before.model);
    for (const Expr& condition : rewrite.given) {
      const std::vector<Expr> inexact = inexact_parts(condition, translation);
      if (inexact.empty()) {
        given_.push_back(condition);
      } else {
        open_ = inexact[0];
      }
    }
    add_conditions(old_, rewrite.before.model, was_);
    for (const Copy& copy : rewrite.copies) {
      if (copy.was == was) copies_.push_back(&copy);
    }
  }

  Legality run() {
    Legality out;
    out.verdict = Verdict::Proved;
    abstract_old();
    if (parts_.empty() && all_dimensions_kept()) return out;
    const IntegerSet domain = set_of(rewrite_.before.model, old_);
    std::vector<IntegerRelation> runs;
    for (const Copy* copy : copies_) {
      std::vector<Expr> conditions, image;
      if (std::optional<std::string> reason = abstract_new(*copy, conditions, image)) {
        Legality unknown;
        unknown.reason = *reason;
        return unknown;
      }
      runs.push_back(relation_of(*copy, conditions, std::move(image)));
    }
    for (size_t i = 0; i < runs.size(); ++i) {
      const Answer inside = range_of(runs[i]).is_subset_of(domain);
      if (worsen(out, found(inside, RewriteFault::Added))) return out;
      if (any_number_) continue;
      const Answer once = runs[i].is_injective();
      if (worsen(out, of_copy(once, *copies_[i]))) return out;
      for (size_t k = i + 1; k < runs.size(); ++k) {
        const Answer apart = intersection_of(range_of(runs[i]), range_of(runs[k])).is_empty();
        if (worsen(out, found(apart, RewriteFault::Twice))) return out;
      }
    }
    if (!any_number_) worsen(out, all_run(domain, runs));
    return out;
  }

 private:
  void abstract_old() {
    const Translation translation = old_.translation(rewrite_.before.model);
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
      const bool covered =
          std::any_of(out.begin(), out.end(), [&](const Expr& part) { return var && mentions(part, var); });
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

  /// The conditions of a copy, and the old variables, over the values of the old parts; or the first part without one.
  std::optional<std::string> abstract_new(const Copy& copy, std::vector<Expr>& conditions,
                                          std::vector<Expr>& image) const {
    const Translation translation = copy.translation(rewrite_.after);
    Matcher matcher(rewrite_, copy);
    std::string reason;
    const auto abstract = [&](Expr e, const Step* step) {
      for (const Expr& part : parts_of(e, translation, rewrite_.after)) {
        bool elsewhere = false;
        const auto same = [&](const Part& old) {
          if (!matcher.same(old.expr, part)) return false;
          if (!old.step || (step && matcher.same_place(*old.step, *step))) return true;
          elsewhere = true;
          return false;
        };
        const auto known = std::find_if(parts_.begin(), parts_.end(), same);
        if (known != parts_.end()) {
          e = with(e, part, known->in_its_place);
        } else if (reason.empty()) {
          reason =
              elsewhere ? fmt::format("'{}' would be decided at another time", brief_text(part)) : not_affine(part);
        }
      }
      return e;
    };
    for (size_t c = 0; c < copy.conditions.size(); ++c) {
      conditions.push_back(abstract(copy.conditions[c], copy.steps[c]));
    }
    for (const VarRef& var : was_.vars) image.push_back(abstract(copy.values.at(var.get()), nullptr));
    if (reason.empty()) return std::nullopt;
    return reason;
  }
  static std::string not_affine(const Expr& part) { return fmt::format("'{}' is not affine", brief_text(part)); }

  /// Has each dimension by itself all of its instances once? Those in which the copies differ are one.
  bool all_dimensions_kept() const {
    if (copies_.empty() || !old_.locals.empty()) return false;
    std::vector<std::vector<Dimension>> all;
    for (const Copy* copy : copies_) {
      if (!copy->locals.empty()) return false;
      all.push_back(dimensions_of(was_, old_.conditions, *copy));
    }
    const std::vector<Dimension> shared = take_common(all);
    const auto kept = [&](const Dimension& each) {
      if (!any_number_ && kept_.contains(each)) return true;
      if (!are_kept({each})) return false;
      if (!any_number_) kept_.add(each);
      return true;
    };
    if (!std::all_of(shared.begin(), shared.end(), kept)) return false;
    if (copies_.size() == 1) return true;
    std::vector<Dimension> others;
    for (const std::vector<Dimension>& each : all) others.push_back(joined(was_, each));
    return are_kept(others);
  }

  /// Do the copies, of each of which that is one dimension, have all instances of it once?
  bool are_kept(const std::vector<Dimension>& parts) const {
    const Dimension& first = parts[0];
    const auto is_same = [](const VarRef& var, const Expr& value) { return value == Expr(var); };
    if (parts.size() == 1 && first.old_vars == first.new_vars && all_same(first.old_conditions, first.new_conditions) &&
        std::equal(first.old_vars.begin(), first.old_vars.end(), first.image.begin(), is_same)) {
      return true;
    }
    const ExactEngine& engine = rewrite_.before.engine;
    const auto proved = [](const Answer& answer) { return answer.verdict == Verdict::Proved; };
    const IntegerSet domain(engine, first.old_vars, under(first.old_conditions), {},
                            old_.translation(rewrite_.before.model));
    std::vector<IntegerSet> now;
    for (size_t i = 0; i < parts.size(); ++i) {
      const Dimension& d = parts[i];
      const IntegerRelation runs(engine, d.new_vars, d.image, under(d.new_conditions), {},
                                 copies_[i]->translation(rewrite_.after));
      now.push_back(range_of(runs));
      if (!proved(now[i].is_subset_of(domain))) return false;
      if (any_number_) continue;
      if (!proved(runs.is_injective())) return false;
      for (size_t k = 0; k < i; ++k) {
        if (!proved(intersection_of(now[k], now[i]).emptiness())) return false;
      }
    }
    if (any_number_) return true;
    IntegerSet all = now[0];
    for (size_t i = 1; i < now.size(); ++i) all = union_of(all, now[i]);
    return proved(domain.is_subset_of(all));
  }

  std::vector<VarRef> with_values(std::vector<VarRef> tuple) const {
    for (const Part& part : parts_) tuple.push_back(part.value);
    return tuple;
  }
  Expr under(const std::vector<Expr>& conditions) const {
    std::vector<Expr> all = given_;
    all.insert(all.end(), conditions.begin(), conditions.end());
    return conjunction(all);
  }

  IntegerSet set_of(const AccessModel& model, const Copy& of) const {
    return IntegerSet(rewrite_.before.engine, with_values(of.now->vars), under(of.conditions), of.locals,
                      of.translation(model));
  }
  IntegerRelation relation_of(const Copy& copy, const std::vector<Expr>& conditions, std::vector<Expr> image) const {
    for (const Part& part : parts_) image.emplace_back(part.value);
    return IntegerRelation(rewrite_.before.engine, with_values(copy.now->vars), image, under(conditions), copy.locals,
                           copy.translation(rewrite_.after));
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

  /// A counterexample with values of parts, or where what holds around is not all said, need not be one that occurs.
  Legality verdict_of(const Answer& answer) const {
    Legality out;
    out.verdict = answer.verdict;
    out.reason = answer.reason;
    if (answer.verdict == Verdict::Refuted && (open_ || !parts_.empty())) {
      out.verdict = Verdict::Unknown;
      out.reason = not_affine(open_ ? open_ : parts_[0].expr);
    }
    return out;
  }

  Legality found(const Answer& answer, RewriteFault fault) const {
    Legality out = verdict_of(answer);
    if (out.verdict != Verdict::Refuted) return out;
    out.fault = fault;
    Instance at{was_.stmt, {}, {}};
    // The tuple of an image has variables of its own, in the order of the old ones.
    const size_t params = answer.witness.size() - was_.vars.size();
    for (size_t i = 0; i < answer.witness.size(); ++i) {
      if (i < params) {
        out.given.push_back(answer.witness[i]);
      } else {
        at.at.emplace_back(was_.vars[i - params], answer.witness[i].second);
      }
    }
    out.first = at;
    return out;
  }

  Legality of_copy(const Answer& answer, const Copy& copy) const {
    Legality out = verdict_of(answer);
    if (out.verdict != Verdict::Refuted) return out;
    out.fault = RewriteFault::Twice;
    out.first = instance_at(rewrite_, copy, answer.witness);
    const size_t params = answer.witness.size() - copy.now->vars.size();
    out.given.assign(answer.witness.begin(), answer.witness.begin() + static_cast<int64_t>(params));
    return out;
  }

  const Rewrite& rewrite_;
  KeptDimensions& kept_;
  const RegionStatement& was_;
  const bool any_number_;  ///< may an instance run twice, or not at all?
  Copy old_;
  std::vector<const Copy*> copies_;
  std::vector<Part> parts_;
  /// What holds around the region, as far as it is affine: a bijection without the rest is one with it. And what is
  /// not.
  std::vector<Expr> given_;
  Expr open_;
};

}  // namespace

Legality check_instances(const Rewrite& rewrite) {
  Legality out;
  out.verdict = Verdict::Proved;
  KeptDimensions kept;
  for (size_t was = 0; was < rewrite.before.statements.size(); ++was) {
    if (worsen(out, InstancesOf(rewrite, was, kept).run())) break;
  }
  return out;
}

}  // namespace helve::legality
