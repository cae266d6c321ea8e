// Statements that write all of a buffer.
// The elements that its stores and copies write are one set over the loops around them, which isl compares with the
// shape; conditions and bounds that read memory, and values that do, are unknown, so that nothing is said of them.
#include "overwrites.h"

#include <algorithm>

#include "helve/analysis/effects.h"
#include "helve/ir/expr/build.h"
#include "helve/ir/tensor/visit.h"

namespace helve::lifetimes {

namespace {

/// The elements that parts of a statement write.
class Written {
 public:
  explicit Written(const Buffer& buffer) : buffer_(buffer) {
    for (size_t d = 0; d < buffer.rank(); ++d) element_.push_back(make_var("e"));
  }

  void visit(const Stmt& s) {
    if (!s) return;
    if (const Store* n = as<Store>(s)) {
      if (n->buffer.get() == &buffer_) add(n->indices, std::vector<Expr>(n->indices.size(), int_imm(1)));
      return;
    }
    if (const TileOp* n = as<TileOp>(s)) return operation(*n);
    if (const For* n = as<For>(s)) return loop(*n);
    if (const If* n = as<If>(s)) {
      const size_t depth = conditions_.size();
      conditions_.push_back(now(n->condition));
      visit(n->then_body);
      conditions_.back() = apply(Op::Not, {conditions_.back()});
      visit(n->else_body);
      conditions_.resize(depth);
      return;
    }
    if (const Bind* n = as<Bind>(s)) {
      names_[n->var.get()] = now(n->value);
      return;
    }
    if (s->kind == StmtKind::Seq) {
      for_each_part(s, [](const Expr&) {}, [&](const Stmt& part) { visit(part); });
    }
  }

  bool cover(const ExactEngine& engine) const {
    if (!some_) return false;
    Expr inside;
    for (size_t d = 0; d < element_.size(); ++d) both(inside, between(element_[d], int_imm(0), buffer_.shape[d]));
    const std::vector<VarRef> tuple = element_;
    const IntegerSet written(engine, tuple, some_, locals_);
    if (!written.inexact().empty()) return false;
    return IntegerSet(engine, tuple, inside).is_subset_of(written).verdict == Verdict::Proved;
  }

 private:
  Expr now(const Expr& e) const { return substitute(e, names_); }
  static void both(Expr& all, const Expr& one) { all = all ? logical_and(all, one) : one; }
  static Expr between(const Expr& e, const Expr& begin, const Expr& extent) {
    return logical_and(apply(Op::Le, {begin, e}), less(e, begin + extent));
  }

  void loop(const For& n) {
    const size_t depth = conditions_.size();
    for (size_t d = 0; d < n.vars.size(); ++d) {
      locals_.push_back(n.vars[d]);
      conditions_.push_back(between(n.vars[d], now(n.begins[d]), now(n.extents[d])));
    }
    visit(n.body);
    conditions_.resize(depth);
  }

  void operation(const TileOp& n) {
    for (size_t i = 0; i < n.operands.size(); ++i) {
      if (!n.is_region(i) || n.region(i).buffer.get() != &buffer_ || !n.row().params[i].writes()) continue;
      std::vector<Expr> begins, extents;
      for (const Range& range : n.region(i).ranges) {
        begins.push_back(range.begin);
        extents.push_back(range.extent);
      }
      add(begins, extents);
    }
  }

  void add(const std::vector<Expr>& begins, const std::vector<Expr>& extents) {
    Expr here;
    for (const Expr& condition : conditions_) both(here, condition);
    for (size_t d = 0; d < begins.size(); ++d) both(here, between(element_[d], now(begins[d]), now(extents[d])));
    if (has_load(here)) return;
    some_ = some_ ? apply(Op::Or, {some_, here}) : here;
  }

  const Buffer& buffer_;
  std::vector<VarRef> element_;
  std::vector<VarRef> locals_;
  std::vector<Expr> conditions_;
  Substitution names_;
  Expr some_;  ///< the element is written
};

}  // namespace

bool overwrites(const Stmt& s, const Buffer& buffer, const ExactEngine& engine) {
  bool writes = false;
  for (const RegionAccess& access : accesses(s)) {
    if (access.region.buffer.get() != &buffer) continue;
    if (!access.write) return false;
    writes = true;
  }
  if (!writes || buffer.rank() == 0) return false;
  Written written(buffer);
  written.visit(s);
  return written.cover(engine);
}

}  // namespace helve::lifetimes
