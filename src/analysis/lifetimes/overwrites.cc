// Statements that write all of a buffer.
// The elements that its stores and copies write are one set over the loops around them, which isl compares with the
// shape. Where an access is made, or which one it is, may hang on memory or on a value that changes: then what it
// writes is unknown, and does not count.
#include "overwrites.h"

#include <unordered_set>

#include "helve/analysis/access.h"
#include "helve/ir/expr/build.h"
#include "helve/ir/tensor/visit.h"

namespace helve::lifetimes {

namespace {

Expr between(const Expr& e, const Expr& begin, const Expr& extent) {
  return logical_and(apply(Op::Le, {begin, e}), less(e, begin + extent));
}

void both(Expr& all, const Expr& one) { all = all ? logical_and(all, one) : one; }

/// The elements that accesses write.
class Written {
 public:
  explicit Written(const Buffer& buffer) : shape_(buffer.shape) {
    for (size_t d = 0; d < buffer.rank(); ++d) element_.push_back(make_var("e"));
  }

  void add(const Access& access) {
    if (access.tiles) return;
    Expr here;
    for (const StepRef& step : access.path) {
      if (step->condition) both(here, step->condition);
      if (step->value) both(here, apply(Op::Eq, {step->vars.at(0), step->value}));
      const bool may_not_run = step->vars.empty() && !step->condition;
      const bool changes = !step->vars.empty() && step->begins.empty() && !step->value;
      if (may_not_run) return;
      if (changes) unknown_.insert(step->vars.at(0).get());
      if (!changes) locals_.insert(locals_.end(), step->vars.begin(), step->vars.end());
      for (size_t d = 0; d < step->begins.size(); ++d) {
        both(here, between(step->vars[d], step->begins[d], step->extents[d]));
      }
    }
    for (size_t d = 0; d < element_.size(); ++d) {
      both(here, between(element_[d], access.ranges[d].begin, access.ranges[d].extent));
    }
    if (!has_load(here) && !uses_unknown(here)) some_ = some_ ? apply(Op::Or, {some_, here}) : here;
  }

  bool cover(const ExactEngine& engine) const {
    if (!some_) return false;
    Expr inside;
    for (size_t d = 0; d < element_.size(); ++d) both(inside, between(element_[d], int_imm(0), shape_[d]));
    const IntegerSet written(engine, element_, some_, locals_);
    return written.inexact().empty() &&
           IntegerSet(engine, element_, inside).is_subset_of(written).verdict == Verdict::Proved;
  }

 private:
  bool uses_unknown(const Expr& e) const {
    bool uses = false;
    walk(e, [&](const Expr& part) {
      const Var* var = as<Var>(part);
      uses |= var && unknown_.contains(var);
    });
    return uses;
  }

  const std::vector<Expr>& shape_;
  std::vector<VarRef> element_;
  std::vector<VarRef> locals_;
  std::unordered_set<const Var*> unknown_;
  Expr some_;  ///< the element is written
};

}  // namespace

bool overwrites(const Stmt& s, const Buffer& buffer, const ExactEngine& engine) {
  if (buffer.rank() == 0) return false;
  const AccessModel model = access_model(s);
  Written written(buffer);
  for (const Access& access : model.accesses) {
    if (access.buffer.get() != &buffer) continue;
    if (!access.write || access.mode != StoreMode::Write) return false;
    written.add(access);
  }
  return written.cover(engine);
}

}  // namespace helve::lifetimes
