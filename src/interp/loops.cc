// Loops and launches.
// All kinds of loops run their iterations in ascending order; they differ in who runs which iteration.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "block_memory.h"
#include "helve/support/diagnostic.h"
#include "helve/support/text.h"
#include "private_memory.h"
#include "region.h"
#include "rings.h"
#include "stmt_code.h"
#include "vector_access.h"

namespace helve::interp {

namespace {

LoopLabel label_of(std::string kind, LoopOrder order, const Span& span, const std::vector<VarRef>& vars, Scope& scope) {
  LoopLabel label{std::move(kind), order, span, {}};
  for (const VarRef& var : vars) label.vars.emplace_back(var->name, scope.define(var));
  return label;
}

/// The bounds of a rectangular loop on one executor.
struct Bounds {
  std::vector<int64_t> begins;
  std::vector<int64_t> extents;

  /// The number of iterations; a negative extent runs nothing.
  int64_t count(const Span& span) const {
    int64_t n = 1;
    for (int64_t extent : extents) {
      if (extent <= 0) return 0;
      if (__builtin_mul_overflow(n, extent, &n)) throw UserError(Code::IndexOverflow, span, {{"operation", "*"}});
    }
    return n;
  }
};

std::string iterations_text(int64_t n) { return fmt::format("{} iteration{}", n, n == 1 ? "" : "s"); }

class LoopCode final : public StmtCode {
 public:
  LoopCode(const For& node, Scope& scope)
      : scope_(scope),
        kind_(node.loop),
        begins_(prepare(node.begins, scope)),
        extents_(prepare(node.extents, scope)),
        span_(node.span) {
    for (const VarRef& var : node.vars) vars_.push_back(scope.define(var));
    const bool independent = kind_ != LoopKind::Serial && kind_ != LoopKind::Unroll && kind_ != LoopKind::Pipelined;
    label_ = label_of("T." + std::string(to_string(kind_)), independent ? LoopOrder::Iterations : LoopOrder::Sequential,
                      span_, node.vars, scope);
    label_.threads = kind_ == LoopKind::Thread;
    if (kind_ == LoopKind::Persistent) forgotten_ = scope.kernel_buffers;
    dealt_ = kind_ == LoopKind::Persistent && (!scope.has_mesh() || scope.core_blocks);
    const bool around = scope.in_iteration;
    scope.in_iteration |= kind_ == LoopKind::Parallel || kind_ == LoopKind::Vectorized || kind_ == LoopKind::Thread;
    if (kind_ == LoopKind::Parallel || kind_ == LoopKind::Vectorized) private_ = private_around(node.body, scope);
    const std::optional<size_t> lane = std::exchange(scope.lane, std::nullopt);
    if (kind_ == LoopKind::Vectorized) scope.lane = vars_[0];
    auto* const vectors = std::exchange(scope.vectors, kind_ == LoopKind::Vectorized ? &vectors_ : nullptr);
    body_ = prepare(node.body, scope);
    scope.vectors = vectors;
    scope.lane = lane;
    scope.in_iteration = around;
    include(*body_);
  }

  void run(Frame& frame) const override {
    const Bounds bounds = bounds_on(frame);
    const int64_t count = bounds.count(span_);
    const int64_t step = dealt_ ? frame.blocks : 1;
    const int64_t lane = frame.lane;
    for_lanes(frame, bounds, count, [&](const VectorAccess& each, int64_t i) { each.before_lanes(frame, i, count); });
    if (frame.trace) frame.trace->enter(label_, bounds.begins, bounds.extents);
    PrivateMemory memory(private_, frame);
    for (int64_t i = dealt_ ? frame.block : 0; i < count; i += step) {
      scope_.step();
      enter(frame, bounds, i);
      if (!vectors_.empty()) frame.lane = i;
      body_->run(frame);
      memory.end_iteration();
    }
    memory.end_loop();
    if (frame.trace) frame.trace->leave();
    for_lanes(frame, bounds, count, [&](const VectorAccess& each, int64_t i) { each.after_lanes(frame, i); });
    frame.lane = lane;
  }

