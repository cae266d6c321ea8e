// Do reductions combine the pad of a copy?
// A copy that reads past an end fills the rest with its pad; the default 0 is not the neutral element of max, min, prod
// and all, so a result may come from the pad instead of the data. A warning requires that nothing else is written
// between the copy and the reduction, since that may well be the intended mask.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "helve/arith/simplify.h"
#include "helve/ir/expr/rounding.h"
#include "helve/ir/expr/text.h"
#include "helve/ir/tensor/visit.h"
#include "obligations.h"

namespace helve::proofs {

namespace {

/// The region that a copy filled, which may include pads.
struct Fill {
  const TileOp* copy = nullptr;
  bool carried = false;  ///< from an earlier iteration of a loop around both
  bool passed_on = false;  ///< copied again: the places of the pads are not tracked
  bool operator==(const Fill&) const = default;
};
using Fills = std::unordered_map<const Buffer*, std::vector<Fill>>;

bool is_zero(const Expr& e) {
  if (const int64_t* v = int_value(e)) return *v == 0;
  const FloatImm* f = as<FloatImm>(e);
  return f && f->value == 0.0;
}

bool is_sensitive(TileOpcode op) {
  return op == TileOpcode::ReduceMax || op == TileOpcode::ReduceMin || op == TileOpcode::ReduceProd ||
         op == TileOpcode::ReduceAll;
}

/// The pad that does not change the reduction.
std::string neutral_pad(TileOpcode op, DType t) {
  if (op == TileOpcode::ReduceAll) return "True";
  if (op == TileOpcode::ReduceProd) return "1";
  const bool lowest = op == TileOpcode::ReduceMax;
  if (t.is_float()) return lowest ? "-T.infinity()" : "T.infinity()";
  return fmt::format("{}", extreme_int(t, lowest));
}

bool is_whole(const Region& region) {
  for (size_t d = 0; d < region.ranges.size(); ++d) {
    const Range& r = region.ranges[d];
    const int64_t *begin = int_value(r.begin), *extent = int_value(r.extent),
                  *limit = int_value(region.buffer->shape[d]);
    const bool same = r.extent == region.buffer->shape[d] || (extent && limit && *extent == *limit);
    if (!begin || *begin != 0 || !same) return false;
  }
  return true;
}

class Padding {
 public:
  explicit Padding(const Function& f) : model_(access_model(f)) {
    for (const Access& each : model_.accesses) accesses_[each.stmt].push_back(&each);
  }

  std::vector<Diagnostic> run() {
    visit(model_.function->body);
    return std::move(out_);
  }

 private:
  void visit(const Stmt& s) {
    if (!s) return;
    switch (s->kind) {
      case StmtKind::TileOp: return visit_operation(*as<TileOp>(s));
      case StmtKind::Store:
        if (as<Store>(s)->mode == StoreMode::Write) fills_.erase(as<Store>(s)->buffer.get());
        return;
      case StmtKind::Prefetch:
      case StmtKind::Report:
      case StmtKind::Breakpoint:
      case StmtKind::Peer: return;
      case StmtKind::TileStore: fills_.erase(as<TileStore>(s)->buffer.get()); return;
      case StmtKind::If: {
        const Fills before = fills_;
        visit(as<If>(s)->then_body);
        const Fills after_then = std::exchange(fills_, before);
        visit(as<If>(s)->else_body);
        for (const auto& [buffer, more] : after_then) add(buffer, more);
        return;
      }
      case StmtKind::For:
      case StmtKind::ForTiles:
      case StmtKind::While: return visit_loop(s);
      default: for_each_part(s, [](const Expr&) {}, [&](const Stmt& inner) { visit(inner); });
    }
  }

  /// Each loop once for each state before it: a body is visited twice, so nested ones would be visited twice as often
  /// with each level.
  void visit_loop(const Stmt& s) {
    for (const auto& [before, after] : followed_[s.get()]) {
      if (before != fills_) continue;
      fills_ = after;
      return;
    }
    const Fills before = fills_;
    follow_loop(s);
    followed_[s.get()].emplace_back(before, fills_);
  }

  /// Once as the first iteration, once as a later one.
  void follow_loop(const Stmt& s) {
    auto body = [&] { for_each_part(s, [](const Expr&) {}, [&](const Stmt& inner) { visit(inner); }); };
    body();
    const Fills after = fills_;
    for (auto& [buffer, fills] : fills_) {
      for (Fill& fill : fills) fill.carried = true;
    }
    body();
    fills_ = after;
  }

