// Persistent and Pipelined loops become serial loops of one block.
// Input: any function whose kernels hold no collectives. Output: no Persistent or Pipelined loops.
// Before:  for i in T.Persistent([n])          (grid of G blocks, this block is b)
// After:   for t in T.serial((max(0, n - b) + G - 1) // G): i = b + t * G
// A last dimension of as many iterations as a cluster has blocks is the place in it: the blocks of a cluster make the
// same turns.
// In a mesh function a core runs its whole domain, so the loop is simply serial, unless the core has blocks of its own,
// which take turns as those of a grid do. The set of iterations, and the order
// of those that one block runs, are unchanged; an empty domain or grid has none.
#include <algorithm>

#include "deal.h"
#include "helve/ir/tensor/core_blocks.h"
#include "helve/ir/tensor/region.h"
#include "helve/ir/tensor/visit.h"
#include "helve/transform/passes.h"

namespace helve {

namespace {

/// The row-major number of the executing block, from the dimension `first` on, and the number of blocks.
std::pair<Expr, Expr> block_number(const Kernel& kernel, size_t first) {
  Expr number = int_imm(0);
  Expr count = int_imm(1);
  for (size_t d = first; d < kernel.vars.size(); ++d) {
    number = number * kernel.extents[d] + Expr(kernel.vars[d]);
    count = count * kernel.extents[d];
  }
  return {number, count};
}

/// An extent as a number of values: 0 if it is negative.
Expr count_of(const Expr& extent) {
  return int_value(extent) ? int_imm(std::max<int64_t>(0, *int_value(extent))) : max(int_imm(0), extent);
}

/// The iterations of a domain that one block runs, round-robin over the dimensions of the grid from `first` on.
Stmt dealt(const For& loop, const Kernel& kernel, size_t first) {
  for (const std::vector<Expr>* extents : {&loop.extents, &kernel.extents}) {
    for (const Expr& e : *extents) {
      const int64_t* extent = int_value(e);
      if (extent && *extent <= 0) return seq({}, loop.span);  // before the division by it
    }
  }
  auto [number, count] = block_number(kernel, first);
  std::vector<Expr> dealt = loop.extents, values;
  if (is_of_clusters(loop, &kernel)) {
    const Expr blocks = dealt.back();
    values.push_back(floor_mod(number, blocks));
    number = floor_div(number, blocks);
    count = floor_div(count, blocks);
    dealt.pop_back();
  }
  Expr total = int_imm(1);
  for (const Expr& e : dealt) total = total * count_of(e);
  VarRef turn = make_var("turn");
  Expr linear = number + Expr(turn) * count;
  std::vector<Stmt> body;
  const std::vector<Expr> places = unravel(linear, dealt);
  values.insert(values.begin(), places.begin(), places.end());
  for (size_t d = 0; d < loop.vars.size(); ++d) body.push_back(bind(loop.vars[d], loop.begins[d] + values[d]));
  body.push_back(loop.body);
  return for_loop(LoopKind::Serial, std::vector<VarRef>{turn}, {int_imm(0)},
                  {ceil_div(max(int_imm(0), total - number), count)}, seq(std::move(body)), 1, loop.span,
                  loop.scheduled);
}

Stmt lower_loops(const Stmt& s, const Kernel* kernel, const std::optional<MeshShape>& mesh) {
  if (const Kernel* k = as<Kernel>(s)) kernel = k;
  Stmt lowered = map_parts(
      s, [](const Expr& e) { return e; }, [&](const Stmt& inner) { return lower_loops(inner, kernel, mesh); });
  const For* loop = as<For>(lowered);
  if (!loop) return lowered;
  if (loop->loop == LoopKind::Pipelined) return serial_nest(*loop, loop->body);
  if (loop->loop == LoopKind::Persistent) {
    const bool whole = !kernel || (mesh && !has_core_blocks(*kernel, mesh));
    return whole ? serial_nest(*loop, loop->body) : dealt(*loop, *kernel, first_block_dim(*kernel, mesh));
  }
  return lowered;
}

}  // namespace

FunctionRef lower_block_loops(const FunctionRef& f, const PassOptions&) {
  return with_body(f, lower_loops(f->body, nullptr, f->mesh));
}

}  // namespace helve