 protected:
  void run_lockstep(const CoreSet& cores) const override {
    std::vector<Bounds> bounds;
    std::vector<int64_t> counts;
    for (Frame* core : cores) {
      bounds.push_back(bounds_on(*core));
      counts.push_back(bounds.back().count(span_));
    }
    require_uniform_bounds(cores, bounds);
    for (const CoreSet& together : partition(cores, counts)) {
      const int64_t count = counts[index_in(cores, together.front())];
      for (Frame* core : together) {
        const Bounds& own = bounds[index_in(cores, core)];
        if (core->trace) core->trace->enter(label_, own.begins, own.extents);
      }
      for (int64_t i = 0; i < count; ++i) {
        scope_.step();
        for (Frame* core : together) enter(*core, bounds[index_in(cores, core)], i);
        body_->run_all(together);
      }
      for (Frame* core : together) {
        if (core->trace) core->trace->leave();
      }
    }
  }

 private:
  /// Cores that meet in the loop go through the same iterations.
  void require_uniform_bounds(const CoreSet& cores, const std::vector<Bounds>& bounds) const {
    std::vector<int64_t> values(cores.size());
    for (size_t d = 0; d < vars_.size(); ++d) {
      for (size_t i = 0; i < cores.size(); ++i) values[i] = bounds[i].begins[d];
      require_uniform(*this, scope_.mesh(), cores, values, span_, "the loop begins at",
                      [](int64_t at) { return fmt::format("{}", at); });
      for (size_t i = 0; i < cores.size(); ++i) values[i] = std::max<int64_t>(bounds[i].extents[d], 0);
      require_uniform(*this, scope_.mesh(), cores, values, span_, "the loop runs", iterations_text);
    }
  }

  static size_t index_in(const CoreSet& cores, const Frame* core) {
    return static_cast<size_t>(std::find(cores.begin(), cores.end(), core) - cores.begin());
  }

  Bounds bounds_on(Frame& frame) const {
    if (frame.trace) frame.trace->make_current();
    return {eval_all(begins_, frame), eval_all(extents_, frame)};
  }

  /// Calls `f(access, lane)` with each vector access and lane, whose variable has its value.
  template <class F>
  void for_lanes(Frame& frame, const Bounds& bounds, int64_t lanes, F&& f) const {
    for (const VectorAccess* each : vectors_) {
      for (int64_t i = 0; i < lanes; ++i) {
        frame.vars[vars_[0]] = of_int(bounds.begins[0] + i);
        f(*each, i);
      }
    }
  }

  /// Gives the variables their values; what a persistent iteration finds in the buffers of its kernel is undefined.
  void enter(Frame& frame, const Bounds& bounds, int64_t iteration) const {
    if (frame.trace) frame.trace->iterate(iteration);
    for (size_t d = vars_.size(); d-- > 0;) {
      const int64_t at = d == 0 ? iteration : iteration % bounds.extents[d];
      int64_t value;
      if (__builtin_add_overflow(bounds.begins[d], at, &value)) {
        throw UserError(Code::IndexOverflow, span_, {{"operation", "+"}});
      }
      frame.vars[vars_[d]] = of_int(value);
      if (d > 0) iteration /= bounds.extents[d];
    }
    for (size_t slot : forgotten_) frame.buffers[slot]->forget(&span_);
  }

  const Scope& scope_;
  LoopKind kind_;
  bool dealt_ = false;  ///< to the blocks of a grid, or of a core
  std::vector<ExprCodeRef> begins_;
  std::vector<ExprCodeRef> extents_;
  std::vector<size_t> vars_;
  std::vector<size_t> forgotten_;
  std::vector<size_t> private_;  ///< memory around the loop that each iteration has for itself
  std::vector<const VectorAccess*> vectors_;  ///< of the lanes, in program order
  LoopLabel label_;
  StmtCodeRef body_;
  Span span_;
};

/// A loop over the tiles of a buffer, ceil(extent / tile) a dimension.
class TileLoopCode final : public StmtCode {
 public:
  TileLoopCode(const ForTiles& node, Scope& scope)
      : scope_(scope), slot_(scope.slot(*node.buffer)), tile_(node.buffer->tile), span_(node.span) {
    HELVE_CHECK(tile_.size() == node.vars.size(), "a tile loop over a buffer without tile");
    for (const VarRef& var : node.vars) vars_.push_back(scope.define(var));
    const LoopOrder order = node.parallel ? LoopOrder::Iterations : LoopOrder::Sequential;
    label_ = label_of("T.foreach_tiles", order, span_, node.vars, scope);
    if (node.parallel) private_ = private_around(node.body, scope);
    body_ = prepare(node.body, scope);
    include(*body_);
  }

