// Construction of statements.
// Conversions that the language makes silently (a store's rounding) happen here; shapes are the verifier's business.
#include "helve/ir/tensor/stmt.h"

#include <fmt/format.h>

#include "helve/support/diagnostic.h"
#include "helve/support/report.h"

namespace helve {

std::string_view to_string(LoopKind kind) {
  switch (kind) {
    case LoopKind::Serial: return "serial";
    case LoopKind::Unroll: return "unroll";
    case LoopKind::Vectorized: return "vectorized";
    case LoopKind::Parallel: return "Parallel";
    case LoopKind::Pipelined: return "Pipelined";
    case LoopKind::Thread: return "threads";
    case LoopKind::Persistent: return "Persistent";
  }
  __builtin_unreachable();
}

std::string_view to_string(StoreMode mode) {
  switch (mode) {
    case StoreMode::Write: return "write";
    case StoreMode::AtomicAdd: return "atomic_add";
    case StoreMode::AtomicMax: return "atomic_max";
    case StoreMode::AtomicMin: return "atomic_min";
    case StoreMode::Add: return "add";
    case StoreMode::Mul: return "mul";
    case StoreMode::Max: return "max";
    case StoreMode::Min: return "min";
  }
  __builtin_unreachable();
}

bool is_atomic(StoreMode mode) {
  return mode == StoreMode::AtomicAdd || mode == StoreMode::AtomicMax || mode == StoreMode::AtomicMin;
}

bool is_update(StoreMode mode) { return mode != StoreMode::Write && !is_atomic(mode); }

Op combining_operator(StoreMode mode) {
  switch (mode) {
    case StoreMode::Add:
    case StoreMode::AtomicAdd: return Op::Add;
    case StoreMode::Mul: return Op::Mul;
    case StoreMode::Max:
    case StoreMode::AtomicMax: return Op::Max;
    case StoreMode::Min:
    case StoreMode::AtomicMin: return Op::Min;
    case StoreMode::Write: break;
  }
  HELVE_FAIL("a store that combines nothing");
}

StoreMode atomic_mode(TileOpcode op) {
  switch (op) {
    case TileOpcode::AtomicAdd: return StoreMode::AtomicAdd;
    case TileOpcode::AtomicMax: return StoreMode::AtomicMax;
    case TileOpcode::AtomicMin: return StoreMode::AtomicMin;
    default: HELVE_FAIL("not an atomic operation");
  }
}

bool admits_atomics(const Buffer& buffer) {
  const DType t = buffer.dtype;
  const bool reachable = buffer.scope != MemoryScope::Fragment && buffer.scope != MemoryScope::Local;
  const bool whole_word = (t.is_float() || t.is_data_int()) && t.bits >= 32;
  return reachable && (whole_word || (t.is_float() && t.bits == 16));
}

void refuse_depth(const StmtNode& part) {
  const int64_t depth = part.depth() + 1;
  throw UserError(Code::NestingDepth, part.span,
                  {{"what", "a statement"}, {"depth", depth}, {"limit", int64_t{kStmtDepthLimit}}});
}

namespace {

template <class N, class Fill>
Ref<N> make(Span span, Fill&& fill) {
  Ref<N> node = make_ref<N>();
  node->span = span;
  fill(*node);
  measure(*node);
  return node;
}

void require_index(const Expr& e, const char* what, Span span) {
  if (e->dtype.is_index()) return;
  throw UserError(Code::WrongType, e->span.known() ? e->span : span,
                  {{"what", what}, {"given", to_string(e->dtype)}, {"expected", "an index"}});
}

void require_extent(const Expr& e, Span span) { require_index(e, "a loop bound", span); }

void require_bool(const Expr& e, Span span) {
  if (e->dtype.is_bool()) return;
  throw UserError(Code::WrongType, e->span.known() ? e->span : span,
                  {{"what", "a condition"}, {"given", to_string(e->dtype)}, {"expected", "bool"}}, {},
                  {"compare it, for example with '!= 0'"});
}

/// A Store or TileStore of the value converted to the buffer's dtype.
template <class N>
Ref<N> make_store(BufferRef buffer, std::vector<Expr> indices, Expr value, Span span) {
  check_indices(*buffer, indices, span);
  value = convert_for_store(std::move(value), buffer->dtype, value->span.known() ? value->span : span);
  return make<N>(span, [&](N& n) {
    n.buffer = std::move(buffer);
    n.indices = std::move(indices);
    n.value = std::move(value);
  });
}

}  // namespace

Stmt seq(std::vector<Stmt> stmts, Span span) {
  std::vector<Stmt> flat;
  for (Stmt& s : stmts) {
    if (const Seq* inner = as<Seq>(s)) {
      flat.insert(flat.end(), inner->stmts.begin(), inner->stmts.end());
    } else if (s) {
      flat.push_back(std::move(s));
    }
  }
  if (flat.size() == 1) return flat[0];
  return make<Seq>(span, [&](Seq& n) { n.stmts = std::move(flat); });
}

Stmt alloc(BufferRef buffer, Span span) {
  return make<Alloc>(span, [&](Alloc& n) { n.buffer = std::move(buffer); });
}

Stmt peer(BufferRef buffer, BufferRef source, std::vector<Expr> core, Span span) {
  for (const Expr& e : core) require_index(e, "a coordinate of a core", span);
  return make<Peer>(span, [&](Peer& n) {
    n.buffer = std::move(buffer);
    n.source = std::move(source);
    n.core = std::move(core);
  });
}

Stmt bind(VarRef var, Expr value, Span span) {
  HELVE_CHECK(var->dtype == value->dtype, "a bind of another dtype");
  return make<Bind>(span, [&](Bind& n) {
    n.var = std::move(var);
    n.value = std::move(value);
  });
}

Stmt store(BufferRef buffer, std::vector<Expr> indices, Expr value, Span span, StoreMode mode) {
  if (is_update(mode)) return update(std::move(buffer), std::move(indices), std::move(value), mode, span);
  Ref<Store> n = make_store<Store>(std::move(buffer), std::move(indices), std::move(value), span);
  n->mode = mode;
  return Stmt(n);
}

Stmt fetch(VarRef previous, BufferRef buffer, std::vector<Expr> indices, Expr value, StoreMode mode, Span span) {
  HELVE_CHECK(is_atomic(mode) && previous->dtype == buffer->dtype, "what stood before an atomic store has its dtype");
  Ref<Store> n = make_store<Store>(std::move(buffer), std::move(indices), std::move(value), span);
  n->mode = mode;
  n->previous = std::move(previous);
  return Stmt(n);
}

VarRef named_by(const Stmt& s) {
  if (const Bind* n = as<Bind>(s)) return n->var;
  const Store* n = as<Store>(s);
  return n ? n->previous : VarRef();
}

Stmt update(BufferRef buffer, std::vector<Expr> indices, const Operand& value, StoreMode mode, Span span) {
  HELVE_CHECK(is_update(mode), "an update by a mode that is none");
  const Expr old = load(buffer, indices, span);
  if (buffer->dtype.is_bool()) {
    throw UserError(
        Code::WrongType, span,
        {{"what", fmt::format("'{}' in T.update", buffer->name)}, {"given", "bool"}, {"expected", "a number"}}, {},
        {"store the value of 'and' or 'or'"});
  }
  const Expr* typed = std::get_if<Expr>(&value);
  const Expr operand = typed ? *typed : constant_of(value, buffer->dtype, span);
  convert_for_store(operand, buffer->dtype, operand->span.known() ? operand->span : span);
  const Expr combined = apply(combining_operator(mode), {old, operand}, span);
  return make<Store>(span, [&](Store& n) {
    n.mode = mode;
    n.buffer = std::move(buffer);
    n.indices = std::move(indices);
    n.value = as<Apply>(combined)->args[1];
  });
}

Stmt store_nontemporal(BufferRef buffer, std::vector<Expr> indices, Expr value, int64_t piece, Span span) {
  Ref<Store> n = make_store<Store>(std::move(buffer), std::move(indices), std::move(value), span);
  n->piece = piece;
  return Stmt(n);
}

Stmt store_vector(BufferRef buffer, std::vector<Expr> indices, Expr value, int64_t width, Span span) {
  Ref<Store> n = make_store<Store>(std::move(buffer), std::move(indices), std::move(value), span);
  n->width = width;
  return Stmt(n);
}

Stmt prefetch(BufferRef buffer, std::vector<Expr> indices, Span span) {
  check_index_types(*buffer, indices, span);
  return make<Prefetch>(span, [&](Prefetch& n) {
    n.buffer = std::move(buffer);
    n.indices = std::move(indices);
  });
}

Stmt report(bool fault, std::string text, std::vector<std::string> names, std::vector<Expr> values, int64_t around,
            Span span) {
  const auto count = static_cast<int64_t>(values.size());
  HELVE_CHECK(names.size() == values.size() && 0 <= around && around <= count, "a report needs a name for each value");
  if (count > kMostReported) {
    throw UserError(Code::BadArgument, span,
                    {{"function", std::string(fault ? "T.fail" : "T.print")},
                     {"parameter", std::string("values")},
                     {"value", fmt::format("{} values", count)},
                     {"reason", fmt::format("it takes {}, with those of the loops around it", kMostReported)},
                     {"remedy", std::string("give fewer")}});
  }
  return make<Report>(span, [&](Report& n) {
    n.fault = fault;
    n.text = std::move(text);
    n.names = std::move(names);
    n.values = std::move(values);
    n.around = around;
  });
}

Stmt breakpoint(std::vector<std::string> names, std::vector<Expr> values, std::vector<BufferRef> buffers, Span span) {
  HELVE_CHECK(names.size() == values.size() + buffers.size(), "a breakpoint needs a name for all that it shows");
  return make<Breakpoint>(span, [&](Breakpoint& n) {
    n.names = std::move(names);
    n.values = std::move(values);
    for (BufferRef& buffer : buffers) n.buffers.push_back(whole_region(std::move(buffer)));
  });
}

Stmt tile_store(BufferRef buffer, std::vector<Expr> indices, Expr value, Span span) {
  return make_store<TileStore>(std::move(buffer), std::move(indices), std::move(value), span);
}

Stmt for_loop(LoopKind kind, std::vector<VarRef> vars, std::vector<Expr> begins, std::vector<Expr> extents, Stmt body,
              int num_stages, Span span, bool scheduled) {
  HELVE_CHECK(vars.size() == begins.size() && vars.size() == extents.size(), "a loop needs bounds for each variable");
  HELVE_CHECK(vars.size() == 1 || kind == LoopKind::Parallel || kind == LoopKind::Persistent,
              "only parallel loops have several variables");
  for (const Expr& e : begins) require_extent(e, span);
  for (const Expr& e : extents) require_extent(e, span);
  return make<For>(span, [&](For& n) {
    n.loop = kind;
    n.vars = std::move(vars);
    n.begins = std::move(begins);
    n.extents = std::move(extents);
    n.num_stages = num_stages == 0 ? 1 : num_stages;  // both are no overlap
    n.scheduled = scheduled;
    n.body = std::move(body);
  });
}

Stmt rolled(const Stmt& loop) {
  const For* n = as<For>(loop);
  HELVE_CHECK(n && (n->loop == LoopKind::Serial || n->loop == LoopKind::Parallel),
              "only serial and parallel loops are rolled");
  return copy_with(*n, [](For& out) { out.rolled = true; });
}

Stmt for_loop(LoopKind kind, VarRef var, Expr extent, Stmt body, Span span) {
  return for_loop(kind, std::vector<VarRef>{std::move(var)}, {int_imm(0)}, {std::move(extent)}, std::move(body), 1,
                  span);
}

Stmt serial_nest(const For& loop, Stmt body) {
  for (size_t d = loop.vars.size(); d-- > 0;) {
    body = for_loop(LoopKind::Serial, std::vector<VarRef>{loop.vars[d]}, {loop.begins[d]}, {loop.extents[d]}, body, 1,
                    loop.span, loop.scheduled);
  }
  return body;
}

Stmt for_tiles(BufferRef buffer, std::vector<VarRef> vars, bool parallel, Stmt body, Span span) {
  return make<ForTiles>(span, [&](ForTiles& n) {
    n.buffer = std::move(buffer);
    n.vars = std::move(vars);
    n.parallel = parallel;
    n.body = std::move(body);
  });
}

Stmt while_loop(Expr condition, Stmt body, Span span) {
  require_bool(condition, span);
  return make<While>(span, [&](While& n) {
    n.condition = std::move(condition);
    n.body = std::move(body);
  });
}

Stmt if_then(Expr condition, Stmt then_body, Stmt else_body, Span span) {
  require_bool(condition, span);
  return make<If>(span, [&](If& n) {
    n.condition = std::move(condition);
    n.then_body = std::move(then_body);
    n.else_body = std::move(else_body);
  });
}

Stmt kernel(std::vector<VarRef> vars, std::vector<Expr> extents, int64_t threads, Stmt body, Span span) {
  HELVE_CHECK(vars.size() == extents.size(), "a grid needs a variable for each extent");
  for (const Expr& e : extents) require_index(e, "a grid extent", span);
  return make<Kernel>(span, [&](Kernel& n) {
    n.vars = std::move(vars);
    n.extents = std::move(extents);
    n.threads = threads;
    n.body = std::move(body);
  });
}

Stmt role(int64_t first, int64_t threads, int64_t registers, bool elect, Stmt body, Span span) {
  return make<Role>(span, [&](Role& n) {
    n.first = first;
    n.threads = threads;
    n.registers = registers;
    n.elect = elect;
    n.body = std::move(body);
  });
}

Stmt outline(Stmt body, Span span) {
  return make<Outline>(span, [&](Outline& n) { n.body = std::move(body); });
}

namespace {

bool fits(const TileOperand& operand, const TileParam& param) {
  switch (param.kind) {
    case ParamKind::In:
    case ParamKind::Out:
    case ParamKind::InOut: return std::holds_alternative<Region>(operand);
    case ParamKind::Source: return std::holds_alternative<Region>(operand) || std::holds_alternative<Expr>(operand);
    case ParamKind::Value: return std::holds_alternative<Expr>(operand);
    case ParamKind::Coord: return std::holds_alternative<std::vector<Expr>>(operand);
    case ParamKind::Index: return std::holds_alternative<Expr>(operand) && std::get<Expr>(operand)->dtype.is_index();
    case ParamKind::Map:
      return std::holds_alternative<IndexMap>(operand) || (!param.required() && std::holds_alternative<bool>(operand));
    case ParamKind::Integer: return std::holds_alternative<int64_t>(operand);
    case ParamKind::Flag: return std::holds_alternative<bool>(operand);
    case ParamKind::Text:
    case ParamKind::Axes: return std::holds_alternative<std::string>(operand);
    case ParamKind::Layout: return std::holds_alternative<Layout>(operand);
    case ParamKind::Barriers:
      return std::holds_alternative<Region>(operand) || (!param.required() && std::holds_alternative<bool>(operand));
  }
  __builtin_unreachable();
}

/// A scalar operand takes the dtype of what is written.
DType written_dtype(const TileOpRow& row, const std::vector<TileOperand>& operands) {
  for (size_t i = 0; i < row.params.size(); ++i) {
    if (row.params[i].writes()) return std::get<Region>(operands[i]).buffer->dtype;
  }
  HELVE_FAIL(fmt::format("'{}' writes nothing", row.python));
}

/// What a parameter is where nothing is given for it.
TileOperand fallback(const TileParam& param, const TileOpRow& row, const std::vector<TileOperand>& operands) {
  HELVE_CHECK(!param.required(), fmt::format("'{}' needs an operand '{}'", row.python, param.name));
  switch (param.kind) {
    case ParamKind::Value: {
      const double number = std::get<double>(param.fallback);
      const DType dtype = written_dtype(row, operands);
      if (dtype.is_bool()) return constant_of(number != 0, dtype);
      return dtype.is_float() ? constant_of(number, dtype) : constant_of(static_cast<int64_t>(number), dtype);
    }
    case ParamKind::Index: return int_imm(std::get<int64_t>(param.fallback));
    case ParamKind::Integer: return std::get<int64_t>(param.fallback);
    case ParamKind::Map:
    case ParamKind::Flag:
    case ParamKind::Barriers: return std::get<bool>(param.fallback);
    case ParamKind::Text:
    case ParamKind::Axes: return std::string(std::get<std::string_view>(param.fallback));
    case ParamKind::In:
    case ParamKind::Out:
    case ParamKind::InOut:
    case ParamKind::Source:
    case ParamKind::Layout:
    case ParamKind::Coord: break;
  }
  HELVE_FAIL(fmt::format("'{}' of '{}' has no default", param.name, row.python));
}

}  // namespace

Stmt tile_op(TileOpcode op, std::vector<TileOperand> operands, Span span, std::vector<Span> places) {
  const TileOpRow& row = row_of(op);
  while (operands.size() < row.params.size()) operands.push_back(fallback(row.params[operands.size()], row, operands));
  HELVE_CHECK(places.empty() || places.size() == operands.size(), fmt::format("places of '{}'", row.python));
  HELVE_CHECK(operands.size() == row.params.size(),
              fmt::format("'{}' takes {} operands", row.python, row.params.size()));
  for (size_t i = 0; i < operands.size(); ++i) {
    const int64_t* number = std::get_if<int64_t>(&operands[i]);
    if (number && row.params[i].kind == ParamKind::Index) operands[i] = int_imm(*number);
    HELVE_CHECK(fits(operands[i], row.params[i]), fmt::format("operand '{}' of '{}'", row.params[i].name, row.python));
    Expr* value = std::get_if<Expr>(&operands[i]);
    if (value && row.params[i].kind != ParamKind::Index) {
      *value = convert_for_store(*value, written_dtype(row, operands), (*value)->span.known() ? (*value)->span : span);
    }
  }
  return make<TileOp>(span, [&](TileOp& n) {
    n.op = op;
    n.operands = std::move(operands);
    n.places = std::move(places);
  });
}

}  // namespace helve
