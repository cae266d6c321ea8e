// Loop nests over the elements of a region.
// Blocks follow the tile of the buffer: coordinate = block * tile + element, which later passes simplify without
// division.
#include "element_nest.h"

namespace helve {

namespace {

constexpr const char* kBlockNames[] = {"ti", "tj", "tk", "tl"};
constexpr const char* kElementNames[] = {"i", "j", "k", "l"};

std::string dim_name(const char* const (&names)[4], size_t d) {
  return d < 4 ? names[d] : std::string(names[3]) + std::to_string(d);
}

}  // namespace

Stmt element_nest(const std::vector<NestDim>& dims, const std::function<Stmt(const std::vector<Expr>&)>& body) {
  struct Loop {
    VarRef var;
    Expr extent;
  };
  std::vector<Loop> loops;  // outermost first
  std::vector<Expr> coords;
  for (size_t d = 0; d < dims.size(); ++d) {
    VarRef element = make_var(dim_name(kElementNames, d));
    if (dims[d].block == 1) {
      loops.push_back({element, dims[d].extent});
      coords.push_back(Expr(element));
      continue;
    }
    const Expr block = int_imm(dims[d].block);
    VarRef outer = make_var(dim_name(kBlockNames, d));
    const Expr start = Expr(outer) * block;
    loops.push_back({outer, ceil_div(dims[d].extent, block)});
    loops.push_back({element, min(block, dims[d].extent - start)});
    coords.push_back(start + Expr(element));
  }
  Stmt nest = body(coords);
  for (auto it = loops.rbegin(); it != loops.rend(); ++it)
    nest = for_loop(LoopKind::Parallel, it->var, it->extent, nest);
  return nest;
}

std::vector<NestDim> nest_dims(const Region& region, const std::vector<Expr>& extents) {
  std::vector<NestDim> dims;
  for (size_t d = 0; d < region.ranges.size(); ++d) {
    if (region.ranges[d].point) continue;
    const int64_t* begin = int_value(region.ranges[d].begin);
    const int64_t tile = is_tiled(*region.buffer) ? region.buffer->tile[d] : 1;
    const bool at_edge = begin && *begin % tile == 0;
    dims.push_back({extents[dims.size()], at_edge ? tile : 1});
  }
  return dims;
}

}  // namespace helve
