// Reductions on the CPU.
// Along the contiguous dimension a vector of partial results is kept and folded at the end; along other dimensions
// whole rows are combined. Both re-associate, which the operations allow.
#include <fmt/format.h>

#include "element_nest.h"
#include "helve/arith/simplify.h"
#include "helve/dispatch/reduction.h"
#include "helve/dispatch/vector_run.h"
#include "helve/support/diagnostic.h"
#include "schedules.h"

namespace helve::cpu {

namespace {

std::vector<Expr> with_coordinate(std::vector<Expr> rest, size_t dim, const Expr& at) {
  rest.insert(rest.begin() + static_cast<std::ptrdiff_t>(dim), at);
  return rest;
}

/// Folds `lanes` partial results in a local buffer into its first element.
void fold_lanes(const Reduction& r, const BufferRef& partial, int64_t lanes, std::vector<Stmt>* out) {
  for (int64_t step = lanes / 2; step >= 1; step /= 2) {
    VarRef l = make_var("l");
    Expr sum = r.merge(load(partial, {Expr(l)}), load(partial, {Expr(l) + int_imm(step)}));
    out->push_back(for_loop(LoopKind::Vectorized, l, int_imm(step), store(partial, {Expr(l)}, sum)));
  }
}

}  // namespace

Stmt lower_reduce_rows(const TileOp& op, const LoweringContext& context, std::string* declined) {
  const Reduction r = reduction_of(op);
  const std::vector<Expr> extents = r.src.shape();
  if (r.dim + 1 != extents.size()) {
    *declined = "the reduced dimension is not the last";
    return {};
  }
  std::vector<NestDim> dims = nest_dims(r.src, extents);
  const NestDim along = dims.back();
  dims.pop_back();
  const int64_t lanes = context.machine->vector_bytes / r.acc.bytes();
  const Facts& facts = *context.facts;
  const int64_t wide = widest_lanes(along.block == 1 ? along.extent : int_imm(along.block), lanes, facts);
  return element_nest(dims, [&](const std::vector<Expr>& rest) {
    BufferRef partial = make_buffer("partial", r.acc, MemoryScope::Local, {int_imm(wide)});
    VarRef first = make_var("l");
    std::vector<Stmt> out = {alloc(partial), for_loop(LoopKind::Vectorized, first, int_imm(wide),
                                                      store(partial, {Expr(first)}, r.identity()))};
    // No vector of the run may be wider than `partial`: for the extent itself its width is widest_lanes, for a block's
    // part, whose extent is not constant, the narrower lanes.
    const int64_t run_lanes = along.block == 1 ? lanes : std::min(lanes, wide);
    auto run = [&](const Expr& start, const Expr& count) {
      return vector_run(count, run_lanes, facts, [&](const Expr& lane, const Expr& position) {
        Expr value = r.element(with_coordinate(rest, r.dim, plus(start, position)));
        const Expr place = wide == 1 ? int_imm(0) : lane;  // scalar positions are numbered like lanes
        return store(partial, {place}, r.merge(load(partial, {place}), value));
      });
    };
    if (along.block == 1) {
      out.push_back(run(int_imm(0), along.extent));
    } else {
      VarRef block = make_var("tj");
      const Expr size = int_imm(along.block);
      const Expr start = Expr(block) * size;
      const Expr count = simplify(ceil_div(along.extent, size), facts);
      Facts inside = facts;
      inside.bind_loop(block, int_imm(0), count);
      out.push_back(
          for_loop(LoopKind::Serial, block, count, run(start, simplify(min(size, along.extent - start), inside))));
    }
    fold_lanes(r, partial, wide, &out);
    out.push_back(r.write(rest, load(partial, {int_imm(0)})));
    return seq(std::move(out));
  });
}

Stmt lower_reduce_columns(const TileOp& op, const LoweringContext&, std::string* declined) {
  const Reduction r = reduction_of(op);
  const std::vector<Expr> extents = r.src.shape();
  std::vector<Expr> rest_extents = extents;
  rest_extents.erase(rest_extents.begin() + static_cast<std::ptrdiff_t>(r.dim));
  if (!constant_shape(rest_extents)) {
    *declined = "the extents that are kept are not constant";
    return {};
  }
  std::vector<NestDim> dims = nest_dims(r.src, extents);
  dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(r.dim));
  BufferRef partial = make_buffer("partial", r.acc, MemoryScope::Local, rest_extents);
  VarRef k = make_var("k");
  Stmt start = element_nest(dims, [&](const std::vector<Expr>& at) { return store(partial, at, r.identity()); });
  Stmt combine = element_nest(dims, [&](const std::vector<Expr>& at) {
    return store(partial, at, r.merge(load(partial, at), r.element(with_coordinate(at, r.dim, Expr(k)))));
  });
  Stmt finish = element_nest(dims, [&](const std::vector<Expr>& at) { return r.write(at, load(partial, at)); });
  return seq({alloc(partial), start, for_loop(LoopKind::Serial, k, extents[r.dim], combine), finish});
}

Stmt lower_reduce_elements(const TileOp& op, const LoweringContext&, std::string*) {
  const Reduction r = reduction_of(op);
  const std::vector<Expr> extents = r.src.shape();
  std::vector<NestDim> dims = nest_dims(r.src, extents);
  dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(r.dim));
  return element_nest(dims, [&](const std::vector<Expr>& rest) {
    BufferRef partial = make_buffer("partial", r.acc, MemoryScope::Local, {int_imm(1)});
    const std::vector<Expr> only = {int_imm(0)};
    VarRef k = make_var("k");
    Expr sum = r.merge(load(partial, only), r.element(with_coordinate(rest, r.dim, Expr(k))));
    return seq({alloc(partial), store(partial, only, r.identity()),
                for_loop(LoopKind::Serial, k, extents[r.dim], store(partial, only, sum)),
                r.write(rest, load(partial, only))});
  });
}

}  // namespace helve::cpu