  void run(Frame& frame) const override {
    const std::vector<int64_t> counts = counts_on(frame);
    const int64_t total = product(counts);
    if (frame.trace) begin_on(*frame.trace, counts);
    PrivateMemory memory(private_, frame);
    for (int64_t i = 0; i < total; ++i) {
      enter(frame, counts, i);
      body_->run(frame);
      memory.end_iteration();
    }
    memory.end_loop();
    if (frame.trace) frame.trace->leave();
  }

 protected:
  void run_lockstep(const CoreSet& cores) const override {
    std::vector<int64_t> totals;
    for (Frame* core : cores) totals.push_back(product(counts_on(*core)));
    require_uniform(*this, scope_.mesh(), cores, totals, span_, "the loop runs", iterations_text);
    for (const CoreSet& together : partition(cores, totals)) {
      const int64_t total = product(counts_on(*together.front()));
      for (Frame* core : together) {
        if (core->trace) begin_on(*core->trace, counts_on(*core));
      }
      for (int64_t i = 0; i < total; ++i) {
        for (Frame* core : together) enter(*core, counts_on(*core), i);
        body_->run_all(together);
      }
      for (Frame* core : together) {
        if (core->trace) core->trace->leave();
      }
    }
  }

 private:
  void begin_on(Trace& trace, const std::vector<int64_t>& counts) const {
    trace.enter(label_, std::vector<int64_t>(counts.size(), 0), counts);
  }

  std::vector<int64_t> counts_on(const Frame& frame) const {
    std::vector<int64_t> counts;
    for (size_t d = 0; d < tile_.size(); ++d) {
      counts.push_back((frame.buffers[slot_]->extent(d) + tile_[d] - 1) / tile_[d]);
    }
    return counts;
  }

  void enter(Frame& frame, const std::vector<int64_t>& counts, int64_t iteration) const {
    if (frame.trace) frame.trace->iterate(iteration);
    const std::vector<int64_t> at = coordinates_of(iteration, counts);
    for (size_t d = 0; d < at.size(); ++d) frame.vars[vars_[d]] = of_int(at[d]);
  }

  const Scope& scope_;
  size_t slot_;
  std::vector<int64_t> tile_;
  std::vector<size_t> vars_;
  std::vector<size_t> private_;
  LoopLabel label_;
  StmtCodeRef body_;
  Span span_;
};

/// A launch. Without a mesh its blocks run one after another; on a mesh each core is a block, or has blocks that run
/// one after another, and the cores that come to the launch together begin and end it together.
class KernelCode final : public StmtCode {
 public:
  KernelCode(const Kernel& node, Scope& scope)
      : scope_(scope), extents_(prepare(node.extents, scope)), cluster_(node.cluster), span_(node.span) {
    for (const VarRef& var : node.vars) vars_.push_back(scope.define(var));
    cores_ = scope.has_mesh() ? scope.mesh().extents.size() : 0;
    const auto first_block = node.vars.begin() + static_cast<std::ptrdiff_t>(std::min(cores_, node.vars.size()));
    label_ = label_of("T.Kernel", LoopOrder::Blocks, span_, {first_block, node.vars.end()}, scope);
    const std::vector<size_t> around = std::exchange(scope.kernel_buffers, {});
    scope.core_blocks = scope.has_mesh() && node.vars.size() > cores_;
    body_ = prepare(node.body, scope);
    scope.core_blocks = false;
    scope.kernel_buffers = around;
    memory_ = BlockMemory(node.body, scope);
    if (!scope.has_mesh()) return;
    add_sync({"T.Kernel", kNoAxis, node.span});
    include(*body_);
  }

  void run(Frame& frame) const override {
    HELVE_CHECK(!scope_.has_mesh(), "a core launched a kernel on its own");
    run_blocks(frame, eval_all(extents_, frame), 0);
  }

