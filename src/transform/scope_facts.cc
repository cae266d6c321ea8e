// Rewriting with the facts that hold at each place.
// A fact enters with the statement that makes it true and leaves with it, so no pass can use it elsewhere. Code that
// never runs is removed, not rewritten: from a contradiction a pass could derive subscripts that fault.
#include "scope_facts.h"

#include <optional>

#include "certain_faults.h"
#include "helve/arith/simplify.h"
#include "helve/ir/tensor/call_facts.h"
#include "helve/ir/tensor/visit.h"

namespace helve {

namespace {

/// The parts of a condition that hold whatever is stored under it.
void assume_lasting(Facts& facts, const Expr& condition, bool value) {
  const Apply* node = as<Apply>(condition);
  if (node && node->op == Op::Not) return assume_lasting(facts, node->args[0], !value);
  if (node && node->op == (value ? Op::And : Op::Or)) {
    for (const Expr& part : node->args) assume_lasting(facts, part, value);
  } else if (!has_load(condition)) {
    facts.assume(value ? condition : apply(Op::Not, {condition}));
  }
}

}  // namespace

void enter_loop(Facts& facts, const VarRef& var, const Expr& begin, const Expr& extent) {
  if (!has_load(begin) && !has_load(extent)) return facts.bind_loop(var, begin, extent);
  const Interval first = interval_of(begin, facts);
  facts.bind(var, {first.low, (first + interval_of(extent, facts) + Interval::point(-1)).high});
}

ScopedRewriter::ScopedRewriter(const Function& f) : top_(facts_of_calls(f)), mesh_(f.mesh ? &*f.mesh : nullptr) {}

Stmt ScopedRewriter::rewrite(const Stmt& s) {
  const Stmt out = rewrite_under(s, top_);
  return out == s ? s : without_any_fault(out, mesh_);
}

Stmt ScopedRewriter::rewrite_under(const Stmt& s, const Facts& facts) {
  if (!s) return s;
  if (facts.contradictory()) return seq({}, s->span);
  if (const Seq* n = as<Seq>(s)) return rewrite_seq(*n, s, facts);
  if (const If* n = as<If>(s)) return leave(rewrite_if(*n, s, facts), facts);
  // Subscripts of a tile statement must be the loop's variables, so a variable with one value must not become a
  // constant there.
  if (as<TileStore>(s)) return leave(s, facts);
  std::optional<Facts> own;  // of a statement with variables; other statements use those around them
  const auto enter = [&](const VarRef& var, const Expr& begin, const Expr& extent) {
    if (!own) own = facts;
    enter_loop(*own, var, begin, extent);
  };
  const Kernel* outer_kernel = kernel_;
  if (const For* n = as<For>(s)) {
    for (size_t d = 0; d < n->vars.size(); ++d) enter(n->vars[d], n->begins[d], n->extents[d]);
  } else if (const Kernel* n = as<Kernel>(s)) {
    for (size_t d = 0; d < n->vars.size(); ++d) enter(n->vars[d], int_imm(0), n->extents[d]);
    kernel_ = n;
  } else if (const ForTiles* n = as<ForTiles>(s)) {
    for (size_t d = 0; d < n->vars.size(); ++d) {
      enter(n->vars[d], int_imm(0), ceil_div(n->buffer->shape[d], int_imm(n->buffer->tile[d])));
    }
  }
  const Facts& inner = own ? *own : facts;
  if (inner.contradictory() && !as<Kernel>(s)) return seq({}, s->span);
  Stmt out = map_parts(
      s, [&](const Expr& e) { return expression(e, facts); },
      [&](const Stmt& part) { return rewrite_under(part, inner); });
  kernel_ = outer_kernel;
  return leave(out, facts);
}

Stmt ScopedRewriter::rewrite_seq(const Seq& s, const Stmt& self, const Facts& facts) {
  Facts inner = facts;
  std::vector<Stmt> out;
  bool changed = false;
  for (const Stmt& part : s.stmts) {
    out.push_back(rewrite_under(part, inner));
    changed |= out.back() != part;
    if (const Bind* b = as<Bind>(out.back()); b && b->var->dtype.is_index()) {
      inner.bind_value(b->var.get(), b->value);
    }
  }
  return leave(changed ? seq(std::move(out), s.span) : self, facts);
}

Stmt ScopedRewriter::rewrite_if(const If& s, const Stmt& self, const Facts& facts) {
  Expr condition = expression(s.condition, facts);
  Facts holds = facts, fails = facts;
  assume_lasting(holds, condition, true);
  assume_lasting(fails, condition, false);
  Stmt then_body = rewrite_under(s.then_body, holds);
  Stmt else_body = rewrite_under(s.else_body, fails);
  if (holds.contradictory()) return else_body ? else_body : seq({}, s.span);
  if (fails.contradictory()) return then_body;
  if (condition == s.condition && then_body == s.then_body && else_body == s.else_body) return self;
  return if_then(condition, then_body, else_body, s.span);
}

}  // namespace helve
