// The variables and conditions of two instances, and boxes in coordinates that both share.
// Whole tiles are compared by their numbers where both accesses are of tiles, else by their elements.
#include "helve/analysis/instance_pair.h"

#include "helve/analysis/mixed_radix.h"

namespace helve {

namespace {

/// A box in coordinates that both accesses of a pair share, with the end of the accessed part (null if it is inside).
struct Side {
  Expr begin;
  Expr extent;
  bool point;
  Expr end;
};

Side side(const Access& t, size_t d, bool elements, bool absolute, const Substitution& renamed) {
  Side s{t.ranges[d].begin, t.ranges[d].extent, t.ranges[d].point, {}};
  if (t.tiles && elements) {
    const Expr tile = int_imm(t.buffer->tile[d]);
    s = {s.begin * tile, tile, false, t.buffer->shape[d]};
  }
  if (t.may_pass_end) s.end = t.limits[d];
  if (t.placed && absolute) {
    s.begin = s.begin + t.block_begin[d];
    s.end = min(t.limits[d] + t.block_begin[d], t.buffer->shape[d]);
  }
  auto now = [&](const Expr& e) { return e && !renamed.empty() ? substitute(e, renamed) : e; };
  return {now(s.begin), now(s.extent), s.point, now(s.end)};
}

}  // namespace

void InstancePair::separate(const VarRef& var) {
  if (!renamed_.contains(var.get())) renamed_.emplace(var.get(), Expr(make_var(var->name, var->dtype, var->span)));
}

void InstancePair::separate(const Path& path, size_t from) {
  for (size_t i = from; i < path.size(); ++i) {
    for (const VarRef& var : path[i]->vars) separate(var);
  }
}

void InstancePair::runs(const Path& path, size_t from, Names names, const Substitution& renamed) {
  for (size_t i = from; i < path.size(); ++i) {
    const Step& step = *path[i];
    if (names == Names::Doubted || says_something(step) || step.vars.empty()) {
      query_.add(step, renamed);
      continue;
    }
    for (const VarRef& var : step.vars) {
      const auto now = renamed.find(var.get());
      open_names_.push_back(now == renamed.end() ? var : VarRef(as<Var>(now->second)));
      query_.add_variable(open_names_.back());
    }
  }
}

SameElement InstancePair::touch(const Access& a, const Access& b, bool absolute) {
  const bool elements = a.tiles != b.tiles;
  SameElement out;
  Expr& all = out.condition;
  auto need = [&](const Expr& condition) { all = all ? logical_and(all, condition) : condition; };
  std::vector<std::pair<Expr, Expr>> points;
  for (size_t d = 0; d < a.ranges.size(); ++d) {
    const Side x = side(a, d, elements, absolute, {}), y = side(b, d, elements, absolute, renamed_);
    // What memory holds that iterations change is another value in each of them, under one name.
    const auto known = [&](const Side& s) {
      return !changes(s.begin, query_.constant()) && !changes(s.extent, query_.constant());
    };
    const bool x_known = known(x), y_known = known(y);
    Expr place = x.point && x_known ? x.begin : y.point && y_known ? y.begin : Expr();
    if (x.point && y.point && x_known && y_known) points.emplace_back(x.begin, y.begin);
    if (!place) {
      const VarRef var = make_var("e");
      query_.add_variable(var);
      place = Expr(var);
    }
    for (const Side* s : {&x, &y}) {
      if (!(s == &x ? x_known : y_known)) {
        query_.doubt("a subscript reads memory that is written");
      } else if (s->point) {
        if (s->begin != place) need(apply(Op::Eq, {s->begin, place}));
      } else {
        need(apply(Op::Le, {s->begin, place}));
        need(less(place, s->begin + s->extent));
      }
      if (s->end) need(less(place, s->end));
    }
    out.element.push_back(place);
  }
  for (const Expr& condition : digits_agree(a, b, renamed_, points)) need(condition);
  if (!all) all = bool_imm(true);
  return out;
}

void InstancePair::touch(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  for (size_t d = 0; d < a.size(); ++d) {
    if (a[d] && b[d]) query_.require(apply(Op::Eq, {a[d], second(b[d])}));
  }
}

}  // namespace helve
