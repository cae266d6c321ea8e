// The first product of the next turn begins before the last one of this turn.
// Input: kernels with rings, before operations are lowered. Output: a loop whose turns multiply, compute and multiply
// again has its last product one turn later: both products of an iteration are then independent, and what threads
// compute between them runs beside the second. Results are bitwise the same: each buffer is accessed in the order that
// it was, since the first product and what it needs share nothing with the second that either writes.
//
// The rule: a serial loop around exactly two products of warpgroups, each with a ring of its own; the second product
// and its copies stand last.
// Before:  for j in T.serial(n):             After:  if 0 < n:
//              ... k[j] ...                              ... k[0] ...
//              T.gemm(q, k, s)                           T.gemm(q, k, s)
//              T.copy(s, p)                              T.copy(s, p)
//              ... v[j] ...                              for i in T.serial(n - 1):
//              T.gemm(p, v, o)                               ... k[i + 1] ...
//                                                            T.gemm(q, k, s)
//                                                            ... v[i] ...
//                                                            T.gemm(p, v, o)
//                                                            T.copy(s, p)
//                                                        ... v[n - 1] ...
//                                                        T.gemm(p, v, o)
#include <algorithm>
#include <optional>

#include "helve/analysis/early_copies.h"
#include "helve/analysis/effects.h"
#include "helve/arith/simplify.h"
#include "helve/dispatch/group_products.h"
#include "helve/ir/tensor/renewed.h"
#include "helve/ir/tensor/ring.h"
#include "helve/ir/tensor/visit.h"
#include "helve/transform/passes.h"
#include "scope_facts.h"

namespace helve {

namespace {

/// The statements of a turn, in order. Releases give back the slots of the product before.
struct Turn {
  std::vector<Stmt> first, first_releases, between, second, second_releases;
};

std::optional<RingEvent> event_of(const Stmt& s) {
  const TileOp* op = as<TileOp>(s);
  return op ? ring_event(*op) : std::nullopt;
}

bool fills_ring(const Stmt& s) {
  const TileOp* op = as<TileOp>(s);
  return op && op->begins_copy() && op->barriers() && is_ring(*op->barriers()->buffer);
}

bool is_release(const Stmt& s) { return event_of(s) == RingEvent::Release; }

/// Is it, or does it contain, what fills a ring or takes from one?
bool touches_ring(const Stmt& s) {
  bool out = false;
  walk(s, [&](const Stmt& each) { out |= event_of(each).has_value() || fills_ring(each); });
  return out;
}

/// May two statements of different turns change places: does neither write what the other one accesses?
bool independent(const std::vector<Stmt>& a, const std::vector<Stmt>& b) {
  const auto effects = [](const std::vector<Stmt>& each) {
    std::vector<BufferEffect> out;
    for (const Stmt& s : each) {
      for (BufferEffect& effect : buffer_effects(s)) out.push_back(std::move(effect));
    }
    return out;
  };
  const std::vector<BufferEffect> one = effects(a), other = effects(b);
  return std::none_of(one.begin(), one.end(), [&](const BufferEffect& x) {
    return std::any_of(other.begin(), other.end(),
                       [&](const BufferEffect& y) { return x.buffer == y.buffer && (x.written || y.written); });
  });
}

bool touches(const Stmt& s, const std::vector<Stmt>& others) { return !independent({s}, others); }

class Rotation final : public ScopedRewriter {
 public:
  Rotation(const Function& f, const PassOptions& options) : ScopedRewriter(f), function_(f), options_(options) {}

 protected:
  Stmt leave(const Stmt& s, const Facts& facts) override {
    const For* loop = as<For>(s);
    if (!loop || loop->loop != LoopKind::Serial || loop->scheduled || !enclosing_kernel()) return s;
    const std::optional<Turn> turn = turn_of(*loop);
    if (!turn || !independent(turn->first, turn->second)) return s;
    if (options_.choices) options_.choices->push_back({"T.Pipelined", s->span, "rotated products", {}});
    return rotated(*loop, *turn, facts);
  }

 private:
  bool multiplies(const Stmt& s) const {
    const Facts none;
    LoweringContext context;
    context.function = &function_;
    context.kernel = enclosing_kernel();
    context.facts = &none;
    context.machine = &options_.machine;
    return multiplies_by_groups(s, context);
  }

