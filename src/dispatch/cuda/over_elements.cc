// A loop over all elements of a shape.
// A shape without dimensions has one element.
#include "over_elements.h"

namespace helve {

namespace {

constexpr const char* kNames[] = {"i", "j", "k", "l"};

}  // namespace

Stmt over_elements(const std::vector<Expr>& extents, const Facts& facts,
                   const std::function<Stmt(const std::vector<Expr>&, const Facts&)>& body) {
  std::vector<VarRef> vars;
  std::vector<Expr> coords;
  Facts inside = facts;
  for (size_t d = 0; d < extents.size(); ++d) {
    vars.push_back(make_var(kNames[std::min<size_t>(d, 3)]));
    coords.push_back(Expr(vars.back()));
    inside.bind_loop(vars.back(), int_imm(0), extents[d]);
  }
  Stmt s = body(coords, inside);
  if (vars.empty()) {
    vars.push_back(make_var("i"));
    return for_loop(LoopKind::Parallel, vars, {int_imm(0)}, {int_imm(1)}, s);
  }
  return for_loop(LoopKind::Parallel, vars, std::vector<Expr>(extents.size(), int_imm(0)), extents, s);
}

}  // namespace helve
