// A walk over vectors as loops that store whole lines of the cache around the caches.
// Vectors begin at the first line of the walk. What is left of it are lines that make no whole vector, and parts of a
// line before the first and after the last one, of which the lanes that are elements of the walk are on.
#include "line_walk.h"

#include "helve/analysis/element_address.h"
#include "helve/arith/simplify.h"
#include "helve/ir/tensor/renewed.h"
#include "helve/ir/tensor/visit.h"

namespace helve {

namespace {

constexpr int64_t kPage = 4096;  // bytes
constexpr int64_t kMaxTurns = 4;

class LineWalk {
 public:
  LineWalk(const VectorWalk& walk, int64_t line)
      : walk_(walk),
        line_(line),
        bytes_(walk.store->buffer->dtype.bytes()),
        line_lanes_(line / bytes_),
        elements_(simplify(walk.vectors * int_imm(walk.lanes))),
        span_(walk.store->span) {}

  Stmt loops() const {
    const VarRef skip = make_var("skip");
    return seq({bind(skip, skipped(), span_), vectors(skip), ends(skip)}, span_);
  }

 private:
  /// The number of elements up to the first line.
  Expr skipped() const {
    const Buffer& buffer = *walk_.store->buffer;
    const Substitution at_first = {{walk_.position.get(), walk_.first}};
    std::vector<Expr> indices;
    for (const Expr& index : walk_.store->indices) indices.push_back(substitute(index, at_first));
    const Expr base = floor_div(misalignment(walk_.store->buffer, line_), int_imm(bytes_));
    return simplify(floor_mod(int_imm(0) - (base + flat_address(buffer, indices)), int_imm(line_lanes_)));
  }

  /// A vector whose lanes are the positions from `offset` on, counted from the first one. Lanes that are `guarded`
  /// store where they are elements of the walk; others store lines.
  Stmt vector(const Expr& offset, int64_t lanes, bool guarded) const {
    const VarRef lane = make_var(walk_.lane->name);
    const Expr at = offset + Expr(lane);
    Stmt body = substitute(walk_.body, {{walk_.position.get(), walk_.first + at}, {walk_.lane.get(), Expr(lane)}});
    body = simplified(body);
    if (guarded) {
      const Expr inside = logical_and(apply(Op::Ge, {at, int_imm(0)}), less(at, elements_));
      body = if_then(simplify(inside), without_prefetches(body), {}, span_);
    } else {
      body = around_caches(body);
    }
    std::vector<Stmt> out = walk_.allocations;
    out.push_back(for_loop(LoopKind::Vectorized, lane, int_imm(lanes), body, span_));
    return renewed(seq(std::move(out), span_));
  }

  static Stmt simplified(const Stmt& s) {
    return rewrite(s, [](const Stmt& each) { return each; }, [](const Expr& e) { return simplify(e); });
  }

  static Stmt without_prefetches(const Stmt& s) {
    return rewrite(s, [](const Stmt& each) { return as<Prefetch>(each) ? seq({}) : each; });
  }

  Stmt around_caches(const Stmt& s) const {
    const Buffer* tensor = walk_.store->buffer.get();
    return rewrite(s, [&](const Stmt& each) -> Stmt {
      const Store* n = as<Store>(each);
      if (!n || n->buffer.get() != tensor) return each;
      return Stmt(copy_with(*n, [&](Store& out) { out.piece = line_; }));
    });
  }

  /// All whole vectors from the first line on.
  Stmt vectors(const VarRef& skip) const {
    const Expr count = simplify(walk_.vectors - min(Expr(skip), int_imm(1)));
    const VarRef turn = make_var("v");
    const auto loop = [&](const Expr& at, std::vector<Stmt> before) {
      before.push_back(vector(simplify(Expr(skip) + at * int_imm(walk_.lanes)), walk_.lanes, false));
      return for_loop(LoopKind::Serial, turn, count, seq(std::move(before), span_), span_);
    };
    const int64_t turns = turns_of();
    if (turns == 1) return loop(turn, {});
    const VarRef part = make_var("part"), at = make_var("at");
    const Expr inside = less(turn, Expr(part) * int_imm(turns));
    const Expr own = floor_div(turn, int_imm(turns)) + floor_mod(turn, int_imm(turns)) * Expr(part);
    return seq({bind(part, part_of(count, turns), span_), loop(at, {bind(at, select(inside, own, turn), span_)})},
               span_);
  }

  /// The number of parts that take turns: each has a page or more. If only the call knows, the most.
  int64_t turns_of() const {
    const int64_t* count = int_value(walk_.vectors);
    int64_t turns = kMaxTurns;
    while (count && turns > 1 && *count < least_of(turns)) turns /= 2;
    return turns;
  }

  /// The vectors of a walk of so many parts, at least.
  int64_t least_of(int64_t turns) const { return kPage * turns / (walk_.lanes * bytes_); }

  /// The vectors of a part, an odd number: parts that are a multiple of a page apart would meet in the first-level
  /// cache. What makes no whole round comes last.
  Expr part_of(const Expr& count, int64_t turns) const {
    const Expr halves = floor_div(floor_div(count, int_imm(turns)) + int_imm(1), int_imm(2));
    const Expr part = halves * int_imm(2) - int_imm(1);
    if (int_value(walk_.vectors)) return simplify(part);
    return simplify(select(less(walk_.vectors, int_imm(least_of(turns))), int_imm(0), part));
  }

  /// What the vectors leave where the walk does not begin at a line: it ends as many elements before one.
  Stmt ends(const VarRef& skip) const {
    const VarRef w = make_var("w"), end = make_var("end");
    const Expr last = Expr(skip) + elements_ - int_imm(walk_.lanes);
    const int64_t lines = walk_.lanes / line_lanes_ - 1;
    std::vector<Stmt> out;
    if (lines > 1) {
      const Expr at = simplify(last + Expr(w) * int_imm(line_lanes_));
      out.push_back(for_loop(LoopKind::Serial, w, int_imm(lines), vector(at, line_lanes_, false), span_));
    } else if (lines == 1) {
      out.push_back(vector(simplify(last), line_lanes_, false));
    }
    const Expr at = simplify(Expr(skip) - int_imm(line_lanes_) + Expr(end) * elements_);
    out.push_back(for_loop(LoopKind::Serial, end, int_imm(2), vector(at, line_lanes_, true), span_));
    const Expr any = logical_and(less(int_imm(0), Expr(skip)), less(int_imm(0), elements_));
    return if_then(simplify(any), seq(std::move(out), span_), {}, span_);
  }

  const VectorWalk& walk_;
  const int64_t line_;
  const int64_t bytes_;
  const int64_t line_lanes_;
  const Expr elements_;
  const Span span_;
};

}  // namespace

Stmt line_walk(const VectorWalk& walk, int64_t line) { return LineWalk(walk, line).loops(); }

}  // namespace helve
