// Reductions on a GPU: they are kept if the threads can hold their results.
// A kept reduction is divided with the loops around it; else one thread computes the whole sum of a result.
#include "helve/dispatch/reduction.h"

#include <algorithm>

#include "over_elements.h"
#include "schedules.h"

namespace helve {

/// Keeps the reduction if each thread can hold its part of the results: it is then divided among threads with the loops
/// around it. Else one thread computes the whole sum of each result.
Stmt cuda::lower_reduce(const TileOp& op, const LoweringContext& context, std::string*) {
  constexpr int64_t kMaxResults = 32;
  const Reduction r = reduction_of(op);
  std::vector<Expr> kept = r.src.shape();
  kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(r.dim));
  int64_t results = 1;
  for (const Expr& e : kept) {
    const int64_t* extent = int_value(e);
    results =
        extent && results >= 0 && *extent <= (int64_t{1} << 20) ? std::min(results * *extent, int64_t{1} << 20) : -1;
  }
  if (results >= 0 && results <= kMaxResults * context.kernel->threads) return Stmt(make_ref<TileOp>(op));
  return over_elements(kept, *context.facts, [&](const std::vector<Expr>& rest, const Facts&) {
    const BufferRef partial = make_buffer("partial", r.acc, MemoryScope::Local, {int_imm(1)});
    const std::vector<Expr> only = {int_imm(0)};
    const VarRef k = make_var("k");
    std::vector<Expr> at = rest;
    at.insert(at.begin() + static_cast<std::ptrdiff_t>(r.dim), Expr(k));
    return seq({alloc(partial), store(partial, only, r.identity()),
                for_loop(LoopKind::Serial, k, r.src.shape()[r.dim],
                         store(partial, only, r.merge(load(partial, only), r.element(at)))),
                r.write(rest, load(partial, only))});
  });
}

}  // namespace helve
