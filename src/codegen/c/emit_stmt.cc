// Statements as C text.
// Names and facts are scoped to blocks; a line directive is printed where the text leaves the user's line.
#include <fmt/format.h>

#include "helve/codegen/c/c_emitter.h"
#include "helve/codegen/c/c_types.h"
#include "helve/ir/expr/visit.h"
#include "helve/ir/tensor/visit.h"
#include "helve/support/diagnostic.h"

namespace helve::c {

void CEmitter::line(const std::string& text, const Span& span) {
  if (line_directives_ && span.known() && (span.file != file_ || span.line != next_line_)) {
    out_.line(fmt::format("#line {} {}", span.line, quoted(*span.file)));
    file_ = span.file;
    next_line_ = span.line;
  }
  out_.line(text);
  ++next_line_;
}

void CEmitter::block(const std::string& head, const Span& span, const std::function<void()>& body) {
  line(head.empty() ? "{" : head + " {", span);
  {
    Place place(*this);
    TextDocument::Indent indent = out_.indent();
    body();
  }
  line("}");
}

void CEmitter::stmt(const Stmt& s) {
  if (!s) return;
  switch (s->kind) {
    case StmtKind::Seq: return seq(*as<Seq>(s));
    case StmtKind::Alloc: return alloc(*as<Alloc>(s));
    case StmtKind::Peer: return peer(*as<Peer>(s));
    case StmtKind::Bind: return bind(*as<Bind>(s));
    case StmtKind::Store: return store(*as<Store>(s));
    case StmtKind::For: return for_loop(*as<For>(s));
    case StmtKind::While: return while_loop(*as<While>(s));
    case StmtKind::If: return if_then(*as<If>(s));
    case StmtKind::TileOp: return tile_op(*as<TileOp>(s));
    case StmtKind::Role: return role(*as<Role>(s));
    case StmtKind::Outline: return block("", s->span, [&] { stmt(as<Outline>(s)->body); });
    case StmtKind::Report: return report(*as<Report>(s));
    case StmtKind::Prefetch:
    case StmtKind::Breakpoint:
    case StmtKind::TileStore:
    case StmtKind::ForTiles:
    case StmtKind::Kernel: break;
  }
  HELVE_FAIL("a statement that is not of the lowered form");
}

void CEmitter::seq(const Seq& s) {
  for (const Stmt& each : s.stmts) stmt(each);
}

std::string CEmitter::define(const VarRef& var, bool wide) {
  wide_[var.get()] = wide;
  return names_.define(var.get(), var->name);
}

void CEmitter::declare(const VarRef& var, const std::string& type, const std::string& value, const Span& span) {
  const std::string name = define(var, type == index_type(true));
  line(fmt::format("const {} {} = {};", type, name, value), span);
}

void CEmitter::bind(const Bind& s) {
  if (!used(s.var.get())) return;
  const CExpr value = expr(s.value);
  const bool index = s.var->dtype.is_index();
  const std::string type = index ? index_type(!narrow(Expr(s.var)) && !narrow(s.value)) : value_type(s.var->dtype);
  const bool again = names_.known(s.var.get());
  declare(s.var, type, value.text, s.span);
  if (index && !again) facts_.bind_value(s.var.get(), s.value);
}

void CEmitter::find_uses(const Stmt& body) {
  walk_exprs(body, [&](const Expr& e) {
    if (const Load* load = as<Load>(e)) used_.insert(load->buffer.get());
    if (const Misalignment* place = as<Misalignment>(e)) used_.insert(place->buffer.get());
    if (as<Var>(e)) used_.insert(e.get());
  });
  walk(body, [&](const Stmt& s) {
    if (const Store* store = as<Store>(s)) used_.insert(store->buffer.get());
    if (const Peer* other = as<Peer>(s)) used_.insert(other->source.get());
    const TileOp* op = as<TileOp>(s);
    for (size_t i = 0; op && i < op->operands.size(); ++i) {
      if (const Region* region = std::get_if<Region>(&op->operands[i])) used_.insert(region->buffer.get());
    }
  });
}

void CEmitter::assume(const Expr& condition, bool holds) {
  if (has_load(condition)) return;
  facts_.assume(holds ? condition : helve::apply(Op::Not, {condition}));
}

void CEmitter::if_then(const If& s) {
  line(fmt::format("if ({}) {{", text(s.condition)), s.span);
  auto side = [&](const Stmt& body, bool holds) {
    Place place(*this);
    TextDocument::Indent indent = out_.indent();
    assume(s.condition, holds);
    stmt(body);
  };
  side(s.then_body, true);
  if (s.else_body) {
    line("} else {");
    side(s.else_body, false);
  }
  line("}");
}

void CEmitter::while_loop(const While& s) {
  block(fmt::format("while ({})", text(s.condition)), s.span, [&] { stmt(s.body); });
}

/// Bounds have their values at the loop's entry, so memory that they read is read before the loop.
void CEmitter::serial_loop(const For& s, const std::string& pragma, const std::function<void()>& body) {
  HELVE_CHECK(s.vars.size() == 1, "a serial loop has one variable");
  const VarRef& var = s.vars[0];
  const Expr end = s.begins[0] + s.extents[0];
  const int64_t* begin = int_value(s.begins[0]);
  const Expr last = begin && *begin == 0 ? s.extents[0] : end;
  const bool wide = !(narrow(Expr(var)) || (narrow(s.begins[0]) && narrow(end))) || !narrow(last);
  std::string limit = text(last, precedence_of("<") + 1);
  Place place(*this);
  const std::string start = text(s.begins[0]);
  if (has_load(last)) {
    const std::string name = names_.fresh(var->name + "_end");
    line(fmt::format("const {} {} = {};", index_type(wide), name, limit), s.span);
    limit = name;
  }
  facts_.bind_loop(var, s.begins[0], s.extents[0]);
  const std::string name = define(var, wide);
  if (!pragma.empty()) line("#pragma " + pragma, s.span);
  block(fmt::format("for ({} {} = {}; {} < {}; ++{})", index_type(wide), name, start, name, limit, name),
        pragma.empty() ? s.span : Span{}, body);
}

void CEmitter::for_loop(const For& s) {
  switch (s.loop) {
    case LoopKind::Thread: return thread_loop(s);
    case LoopKind::Vectorized: return vector_loop(s);
    case LoopKind::Serial: return serial_loop(s, s.scheduled || s.rolled ? "unroll 1" : "", [&] { stmt(s.body); });
    case LoopKind::Unroll: return serial_loop(s, "unroll", [&] { stmt(s.body); });
    case LoopKind::Parallel:
    case LoopKind::Pipelined:
    case LoopKind::Persistent: break;
  }
  HELVE_FAIL("a loop that is not of the thread form: " + std::string(to_string(s.loop)));
}

}  // namespace helve::c
