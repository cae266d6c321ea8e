// Tiles that run at one time lie together, so that what they read stays in the cache that all processors share.
// Input: any function before Persistent loops are dealt to blocks. Output: Persistent loops over two dimensions become
// loops over one, whose iterations are those of the domain in another order: groups of `group` indices of the first
// dimension follow each other, in a group the first dimension is the fastest. The iterations of a Persistent loop have
// no order, so any is right; blocks that run at one time have consecutive ones.
//
// Before:  for j, i in T.Persistent([N, M]):              # 132 blocks
// After:   for tile in T.Persistent([N * M]):
//              first = tile // (8 * M) * 8
//              size = T.max(T.min(N - first, 8), 1)
//              j = first + tile % (8 * M) % size
//              i = tile % (8 * M) // size
//
// The group is the one for which the blocks of a machine together read the fewest bytes: an access that depends on one
// dimension only is read once for all its tiles that run at one time. Of P blocks, c have different indices of the
// first dimension and P / c of the second one. Loops are left alone whose iterations differ in their work, since
// their order may be one that balances it, and those of grids that are too small to fill the machine.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_map>

#include "deal.h"
#include "helve/analysis/effects.h"
#include "helve/arith/simplify.h"
#include "helve/ir/tensor/visit.h"
#include "helve/transform/passes.h"
#include "scope_facts.h"

namespace helve {

namespace {

constexpr double kTurns = 16;  ///< of a loop whose extent only the call knows
constexpr double kGain = 0.9;  ///< the order changes where at most this part of the bytes is left

/// On which of the two dimensions something depends.
using Depends = std::array<bool, 2>;

/// What one iteration reads from global memory by some statement.
struct Traffic {
  double bytes;
  Depends depends;
};

class Reads {
 public:
  explicit Reads(const For& loop) {
    for (size_t d : {0, 1}) depends_[loop.vars[d].get()][d] = true;
    visit(loop.body, 1);
  }

  /// Do all iterations have the same loops and branches?
  bool even() const { return even_; }
  const std::vector<Traffic>& traffic() const { return traffic_; }

 private:
  Depends of(const Expr& e) const {
    Depends out = {false, false};
    walk(e, [&](const Expr& node) {
      const auto known = as<Var>(node) ? depends_.find(as<Var>(node)) : depends_.end();
      for (size_t d = 0; known != depends_.end() && d < 2; ++d) out[d] |= known->second[d];
    });
    return out;
  }

  void steer(const Expr& e) {
    const Depends depends = of(e);
    even_ &= !depends[0] && !depends[1];
  }

  void visit(const Stmt& s, double times) {
    if (!s) return;
    if (const Bind* n = as<Bind>(s)) {
      depends_[n->var.get()] = of(n->value);
    } else if (const VarRef fetched = named_by(s)) {
      depends_[fetched.get()] = {true, true};
    }
    const For* loop = as<For>(s);
    const bool elements = loop && (loop->loop == LoopKind::Parallel || loop->loop == LoopKind::Vectorized);
    if (const If* n = as<If>(s)) steer(n->condition);
    if (const While* n = as<While>(s)) steer(n->condition);
    for (size_t d = 0; loop && d < loop->vars.size(); ++d) {
      if (!elements) steer(loop->extents[d]);
      const int64_t* extent = int_value(loop->extents[d]);
      times *= extent ? static_cast<double>(std::max<int64_t>(*extent, 0)) : kTurns;
    }
    for (const RegionAccess& access : direct_accesses(s)) {
      if (!access.write && is_global(*access.region.buffer)) add(access.region, times);
    }
    // What lanes and threads do under a condition is even enough.
    const bool even = even_;
    for_each_part(s, [](const Expr&) {}, [&](const Stmt& part) { visit(part, times); });
    if (elements) even_ = even;
  }

  void add(const Region& region, double times) {
    Traffic out{times * region.buffer->dtype.bits / 8, {false, false}};
    for (const Range& range : region.ranges) {
      const int64_t* extent = int_value(range.extent);
      out.bytes *= extent ? static_cast<double>(*extent) : kTurns;
      const Depends depends = of(range.begin);
      for (size_t d = 0; d < 2; ++d) out.depends[d] |= depends[d];
    }
    traffic_.push_back(out);
  }

