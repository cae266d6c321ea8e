// Expressions as C text.
// Parentheses follow precedence; integers wrap in unsigned arithmetic; an index is computed in int only if its bounds
// and those of its operands prove that it fits.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "helve/arith/simplify.h"
#include "helve/codegen/c/c_emitter.h"
#include "helve/codegen/c/c_types.h"
#include "helve/support/diagnostic.h"

namespace helve::c {

namespace {

bool is_int16(DType t) { return t.code == TypeCode::Int && t.bits == 16; }

std::string cast_text(const std::string& type, const std::string& operand) { return "(" + type + ")" + operand; }

/// A prefix operator on its operand; two minus signs would be a decrement.
std::string prefixed(std::string_view token, const CExpr& operand) {
  const bool bare = operand.precedence >= kUnary && !operand.text.starts_with(token);
  return std::string(token) + (bare ? operand.text : "(" + operand.text + ")");
}

/// `left token right`. Precedences that are seldom known by heart get parentheses that C does not need: arithmetic in
/// shifts and masks, `&&` in `||`.
std::string joined(const CExpr& left, std::string_view token, const CExpr& right) {
  const int level = precedence_of(token);
  const bool bitwise = token == "&" || token == "|" || token == "^" || token == "<<" || token == ">>";
  const int least = bitwise ? int{kUnary} : token == "||" ? precedence_of("&&") + 1 : level;
  auto operand = [](const CExpr& e, int at_least) { return e.precedence < at_least ? "(" + e.text + ")" : e.text; };
  return fmt::format("{} {} {}", operand(left, least), token, operand(right, std::max(least, level + 1)));
}

bool is_comparison(Op op) { return row_of(op).rule == OpRule::Compare; }

}  // namespace

std::string CEmitter::enclosed(const CExpr& e, int least) { return e.precedence < least ? "(" + e.text + ")" : e.text; }

std::string CEmitter::text(const Expr& e, int least) { return enclosed(expr(e), least); }

std::string CEmitter::call(const std::string& part, const std::string& template_arguments, const std::string& args) {
  need(part);
  return fmt::format("helve_{}{}({})", part, template_arguments.empty() ? "" : "<" + template_arguments + ">", args);
}

bool CEmitter::narrow(const Expr& e) const {
  if (bounds_ && bounds_->fits32(e)) return true;
  constexpr int64_t least = std::numeric_limits<int32_t>::min(), most = std::numeric_limits<int32_t>::max();
  if (const Apply* shift = as_op(e, Op::ShiftRight)) return narrow(shift->args[0]);
  return interval_of(e, facts_).within(least, most);
}

std::string CEmitter::type_of(const Expr& e, bool wide) const {
  return e->dtype.is_index() ? index_type(wide) : value_type(e->dtype);
}

CExpr CEmitter::expr(const Expr& e) {
  switch (e->kind) {
    case ExprKind::IntImm: {
      const int64_t value = as<IntImm>(e)->value;
      const bool wide = e->dtype.is_index() && value != static_cast<int32_t>(value);
      return {integer_text(value, e->dtype, wide), value < 0 ? kUnary : kPrimary, wide};
    }
    case ExprKind::FloatImm: {
      const double value = as<FloatImm>(e)->value;
      const std::string literal = float_text(value, e->dtype);
      if (literal.find("helve_nan") != std::string::npos) need("nan");
      if (literal.find("helve_infinity") != std::string::npos) need("infinity");
      return {literal, literal[0] == '-' ? kUnary : kPrimary};
    }
    case ExprKind::Var: {
      const Var* var = as<Var>(e);
      const auto wide = wide_.find(var);
      return {names_.of(var, var->name), kPrimary, wide != wide_.end() && wide->second};
    }
    case ExprKind::Apply: return apply(*as<Apply>(e));
    case ExprKind::Cast: return conversion(as<Cast>(e)->value, e->dtype, e->dtype.is_index() && narrow(e));
    case ExprKind::Bitcast: return bitcast(as<Bitcast>(e)->value, e->dtype);
    case ExprKind::Load: return load(*as<Load>(e));
    case ExprKind::Misalignment: {
      const Misalignment& place = *as<Misalignment>(e);
      const std::string address =
          fmt::format("(unsigned long long){}", names_.of(place.buffer.get(), place.buffer->name));
      return {fmt::format("(int)({} & {})", address, place.unit - 1), kUnary};
    }
    case ExprKind::TileLoad: HELVE_FAIL("a tile access in lowered code");
  }
  __builtin_unreachable();
}

CExpr CEmitter::apply(const Apply& a) {
  const DType t = a.op == Op::Select ? a.dtype : a.args[0]->dtype;
  Form form = form_of(a.op, t);
  const bool lazy = a.op == Op::Select || a.op == Op::And || a.op == Op::Or;
  std::vector<CExpr> args;
  for (const Expr& arg : a.args) {
    const bool decided = lazy && !args.empty();
    if (decided) {
      const bool holds = a.op == Op::Select ? args.size() == 1 : a.op == Op::And;
      chosen_.push_back(holds ? a.args[0] : helve::apply(Op::Not, {a.args[0]}));
    }
    args.push_back(expr(arg));
    if (decided) {
      chosen_.pop_back();
    }
  }
  if (form.kind == FormKind::Helper) {
    if (is_plain_quotient(a)) return plain_quotient(a, args);
    if (const std::optional<int64_t> by = power_divisor(a)) return power_quotient(a, args[0], *by);
    if (shifts_within(a) && a.op == Op::ShiftRight && is_negated(a)) return shift_negated(a, args[0], args[1].text);
    if (shifts_within(a)) form = {t.is_index() ? FormKind::Infix : FormKind::Wrap, a.op == Op::ShiftLeft ? "<<" : ">>"};
    // A right shift already rounds down.
    if (form.kind == FormKind::Wrap && a.op == Op::ShiftRight) form.kind = FormKind::Infix;
  }
  if (a.op == Op::Neg && t.is_data_int() && t.bits == 32) return negated(value_type(t), args[0]);
  if (t.is_index() && (a.op == Op::Min || a.op == Op::Max)) {
    for (size_t i = 0; i < args.size(); ++i) {
      const Apply* part = as<Apply>(a.args[i]);
      if (part && part->op == Op::Neg && !args[i].wide) args[i] = negated("int", expr(part->args[0]));
    }
  }
  if (t.is_index()) return index_apply(a, form, std::move(args));
  switch (form.kind) {
    case FormKind::Infix: {
      const int level = precedence_of(form.text);
      return {joined(args[0], form.text, args[1]), level};
    }
    case FormKind::Prefix: return {prefixed(form.text, args[0]), kUnary};
    case FormKind::Wrap: return wrapped(a, form, args);
    case FormKind::Call:
    case FormKind::Helper: return helper_call(a, form, args);
    case FormKind::Choice:
      return {fmt::format("{} ? {} : {}", enclosed(args[0], kConditional + 1), enclosed(args[1], kConditional + 1),
                          enclosed(args[2], kConditional + 1)),
              kConditional};
    case FormKind::Same: return args[0];
    case FormKind::None: break;
  }
  HELVE_FAIL("operator " + std::string(row_of(a.op).name) + " on " + to_string(t));
}

/// Arithmetic modulo 2^width: in the unsigned type, converted back once at the end.
CExpr CEmitter::wrapped(const Apply& a, const Form& form, const std::vector<CExpr>& args) {
  const DType t = a.args[0]->dtype;
  const std::string type = value_type(t), wrapping = wrapping_type(t);
  auto operand = [&](size_t i) -> CExpr {
    if (const IntImm* constant = as<IntImm>(a.args[i]); constant && constant->value >= 0) {
      return {integer_text(constant->value, {TypeCode::UInt, static_cast<uint8_t>(t.bits == 64 ? 64 : 32)})};
    }
    if (!args[i].modular.empty()) return {args[i].modular, args[i].modular_precedence};
    if (type == wrapping) return args[i];
    return {cast_text(wrapping, enclosed(args[i], kUnary)), kUnary};
  };
  int level = kUnary;
  std::string body;
  if (args.size() == 1) {
    body = prefixed(form.text, operand(0));
  } else {
    level = precedence_of(form.text);
    body = joined(operand(0), form.text, operand(1));
  }
  if (type == wrapping) return {body, level};
  if (is_int16(t)) return {call("wrap", type, body), kPrimary, false, body, level};
  return {cast_text(type, "(" + body + ")"), kUnary, false, body, level};
}

CExpr CEmitter::helper_call(const Apply& a, const Form& form, const std::vector<CExpr>& args) {
  const std::string list = join(args, ", ", [](const CExpr& e) { return enclosed(e, kConditional); });
  if (form.kind == FormKind::Call) return {fmt::format("{}({})", form.text, list)};
  const DType t = a.args[0]->dtype;
  return {call(std::string(form.text), t.is_integer() ? value_type(t) : "", list)};
}

/// Arithmetic in int if result and operands fit; else in 64 bits, to which one operand is converted explicitly where C
/// would not do so.
CExpr CEmitter::index_apply(const Apply& a, const Form& form, std::vector<CExpr> args) {
  const bool compares = is_comparison(a.op);
  const size_t first = form.kind == FormKind::Choice ? 1 : 0;
  bool wide = false;
  for (size_t i = first; i < args.size(); ++i) wide |= args[i].wide;
  const bool by_itself = wide;
  wide |= !compares && form.kind != FormKind::Choice && !narrow(Expr(&a));
  auto widened = [&](CExpr& e) {
    if (!e.wide && wide) e = {cast_text("long long", enclosed(e, kUnary)), kUnary, true};
  };
  switch (form.kind) {
    case FormKind::Infix: {
      const int level = precedence_of(form.text);
      if (!by_itself || level == precedence_of("<<")) widened(args[0]);
      return {joined(args[0], form.text, args[1]), level, wide && !compares};
    }
    case FormKind::Prefix: widened(args[0]); return {prefixed(form.text, args[0]), kUnary, wide};
    case FormKind::Call:
    case FormKind::Helper: {
      for (CExpr& each : args) widened(each);
      const std::string list = join(args, ", ", [](const CExpr& e) { return enclosed(e, kConditional); });
      if (form.kind == FormKind::Call) return {fmt::format("{}({})", form.text, list), kPrimary, wide};
      return {call(std::string(form.text), index_type(wide), list), kPrimary, wide};
    }
    case FormKind::Choice:
      return {fmt::format("{} ? {} : {}", enclosed(args[0], kConditional + 1), enclosed(args[1], kConditional + 1),
                          enclosed(args[2], kConditional + 1)),
              kConditional, wide};
    case FormKind::Wrap:
    case FormKind::Same:
    case FormKind::None: break;
  }
  HELVE_FAIL("operator " + std::string(row_of(a.op).name) + " on index");
}

/// C truncates, which is floor if neither operand is negative. The divisor is not 0.
bool CEmitter::is_plain_quotient(const Apply& a) const {
  if (a.op != Op::FloorDiv && a.op != Op::FloorMod) return false;
  const Interval value = interval_of(a.args[0], facts_), divisor = interval_of(a.args[1], facts_);
  if (!a.args[0]->dtype.is_signed()) return as<IntImm>(a.args[1]) && divisor.at_least(1);
  if (!divisor.at_least(1)) return false;
  return value.at_least(0) || can_prove(helve::apply(Op::Le, {int_imm(0, a.dtype), a.args[0]}), facts_);
}

CExpr CEmitter::plain_quotient(const Apply& a, const std::vector<CExpr>& args) {
  const char* token = a.op == Op::FloorDiv ? "/" : "%";
  const int level = precedence_of(token);
  return {joined(args[0], token, args[1]), level, args[0].wide || args[1].wide};
}

/// The power of two by which a number of either sign is divided: shifts and masks round down.
std::optional<int64_t> CEmitter::power_divisor(const Apply& a) {
  if (a.op != Op::FloorDiv && a.op != Op::FloorMod) return std::nullopt;
  const int64_t* divisor = int_value(a.args[1]);
  const bool power = divisor && *divisor > 0 && std::has_single_bit(static_cast<uint64_t>(*divisor));
  return power ? std::optional(*divisor) : std::nullopt;
}

CExpr CEmitter::power_quotient(const Apply& a, const CExpr& value, int64_t divisor) {
  const bool quotient = a.op == Op::FloorDiv;
  const int level = precedence_of(quotient ? ">>" : "&");
  const bool wide_mask = a.dtype.is_index() && divisor - 1 > std::numeric_limits<int32_t>::max();
  const int places = std::countr_zero(static_cast<uint64_t>(divisor));
  // For a 32-bit index a shift by 31 leaves only the sign, as a larger amount would.
  const int most = a.dtype.is_index() && !value.wide ? 31 : 63;
  const std::string by =
      quotient ? std::to_string(std::min(places, most)) : integer_text(divisor - 1, a.args[1]->dtype, wide_mask);
  const bool wide = value.wide || (!quotient && wide_mask);
  if (quotient && is_negated(a)) return shift_negated(a, value, by);
  return {joined(value, quotient ? ">>" : "&", {by}), level, wide};
}

/// ptxas 13.0 has lost the sign of such a number where it takes the maximum of three.
CExpr CEmitter::negated(const std::string& type, const CExpr& number) {
  return {call("negated", type, enclosed(number, kConditional)), kPrimary};
}

/// Is the number to be shifted a negated one? ptxas has been seen to shift before it negates.
bool CEmitter::is_negated(const Apply& a) {
  const Apply* operand = as<Apply>(a.args[0]);
  return operand && operand->op == Op::Neg && a.args[0]->dtype.is_signed();
}

CExpr CEmitter::shift_negated(const Apply& a, const CExpr& value, const std::string& by) {
  const CExpr number = expr(as<Apply>(a.args[0])->args[0]);
  const std::string type = a.dtype.is_index() ? index_type(value.wide) : value_type(a.dtype);
  return {call("shift_negated", type, number.text + ", " + by), kPrimary, value.wide};
}

/// Is the shift defined in C: is the amount below the width?
bool CEmitter::shifts_within(const Apply& a) const {
  if (a.op != Op::ShiftLeft && a.op != Op::ShiftRight) return false;
  const DType t = a.args[0]->dtype;
  const int64_t width = t.is_index() ? (narrow(Expr(&a)) && narrow(a.args[0]) ? 32 : 64) : t.bits;
  return interval_of(a.args[1], facts_).within(0, width - 1);
}

/// The values of the type are floats, or integers that float represents.
bool CEmitter::rounds_through_float(DType t) {
  return t == kFloat32 || t.is_small_float() || t.is_bool() || (t.is_data_int() && t.bits <= 16);
}

std::string CEmitter::rounded(const Expr& e, DType to) {
  const std::string name = "to_" + small_float_name(to);
  need(small_float_name(to));
  const DType from = e->dtype;
  if (rounds_through_float(from)) return fmt::format("helve_{}({})", name, text(e, kConditional));
  // Rounded to odd, the float still rounds to the nearest value of the small type.
  const std::string whole = from.is_signed() ? "long long" : "unsigned long long";
  const std::string wide = from == kFloat64 ? text(e, kConditional) : cast_text(whole, text(e, kUnary));
  return fmt::format("helve_{}({})", name, call("to_odd", "", wide));
}

CExpr CEmitter::bitcast(const Expr& value, DType to) {
  const DType from = value->dtype;
  if (from.is_small_float()) return {cast_text(value_type(to), rounded(value, from) + ".bits"), kUnary};
  if (to.is_small_float()) {
    need(small_float_name(to));
    const char* bits = to.bits == 8 ? "unsigned char" : "unsigned short";
    return {fmt::format("helve_to_float({}{{{}}})", memory_type(to), cast_text(bits, text(value, kUnary)))};
  }
  const bool wide = from.bits == 64;
  if (to.is_float()) {
    return {fmt::format("{}({})", wide ? "__longlong_as_double" : "__int_as_float",
                        cast_text(wide ? "long long" : "int", text(value, kUnary)))};
  }
  const std::string bits =
      fmt::format("{}({})", wide ? "__double_as_longlong" : "__float_as_int", text(value, kConditional));
  return {to.is_signed() ? bits : cast_text(value_type(to), bits), to.is_signed() ? kPrimary : kUnary};
}

CExpr CEmitter::conversion(const Expr& value, DType to, bool narrow_index) {
  const DType from = value->dtype;
  if (from == to) return expr(value);
  if (to.is_bool()) {
    const int level = precedence_of("!=");
    return {fmt::format("{} != 0", text(value, level)), level};
  }
  if (to.is_small_float()) return {fmt::format("helve_to_float({})", rounded(value, to))};
  const bool wide = to.is_index() && !narrow_index;
  const std::string type = to.is_index() ? index_type(wide) : value_type(to);
  if (to.is_float()) {
    if (from.is_float() && from.bits <= 32 && to.bits == 32) return expr(value);
    return {cast_text(type, text(value, kUnary)), kUnary};
  }
  if (from.is_float()) {
    const int bits = to.is_index() ? 64 : to.bits;
    const std::string whole = to.is_index() ? "long long" : type;
    const std::string argument = text(value, kConditional);
    const std::string range = fmt::format("{}, {}, {}", whole, bits, to.is_signed() ? "true" : "false");
    return {call("saturate", range, argument), kPrimary, to.is_index()};
  }
  const CExpr operand = expr(value);
  if (to.is_index() && from.is_index()) return operand;
  if (is_int16(to) && (from.is_index() || from.bits >= 16)) {
    return {call("wrap", type, enclosed(operand, kConditional))};
  }
  return {cast_text(type, enclosed(operand, kUnary)), kUnary, wide};
}

}  // namespace helve::c