  void add(const Buffer* buffer, const std::vector<Fill>& more) {
    std::vector<Fill>& fills = fills_[buffer];
    for (const Fill& fill : more) {
      const bool known = std::any_of(fills.begin(), fills.end(), [&](const Fill& f) { return f.copy == fill.copy; });
      if (!known) fills.push_back(fill);
    }
  }

  void visit_operation(const TileOp& op) {
    const TileRule rule = op.row().rule;
    if (rule == TileRule::Copy || rule == TileRule::MeshTensorCopy) return visit_copy(op);
    if (is_sensitive(op.op)) {
      const auto found = fills_.find(op.region(0).buffer.get());
      if (found != fills_.end()) {
        for (const Fill& fill : found->second) ask(op, fill);
      }
    }
    for (size_t i = 0; i < op.row().params.size(); ++i) {
      if (op.row().params[i].writes()) fills_.erase(op.region(i).buffer.get());
    }
  }

  void visit_copy(const TileOp& op) {
    const Region &src = op.region(0), &dst = op.region(1);
    std::vector<Fill> now;
    const Access* from = access(op, src, false);
    const size_t pad = op.row().index_of("pad");  // an explicit one is intended
    if (from && from->may_pass_end && !op.is_given(pad) && is_zero(op.expr(pad))) now.push_back({&op, false, false});
    if (const auto found = fills_.find(src.buffer.get()); found != fills_.end()) {
      for (Fill fill : found->second) {
        fill.passed_on = true;
        now.push_back(fill);
      }
    }
    if (is_whole(dst)) fills_.erase(dst.buffer.get());
    add(dst.buffer.get(), now);
  }

  const Access* access(const TileOp& op, const Region& region, bool write) const {
    const auto found = accesses_.find(&op);
    if (found == accesses_.end()) return nullptr;
    for (const Access* t : found->second) {
      if (t->buffer == region.buffer && t->write == write) return t;
    }
    return nullptr;
  }

  // The proof.

  /// The condition under which element `at` of the source is past the end of dimension d.
  static Expr past_end(const Access& src, size_t d, const Expr& at) {
    const Expr beyond = apply(Op::Le, {src.limits[d], at});
    if (!src.placed) return beyond;
    return apply(Op::Or, {beyond, apply(Op::Le, {src.buffer->shape[d], src.block_begin[d] + at})});
  }

  /// The dimensions that a copy matches with those of the other side.
  static std::vector<size_t> wide(const Access& t) {
    std::vector<size_t> dims;
    for (size_t d = 0; d < t.ranges.size(); ++d) {
      const int64_t* extent = int_value(t.ranges[d].extent);
      if (!extent || *extent != 1) dims.push_back(d);
    }
    return dims;
  }

  /// The dimension of its buffer that a reduction runs over.
  static size_t reduced_dim(const TileOp& op) {
    const Region& region = op.region(0);
    size_t left = *op.dimension(region.shape().size());
    size_t d = 0;
    while (region.ranges[d].point || left-- > 0) ++d;
    return d;
  }

  /// Does each result come from one element? Then it is either a pad or data.
  static bool combines_nothing(const TileOp& op) {
    const int64_t* extent = int_value(op.region(0).ranges[reduced_dim(op)].extent);
    return extent && *extent <= 1 && op.clears().value_or(true);
  }

  /// The dimensions of the copy's source that match dimension `d` of its destination, over which the reduction runs;
  /// nothing if that is unknown. Only along this dimension are pads combined with data: past the end of another
  /// dimension a whole result is pad. Dimensions of extent 1 are not matched.
  static std::optional<std::vector<size_t>> followed_dims(size_t d, const Access& src, const Access& dst) {
    const std::vector<size_t> from = wide(src), to = wide(dst);
    if (from.size() != to.size()) return {};
    const auto at = std::find(to.begin(), to.end(), d);
    if (at != to.end()) return std::vector{from[static_cast<size_t>(at - to.begin())]};
    std::vector<size_t> narrow;
    for (size_t s = 0; s < src.ranges.size(); ++s) {
      if (std::find(from.begin(), from.end(), s) == from.end()) narrow.push_back(s);
    }
    return narrow;
  }