  std::unordered_map<const Var*, Depends> depends_;
  bool even_ = true;
  std::vector<Traffic> traffic_;
};

/// Bytes that tiles with `counts` different indices of the dimensions read together.
double bytes_of(const std::vector<Traffic>& traffic, const std::array<double, 2>& counts) {
  double out = 0;
  for (const Traffic& each : traffic) {
    out += each.bytes * (each.depends[0] ? counts[0] : 1) * (each.depends[1] ? counts[1] : 1);
  }
  return out;
}

/// The indices of the first dimension that tiles of one time have; 1 where the order of the program is as good.
int64_t group_of(const For& loop, const std::vector<Traffic>& traffic, int64_t blocks) {
  std::array<double, 2> most = {HUGE_VAL, HUGE_VAL};
  for (size_t d : {0, 1}) {
    if (const int64_t* extent = int_value(loop.extents[d])) most[d] = static_cast<double>(*extent);
  }
  const auto bytes = [&](double group) {
    const double others = std::min(static_cast<double>(blocks) / group, most[1]);
    return bytes_of(traffic, {std::min(std::max(group, static_cast<double>(blocks) / others), most[0]), others});
  };
  int64_t best = 1;
  for (int64_t group = 2; group <= blocks && static_cast<double>(group) <= most[0]; ++group) {
    if (bytes(static_cast<double>(group)) < bytes(static_cast<double>(best))) best = group;
  }
  return bytes(static_cast<double>(best)) <= kGain * bytes(1) ? best : 1;
}

class Rasters final : public ScopedRewriter {
 public:
  Rasters(const Function& f, const PassOptions& options) : ScopedRewriter(f), options_(options) {}

 protected:
  Stmt leave(const Stmt& s, const Facts& facts) override {
    const For* loop = as<For>(s);
    if (!loop || loop->loop != LoopKind::Persistent || loop->scheduled) return s;
    if (loop->vars.size() != (is_of_clusters(*loop, enclosing_kernel()) ? 3 : 2)) return s;
    const std::optional<int64_t> blocks = blocks_at_once();
    const Reads reads(*loop);
    if (!blocks || !reads.even()) return s;
    const int64_t group = group_of(*loop, reads.traffic(), *blocks);
    if (group == 1) return s;
    if (options_.choices) {
      options_.choices->push_back({"T.Persistent", s->span, fmt::format("tiles in groups of {}", group), {}});
    }
    return in_groups(*loop, group, facts);
  }

 private:
  /// The blocks of the grid, or its clusters, that run at one time; nothing where these do not fill the machine.
  std::optional<int64_t> blocks_at_once() const {
    const int64_t processors = options_.machine.processors / enclosing_kernel()->cluster;
    int64_t count = 1;
    for (const Expr& e : enclosing_kernel()->extents) {
      const int64_t* extent = int_value(e);
      if (!extent) return processors;
      count *= *extent;
    }
    count /= enclosing_kernel()->cluster;
    if (2 * count < processors) return std::nullopt;
    return std::min(count, 2 * processors);
  }

  static Stmt in_groups(const For& loop, int64_t group, const Facts& facts) {
    const Expr zero = int_imm(0), size = int_imm(group);
    const Expr rows = simplify(max(zero, loop.extents[0]), facts),
               columns = simplify(max(zero, loop.extents[1]), facts);
    const VarRef tile = make_var("tile"), first = make_var("first"), wide = make_var("wide");
    const Expr of_group = simplify(columns * size);
    const int64_t* count = int_value(rows);
    const bool whole = count && *count % group == 0;
    std::vector<Stmt> body = {bind(first, floor_div(Expr(tile), of_group) * size, loop.span)};
    Expr width = size;
    if (!whole) {
      body.push_back(bind(wide, max(min(rows - Expr(first), size), int_imm(1)), loop.span));
      width = Expr(wide);
    }
    const Expr inside = floor_mod(Expr(tile), of_group);
    body.push_back(bind(loop.vars[0], simplify(loop.begins[0] + Expr(first) + floor_mod(inside, width)), loop.span));
    body.push_back(bind(loop.vars[1], simplify(loop.begins[1] + floor_div(inside, width)), loop.span));
    body.push_back(loop.body);
    std::vector<VarRef> vars = {tile};
    std::vector<Expr> begins = {zero}, extents = {simplify(rows * columns)};
    vars.insert(vars.end(), loop.vars.begin() + 2, loop.vars.end());
    begins.insert(begins.end(), loop.begins.begin() + 2, loop.begins.end());
    extents.insert(extents.end(), loop.extents.begin() + 2, loop.extents.end());
    return for_loop(LoopKind::Persistent, vars, begins, extents, seq(std::move(body), loop.span), 1, loop.span);
  }

  const PassOptions& options_;
};

}  // namespace

FunctionRef raster_tiles(const FunctionRef& f, const PassOptions& options) {
  if (!options.machine.is_gpu() || f->mesh) return f;
  return with_body(f, Rasters(*f, options).rewrite(f->body));
}

}  // namespace helve