 protected:
  void run_lockstep(const CoreSet& cores) const override {
    const std::vector<int64_t>& mesh = scope_.mesh().extents;
    std::vector<std::vector<int64_t>> blocks;  // of each core
    for (Frame* core : cores) {
      std::vector<int64_t> grid = eval_all(extents_, *core);
      const auto end = grid.begin() + static_cast<std::ptrdiff_t>(std::min(cores_, grid.size()));
      if (!std::equal(grid.begin(), end, mesh.begin(), mesh.end())) {
        throw UserError(Code::MeshGrid, span_,
                        {{"grid", shape_text(grid)},
                         {"mesh", shape_text(mesh)},
                         {"fix", join(mesh, ", ", [](int64_t e) { return std::to_string(e); })}});
      }
      set_core(*core, mesh);
      if (vars_.size() == cores_) enter(*core, core->rank, scope_.mesh().size());
      blocks.emplace_back(end, grid.end());
    }
    synchronise(cores);
    if (vars_.size() == cores_) {
      body_->run_all(cores);
      for (Frame* core : cores) require_finished(*core);
    } else {
      for (size_t i = 0; i < cores.size(); ++i) run_blocks(*cores[i], blocks[i], cores_);
    }
    synchronise(cores);
  }

 private:
  /// The blocks of a grid, whose coordinates are the variables from `first` on.
  void run_blocks(Frame& frame, const std::vector<int64_t>& grid, size_t first) const {
    for (int64_t extent : grid) {
      if (extent < 0) throw UserError(Code::NegativeExtent, span_, {{"extent", extent}});
    }
    const int64_t blocks = Bounds{{}, grid}.count(span_);
    if (frame.trace) frame.trace->enter(label_, std::vector<int64_t>(grid.size(), 0), grid);
    for (int64_t block = 0; block < blocks; ++block) {
      scope_.step();
      if (frame.trace) frame.trace->iterate(block);
      const std::vector<int64_t> at = coordinates_of(block, grid);
      for (size_t d = 0; d < at.size(); ++d) frame.vars[vars_[first + d]] = of_int(at[d]);
      enter(frame, block, blocks);
      begin_shared_copies(frame, cluster_);
      body_->run(frame);
      end_shared_copies(frame, cluster_);
      require_finished(frame);
    }
    if (!frame.trace) return;
    frame.trace->leave();
    frame.trace->synchronise_threads();  // what follows a kernel follows all its threads
  }

  void set_core(Frame& core, const std::vector<int64_t>& mesh) const {
    const std::vector<int64_t> at = coordinates_of(core.rank, mesh);
    for (size_t d = 0; d < at.size(); ++d) core.vars[vars_[d]] = of_int(at[d]);
  }

  void require_finished(Frame& frame) const {
    if (const auto left = frame.copies.unfinished()) {
      const CopyQueue& queue = scope_.queue(left->first);
      const std::string work = work_text(queue);
      throw UserError(Code::UnfinishedCopy, left->second, {{"work", work}}, {{span_, "the kernel"}},
                      {"end with " + wait_text(queue) + (work == "copy" ? ", which waits for all copies" : "")});
    }
    frame.copies.finish();
  }

  void enter(Frame& frame, int64_t block, int64_t blocks) const {
    frame.block = block;
    frame.blocks = blocks;
    if (!frame.trace) return;
    frame.trace->begin_threads();
    memory_.begin(frame);
  }

  const Scope& scope_;
  std::vector<ExprCodeRef> extents_;
  int64_t cluster_;
  std::vector<size_t> vars_;
  size_t cores_ = 0;  ///< variables that are coordinates of a core
  BlockMemory memory_;
  LoopLabel label_;
  StmtCodeRef body_;
  Span span_;
};

}  // namespace

StmtCodeRef prepare_loop(const For& s, Scope& scope) { return std::make_unique<LoopCode>(s, scope); }
StmtCodeRef prepare_tile_loop(const ForTiles& s, Scope& scope) { return std::make_unique<TileLoopCode>(s, scope); }
StmtCodeRef prepare_kernel(const Kernel& s, Scope& scope) { return std::make_unique<KernelCode>(s, scope); }

}  // namespace helve::interp
