// Translation of expressions to postfix programs.
// Only index arithmetic and comparisons are translated: data integers wrap at their width, which 64-bit slots do not.
#include "host_scalars.h"

#include <unordered_set>

#include "helve/ir/expr/text.h"
#include "helve/ir/tensor/visit.h"
#include "helve/support/diagnostic.h"

namespace helve {

using runtime::ScalarOp;
using runtime::ScalarProgram;

namespace {

/// Integers whose values and comparisons are those of a signed 64-bit integer.
bool plain_integer(DType t) {
  return t.is_index() || t.is_bool() || t.code == TypeCode::Int || (t.code == TypeCode::UInt && t.bits < 64);
}

std::optional<ScalarOp> scalar_op(Op op) {
  switch (op) {
    case Op::Add: return ScalarOp::Add;
    case Op::Sub: return ScalarOp::Sub;
    case Op::Mul: return ScalarOp::Mul;
    case Op::FloorDiv: return ScalarOp::FloorDiv;
    case Op::FloorMod: return ScalarOp::FloorMod;
    case Op::ShiftLeft: return ScalarOp::ShiftLeft;
    case Op::ShiftRight: return ScalarOp::ShiftRight;
    case Op::BitAnd: return ScalarOp::BitAnd;
    case Op::BitOr: return ScalarOp::BitOr;
    case Op::BitXor: return ScalarOp::BitXor;
    case Op::Min: return ScalarOp::Min;
    case Op::Max: return ScalarOp::Max;
    case Op::Lt:
    case Op::Gt: return ScalarOp::Lt;
    case Op::Le:
    case Op::Ge: return ScalarOp::Le;
    case Op::Eq: return ScalarOp::Eq;
    case Op::Ne: return ScalarOp::Ne;
    case Op::And: return ScalarOp::And;
    case Op::Or: return ScalarOp::Or;
    default: return std::nullopt;
  }
}

void collect_vars(const Expr& e, std::unordered_set<const Var*>& out) {
  walk(e, [&](const Expr& x) {
    if (const Var* v = as<Var>(x)) out.insert(v);
    if (const Load* l = as<Load>(x)) {
      for (const Expr& extent : buffer_of(l->buffer).shape) collect_vars(extent, out);
      for (const Expr& stride : buffer_of(l->buffer).strides) collect_vars(stride, out);
    }
  });
}

}  // namespace

int64_t HostScalars::add_slot(const Var* var) {
  const auto slot = static_cast<int64_t>(slots_.size());
  slots_.push_back(var->name);
  define(var, ScalarProgram::slot(slot));
  return slot;
}

int64_t HostScalars::add_slot(VarRef var) { return add_slot(kept_.emplace_back(std::move(var)).get()); }

std::optional<ScalarProgram> HostScalars::program(const Expr& e) const {
  if (const IntImm* i = as<IntImm>(e)) return ScalarProgram(i->value);
  if (const Var* v = as<Var>(e)) {
    auto found = programs_.find(v);
    return found == programs_.end() ? std::nullopt : std::optional(found->second);
  }
  if (const Cast* c = as<Cast>(e)) {
    const Var* v = as<Var>(c->value);
    const bool plain = plain_integer(c->value->dtype) || (v && index_params_.contains(v));
    if (!c->dtype.is_index() || !plain) return std::nullopt;
    return program(c->value);
  }
  const Apply* a = as<Apply>(e);
  return a ? apply(*a) : std::nullopt;
}

std::optional<ScalarProgram> HostScalars::apply(const Apply& a) const {
  const DType operand = a.args[0]->dtype;
  const bool comparison = row_of(a.op).rule == OpRule::Compare;
  // Of the operators on data integers, only these stay in their type; the others wrap, unlike the host's 64-bit
  // integers.
  const bool stays = a.op == Op::FloorMod || a.op == Op::Min || a.op == Op::Max;
  if (!(a.dtype.is_index() || a.dtype.is_bool() || (stays && plain_integer(a.dtype)))) return std::nullopt;
  if (comparison && !plain_integer(operand)) return std::nullopt;
  std::vector<ScalarProgram> args;
  for (const Expr& arg : a.args) {
    std::optional<ScalarProgram> p = program(arg);
    if (!p) return std::nullopt;
    args.push_back(std::move(*p));
  }
  if (a.op == Op::Select) return ScalarProgram::select(args[0], args[1], args[2]);
  if (a.op == Op::Not) return ScalarProgram::unary(ScalarOp::Not, args[0]);
  if (a.op == Op::Neg) return ScalarProgram::binary(ScalarOp::Sub, ScalarProgram(0), args[0]);
  if (a.op == Op::Abs) {
    return ScalarProgram::binary(ScalarOp::Max, args[0],
                                 ScalarProgram::binary(ScalarOp::Sub, ScalarProgram(0), args[0]));
  }
  const std::optional<ScalarOp> op = scalar_op(a.op);
  if (!op) return std::nullopt;
  if (a.op == Op::Gt || a.op == Op::Ge) std::swap(args[0], args[1]);
  return ScalarProgram::binary(*op, args[0], args[1]);
}

ScalarProgram HostScalars::required(const Expr& e, const std::string& what) const {
  if (std::optional<ScalarProgram> p = program(e)) return std::move(*p);
  throw UserError(Code::HostExpression, e->span, {{"what", what + ", " + to_text(e) + ","}});
}

Ref<const Kernel> HostScalars::with_deferred(const Kernel& kernel) const {
  std::unordered_set<const Var*> used;
  walk_exprs(kernel.body, [&](const Expr& e) { collect_vars(e, used); });
  walk(kernel.body, [&](const Stmt& s) {
    const Store* store = as<Store>(s);
    if (!store) return;
    for (const Expr& extent : store->buffer->shape) collect_vars(extent, used);
    for (const Expr& stride : store->buffer->strides) collect_vars(stride, used);
  });
  std::vector<Stmt> body{kernel.body};
  for (auto each = deferred_.rbegin(); each != deferred_.rend(); ++each) {  // later values may use earlier ones
    if (!used.contains(each->first.get())) continue;
    collect_vars(each->second, used);
    body.insert(body.begin(), bind(each->first, each->second));
  }
  if (body.size() == 1) return Ref<const Kernel>(&kernel);
  return copy_with(kernel, [&](Kernel& copy) { copy.body = seq(std::move(body), kernel.body->span); });
}

}  // namespace helve