  /// The statements of a body, with values in the place of its names, which another turn has not; a name of what memory
  /// holds stays.
  static std::vector<Stmt> unnamed(const std::vector<Stmt>& body) {
    std::vector<Stmt> out;
    Substitution values;
    for (const Stmt& s : body) {
      const Stmt known = values.empty() ? s : substitute(s, values);
      const Bind* name = as<Bind>(known);
      const bool stands = name && !has_load(name->value) && add_value(values, name->var, name->value);
      if (!stands) out.push_back(known);
    }
    return out;
  }

  /// The parts of the loop's body; nothing if it has another form.
  std::optional<Turn> turn_of(const For& loop) const {
    const std::vector<Stmt> written = statements_of(loop.body);
    if (std::none_of(written.begin(), written.end(), is_release)) return std::nullopt;
    const std::vector<Stmt> body = unnamed(written);
    std::vector<size_t> products;
    for (size_t i = 0; i < body.size(); ++i) {
      if (body[i]->kind == StmtKind::Alloc || body[i]->kind == StmtKind::Bind) return std::nullopt;
      if (!multiplies(body[i])) continue;
      if (!as<TileOp>(body[i])) return std::nullopt;
      products.push_back(i);
    }
    if (products.size() != 2) return std::nullopt;
    size_t begin = products[1];
    while (begin > 0 && touches_ring(body[begin - 1]) && !is_release(body[begin - 1])) --begin;
    const auto at = [&](size_t i) { return body.begin() + static_cast<std::ptrdiff_t>(i); };
    const auto end_of_releases = [&](size_t i) { return std::find_if_not(at(i), body.end(), is_release); };
    const auto released = end_of_releases(products[0] + 1);
    if (begin <= products[0] || released > at(begin) || end_of_releases(products[1] + 1) != body.end()) {
      return std::nullopt;
    }
    Turn out{{body.begin(), at(products[0] + 1)},
             {at(products[0] + 1), released},
             {released, at(begin)},
             {at(begin), at(products[1] + 1)},
             {at(products[1] + 1), body.end()}};
    const bool apart = !out.first_releases.empty() && !out.second_releases.empty() &&
                       std::none_of(out.between.begin(), out.between.end(), touches_ring);
    return apart ? std::optional(std::move(out)) : std::nullopt;
  }

  static Stmt rotated(const For& loop, const Turn& turn, const Facts& facts) {
    const Expr begin = loop.begins[0], extent = loop.extents[0];
    const VarRef var = make_var(loop.vars[0]->name, loop.vars[0]->dtype);
    const auto at = [&](const std::vector<Stmt>& part, const Expr& iteration) {
      return substitute(renewed(seq(part)), {{loop.vars[0].get(), simplify(iteration, facts)}});
    };
    const Expr now = Expr(var) + begin, next = now + int_imm(1);
    std::vector<Stmt> body = {at(turn.first, next), at(turn.second, now), at(turn.first_releases, next)};
    // The second product's slots are free where threads first touch what it uses: there they wait for it.
    const auto met =
        std::find_if(turn.between.begin(), turn.between.end(), [&](const Stmt& s) { return touches(s, turn.second); });
    body.push_back(at({turn.between.begin(), met}, next));
    body.push_back(at(turn.second_releases, now));
    body.push_back(at({met, turn.between.end()}, next));
    const Expr last = begin + extent - int_imm(1);
    const Stmt all = seq({at(turn.first, begin), at(turn.first_releases, begin), at(turn.between, begin),
                          for_loop(LoopKind::Serial, std::vector<VarRef>{var}, {int_imm(0)},
                                   {simplify(extent - int_imm(1), facts)}, seq(std::move(body)), 1, loop.span),
                          at(turn.second, last), at(turn.second_releases, last)},
                         loop.span);
    return if_then(simplify(less(int_imm(0), extent), facts), all, {}, loop.span);
  }

  const Function& function_;
  const PassOptions& options_;
};

}  // namespace

FunctionRef rotate_products(const FunctionRef& f, const PassOptions& options) {
  if (!options.machine.is_gpu() || !options.machine.group_products) return f;
  return with_body(f, Rotation(*f, options).rewrite(f->body));
}

}  // namespace helve
