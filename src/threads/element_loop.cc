// The nest of a loop over elements.
// Only loops whose bounds do not depend on each other form one nest: threads divide a rectangle.
#include "helve/threads/element_loop.h"

#include <algorithm>

#include "helve/ir/expr/build.h"
#include "helve/ir/expr/visit.h"
#include "helve/ir/tensor/tile_op.h"
#include "helve/ir/tensor/visit.h"

namespace helve {

namespace {

bool is_parallel(const Stmt& s) {
  const For* loop = as<For>(s);
  return loop && is_element_loop(*loop);
}

bool mentions_any(const Expr& e, const std::vector<VarRef>& vars) {
  return std::any_of(vars.begin(), vars.end(), [&](const VarRef& var) { return mentions(e, var.get()); });
}

/// The loops of a perfect nest, `loop` first, with bounds that do not depend on them.
std::vector<const For*> perfect_nest(const For& loop) {
  std::vector<const For*> nest = {&loop};
  std::vector<VarRef> vars = loop.vars;
  for (;;) {
    const For* inner = as<For>(nest.back()->body);
    if (!inner || !is_element_loop(*inner)) return nest;
    for (size_t d = 0; d < inner->vars.size(); ++d) {
      if (mentions_any(inner->begins[d], vars) || mentions_any(inner->extents[d], vars)) return nest;
    }
    nest.push_back(inner);
    vars.insert(vars.end(), inner->vars.begin(), inner->vars.end());
  }
}

}  // namespace

ElementLoop element_loop(const For& loop) {
  ElementLoop out;
  Substitution begins;
  const std::vector<const For*> nest = perfect_nest(loop);
  for (const For* level : nest) {
    for (size_t d = 0; d < level->vars.size(); ++d) {
      out.vars.push_back(level->vars[d]);
      out.extents.push_back(level->extents[d]);
      const int64_t* begin = int_value(level->begins[d]);
      if (!begin || *begin != 0) begins.emplace(level->vars[d].get(), level->begins[d] + Expr(level->vars[d]));
    }
  }
  const Stmt& body = nest.back()->body;
  out.body = begins.empty() ? body : substitute(body, begins);
  return out;
}

std::optional<std::vector<int>> element_dims(const ElementLoop& loop, const Buffer& buffer,
                                             const std::vector<Expr>& indices) {
  std::vector<int> dims;
  for (size_t k = 0; k < indices.size(); ++k) {
    const int64_t* extent = int_value(buffer.shape[k]);
    if (extent && *extent == 1) {
      dims.push_back(-1);
      continue;
    }
    const auto var =
        std::find_if(loop.vars.begin(), loop.vars.end(), [&](const VarRef& v) { return v.get() == indices[k].get(); });
    if (!extent || var == loop.vars.end()) return std::nullopt;
    const int dim = static_cast<int>(var - loop.vars.begin());
    const int64_t* bound = int_value(loop.extents[static_cast<size_t>(dim)]);
    if (!bound || *bound != *extent || std::find(dims.begin(), dims.end(), dim) != dims.end()) return std::nullopt;
    dims.push_back(dim);
  }
  return dims;
}

bool is_divided_inside(const For& loop) {
  bool found = false;
  walk(perfect_nest(loop).back()->body, [&](const Stmt& s) {
    const TileOp* op = as<TileOp>(s);
    found |= is_parallel(s) || (op && op->row().scope != OpScope::Iteration);
  });
  return found;
}

}  // namespace helve
