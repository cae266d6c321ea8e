// Boxes in coordinates that two accesses share.
// Whole tiles are compared by their numbers where both accesses are of tiles, else by their elements.
#include "same_element.h"

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

SameElement same_element(PathConditions& query, const Access& a, const Access& b, const Substitution& renamed,
                         bool absolute) {
  const bool elements = a.tiles != b.tiles;
  SameElement out;
  Expr& all = out.condition;
  auto need = [&](const Expr& condition) { all = all ? logical_and(all, condition) : condition; };
  std::vector<std::pair<Expr, Expr>> points;
  for (size_t d = 0; d < a.ranges.size(); ++d) {
    const Side x = side(a, d, elements, absolute, {}), y = side(b, d, elements, absolute, renamed);
    Expr place = x.point ? x.begin : y.point ? y.begin : Expr();
    if (x.point && y.point) points.emplace_back(x.begin, y.begin);
    if (!place) {
      const VarRef var = make_var("e");
      query.add_variable(var);
      place = Expr(var);
    }
    for (const Side* s : {&x, &y}) {
      if (s->point) {
        if (s->begin != place) need(apply(Op::Eq, {s->begin, place}));
        // The subscript depends on no variable of the iterations, but on memory that they change.
        if (changes(s->begin, query.model().constant)) query.doubt("a subscript reads memory that is written");
      } else {
        need(apply(Op::Le, {s->begin, place}));
        need(less(place, s->begin + s->extent));
      }
      if (s->end) need(less(place, s->end));
    }
    out.element.push_back(place);
  }
  for (const Expr& condition : digits_agree(a, b, renamed, points)) need(condition);
  if (!all) all = bool_imm(true);
  return out;
}

}  // namespace helve