  /// Requires that element `offsets` of the copy is in the reduced region.
  static void require_reduced(Query& query, const Access& src, const Access& dst, const Access& reduced,
                              const std::vector<Expr>& offsets) {
    const std::vector<size_t> from = wide(src), to = wide(dst);
    if (from.size() != to.size()) return;
    for (size_t k = 0; k < to.size(); ++k) {
      const Range& r = reduced.ranges[to[k]];
      const Expr at = dst.ranges[to[k]].begin + offsets[from[k]];
      query.require(apply(Op::Le, {r.begin, at}));
      query.require(less(at, r.begin + r.extent));
    }
  }

  void ask(const TileOp& op, const Fill& fill) {
    if (std::any_of(asked_.begin(), asked_.end(),
                    [&](const auto& p) { return p.first == &op && p.second == fill.copy; }))
      return;
    const Access* src = access(*fill.copy, fill.copy->region(0), false);
    const Access* dst = access(*fill.copy, fill.copy->region(1), true);
    const Access* reduced = access(op, op.region(0), false);
    if (!src || !dst || !reduced || combines_nothing(op)) return;
    asked_.emplace_back(&op, fill.copy);
    Query query(model_);
    for (const StepRef& step : src->path) query.add(*step);
    std::vector<Expr> offsets;
    Expr violation;
    const std::optional<std::vector<size_t>> mixed =
        fill.passed_on ? std::nullopt : followed_dims(reduced_dim(op), *src, *dst);
    for (size_t d = 0; d < src->ranges.size(); ++d) {
      const VarRef offset = make_var(fmt::format("o{}", d));
      query.add_variable(offset);
      query.require(apply(Op::Le, {int_imm(0), Expr(offset)}));
      query.require(less(Expr(offset), src->ranges[d].extent));
      offsets.push_back(Expr(offset));
      const Expr beyond = past_end(*src, d, src->ranges[d].begin + Expr(offset));
      if (mixed && std::find(mixed->begin(), mixed->end(), d) == mixed->end()) {
        query.require(apply(Op::Not, {beyond}));
      } else {
        violation = violation ? apply(Op::Or, {violation, beyond}) : beyond;
      }
    }
    if (!violation) return;
    if (!fill.carried && !fill.passed_on) {
      for (size_t k = 0; k < reduced->path.size(); ++k) {
        if (k >= src->path.size() || reduced->path[k] != src->path[k]) query.add(*reduced->path[k]);
      }
      require_reduced(query, *src, *dst, *reduced, offsets);
    }
    const Finding found = query.excludes(violation, budget_);
    if (found.verdict != ProofVerdict::Proved) warn(op, *fill.copy, *src, found);
  }

  void warn(const TileOp& op, const TileOp& copy, const Access& src, const Finding& found) {
    std::vector<Expr> mentioned = src.limits;
    for (const Range& r : src.ranges) mentioned.insert(mentioned.end(), {r.begin, r.extent});
    mentioned.insert(mentioned.end(), src.block_begin.begin(), src.block_begin.end());
    const std::string when = found.verdict == ProofVerdict::Unknown ? "" : mentioned_text(found.witness, mentioned);
    const std::string pad = src.buffer->dtype.is_bool() ? "False" : "0";
    out_.push_back({Code::ReducedPad,
                    op.span,
                    {{"operation", operation_text(op)},
                     {"buffer", op.region(0).buffer->name},
                     {"pad", pad},
                     {"tensor", src.buffer->name}},
                    {{copy.span, fmt::format("this copy reads past the end of {}'{}'{} and fills up with pad={}",
                                             src.placed ? "the core's block of " : "", src.buffer->name,
                                             when.empty() ? "" : fmt::format(" when {},", when), pad)}},
                    {fmt::format("give the copy a pad that does not change the result of the reduction: pad={}",
                                 neutral_pad(op.op, op.region(0).buffer->dtype))}});
  }

  const AccessModel model_;
  std::unordered_map<const StmtNode*, std::vector<const Access*>> accesses_;
  Fills fills_;
  std::unordered_map<const StmtNode*, std::vector<std::pair<Fills, Fills>>> followed_;
  std::vector<std::pair<const TileOp*, const TileOp*>> asked_;
  Budget budget_;
  std::vector<Diagnostic> out_;
};

}  // namespace

std::vector<Diagnostic> find_reduced_pads(const Function& f) {
  bool reduces = false;
  walk(f.body, [&](const Stmt& s) {
    const TileOp* op = as<TileOp>(s);
    reduces |= op && is_sensitive(op->op);
  });
  return reduces ? Padding(f).run() : std::vector<Diagnostic>();
}

}  // namespace helve::proofs
