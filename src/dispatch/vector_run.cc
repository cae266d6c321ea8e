// A run of positions as vectors.
// A known extent is divided into the fewest vectors; an unknown one into wide vectors, single registers and a scalar
// rest.
#include "helve/dispatch/vector_run.h"

#include <algorithm>
#include <vector>

#include "helve/analysis/lanes.h"
#include "helve/arith/simplify.h"

namespace helve {

namespace {

constexpr int64_t kRegisters = 4;  // independent ones

int64_t wide(int64_t lanes) { return std::max(lanes, std::min(lanes * kRegisters, kMaxLanes)); }

/// The widths of a run's vectors, widest first.
std::vector<int64_t> widths_of(const Expr& extent, int64_t lanes) {
  if (!int_value(extent)) return {wide(lanes), lanes, 1};
  std::vector<int64_t> widths;
  for (int64_t w = wide(lanes); w >= 1; w /= 2) widths.push_back(w);
  return widths;
}

}  // namespace

int64_t widest_lanes(const Expr& extent, int64_t lanes, const Facts& facts) {
  const std::optional<int64_t> most = interval_of(extent, facts).high;
  for (int64_t w : widths_of(extent, lanes)) {
    if (!most || w <= *most) return w;
  }
  return 1;
}

Stmt vector_run(const Expr& given, int64_t lanes, const Facts& facts,
                const std::function<Stmt(const Expr& lane, const Expr& position)>& body) {
  const Expr extent = simplify(max(int_imm(0), given), facts);
  std::vector<Stmt> out;
  Expr done = int_imm(0);
  std::optional<int64_t> most = interval_of(extent, facts).high;
  for (int64_t width : widths_of(extent, lanes)) {
    if (most && *most < width) continue;
    const Expr left = simplify(extent - done, facts);
    const Expr size = int_imm(width);
    VarRef lane = make_var("l");
    if (width == 1) {
      out.push_back(for_loop(LoopKind::Serial, lane, left, body(Expr(lane), simplify(done + Expr(lane), facts))));
      break;
    }
    const Expr count = simplify(floor_div(left, size), facts);
    VarRef v = make_var("v");
    Stmt vector = for_loop(LoopKind::Vectorized, lane, size, body(Expr(lane), done + Expr(v) * size + Expr(lane)));
    out.push_back(for_loop(LoopKind::Serial, v, count, vector));
    done = simplify(done + count * size, facts);
    // The remaining positions are fewer than one vector.
    most = width - 1;
    if (const std::optional<int64_t> rest = constant_value(simplify(extent - done, facts))) most = *rest;
    if (*most <= 0) break;
  }
  return seq(std::move(out));
}

}  // namespace helve
