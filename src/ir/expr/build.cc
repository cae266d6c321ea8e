// The type rules of expressions.
// One place converts operands or refuses them, so that every front end and every pass builds the same typed tree.
#include "helve/ir/expr/build.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <optional>

#include "helve/ir/expr/multiprocessors.h"
#include "helve/ir/expr/rounding.h"
#include "helve/ir/expr/text.h"
#include "helve/ir/expr/visit.h"
#include "helve/support/diagnostic.h"
#include "helve/support/text.h"

namespace helve {

void refuse_depth(const Expr& operand) {
  const int64_t depth = operand->depth() + 1;
  throw UserError(Code::NestingDepth, operand->span,
                  {{"what", "an expression"}, {"depth", depth}, {"limit", int64_t{kExprDepthLimit}}});
}

Expr int_imm(int64_t value, DType dtype, Span span) {
  Ref<IntImm> node = make_ref<IntImm>(dtype, value);
  node->span = span;
  return Expr(node);
}

Expr bool_imm(bool value, Span span) { return int_imm(value, kBool, span); }

Expr float_imm(double value, DType dtype, Span span) {
  if (std::isnan(value)) value = std::numeric_limits<double>::quiet_NaN();  // one NaN, without sign and payload
  Ref<FloatImm> node = make_ref<FloatImm>(dtype, round_to(value, dtype));
  node->span = span;
  return Expr(node);
}

VarRef make_var(std::string name, DType dtype, Span span) {
  Ref<Var> node = make_ref<Var>(dtype, std::move(name));
  node->span = span;
  return VarRef(node);
}

const VarRef& multiprocessors() {
  static const VarRef variable = make_var("multiprocessors", kIndex);
  return variable;
}

Expr cast(Expr value, DType dtype, Span span) {
  if (value->dtype == dtype) return value;
  if (value->kind == ExprKind::IntImm && !dtype.is_bool() && !value->dtype.is_bool()) {
    const int64_t v = static_cast<const IntImm&>(*value).value;
    const bool beyond = v < 0 && value->dtype == DType{TypeCode::UInt, 64};  // no int64
    if (dtype.is_float()) {
      return float_imm(beyond ? float_of(static_cast<uint64_t>(v), dtype) : float_of(v, dtype), dtype, span);
    }
    if (!beyond || !dtype.is_index()) return int_imm(wrap_to(v, dtype), dtype, span);
  }
  if (value->kind == ExprKind::FloatImm && dtype.is_float()) {
    return float_imm(static_cast<const FloatImm&>(*value).value, dtype, span);
  }
  Ref<Cast> node = make_ref<Cast>(dtype, std::move(value));
  node->span = span;
  return Expr(node);
}

namespace {

constexpr size_t kLongText = 40;  // of an operand in a remedy

/// "write T.cast(n, "float32") in place of n".
std::string cast_remedy(const Expr& e, DType to) {
  const std::string text = brief_text(e);
  if (text.size() > kLongText || text == "...")
    return fmt::format("convert the {} side: T.cast(x, \"{}\")", to_string(e->dtype), to_string(to));
  return fmt::format("write T.cast({}, \"{}\") in place of {}", text, to_string(to), text);
}

/// What to write where `a op b` is refused: the conversion that loses least.
std::string mixed_remedy(const Expr& a, const Expr& b) {
  const DType s = a->dtype, t = b->dtype;
  if (s.is_bool() != t.is_bool()) return cast_remedy(s.is_bool() ? a : b, s.is_bool() ? t : s);
  if (s.is_float() != t.is_float()) return cast_remedy(s.is_float() ? b : a, s.is_float() ? s : t);
  if (s.is_float())
    return fmt::format("convert both sides to {0}: T.cast(x, \"{0}\")", s.bits < 32 ? "float32" : "float64");
  return cast_remedy(t.code == TypeCode::UInt ? b : a, t.code == TypeCode::UInt ? s : t);
}

[[noreturn]] void mixed(std::string_view op, const Expr& a, const Expr& b, Span span) {
  throw UserError(Code::MixedTypes, span,
                  {{"left", to_string(a->dtype)}, {"right", to_string(b->dtype)}, {"operation", std::string(op)}}, {},
                  {mixed_remedy(a, b)});
}

/// The refusal of a Python float beside `typed`, which is no float: names what the user wrote, in the user's order.
[[noreturn]] void mixed_literal(std::string_view op, const Expr& typed, double literal, bool literal_first, Span span) {
  std::string left = to_string(typed->dtype), right = fmt::format("the float {}", float_text(literal));
  if (literal_first) std::swap(left, right);
  throw UserError(Code::MixedTypes, span,
                  {{"left", std::move(left)}, {"right", std::move(right)}, {"operation", std::string(op)}}, {},
                  {mixed_remedy(typed, float_imm(literal, kFloat32))});
}

[[noreturn]] void wrong_type(std::string what, std::string given, std::string expected, Span span,
                             std::vector<std::string> fixes = {}) {
  throw UserError(Code::WrongType, span,
                  {{"what", std::move(what)}, {"given", std::move(given)}, {"expected", std::move(expected)}}, {},
                  std::move(fixes));
}

/// A constant that its type does not hold; unsigned types name the value with the same bits.
[[noreturn]] void out_of_range(int64_t value, DType dtype, Span span) {
  std::string fix =
      fmt::format("{} holds {} to {}", to_string(dtype), extreme_int(dtype, true), extreme_int(dtype, false));
  if (dtype.code == TypeCode::UInt) fix += fmt::format("; {} wraps to {}", value, wrap_to(value, dtype));
  wrong_type(fmt::format("{}", value), "out of range", to_string(dtype), span, {std::move(fix)});
}

/// The common type of two operands; none where they cannot be combined.
std::optional<DType> common_type(DType a, DType b) {
  if (a == b) return a;
  if (a.is_bool() || b.is_bool()) return std::nullopt;
  if (a.is_index()) return b;
  if (b.is_index()) return a;
  if (a.is_float() ? a.bits == b.bits || !b.is_float() : a.code != b.code) return std::nullopt;
  return a.bits > b.bits ? a : b;
}

Expr make_apply(Op op, DType dtype, std::vector<Expr> args, Span span) {
  Ref<Apply> node = make_ref<Apply>(dtype, op, std::move(args));
  node->span = span;
  return Expr(node);
}

/// `x // y` or `x % y` of floats: the operators are those of integers, and floats have T.floor.
std::vector<std::string> float_division_remedy(Op op, const std::vector<Expr>& args) {
  const DType type = args[args[0]->dtype.is_float() ? 0 : 1]->dtype;
  const auto text = [&](const Expr& e) {
    Namer namer;
    std::string out = is_large(e) ? std::string(kLongText + 1, '.') : to_text(e, namer, true);
    if (e->dtype.is_data_int() && !int_value(e)) return fmt::format("T.cast({}, \"{}\")", out, to_string(type));
    return as<Apply>(e) ? "(" + out + ")" : out;
  };
  std::string x = text(args[0]), y = text(args[1]);
  if (x.size() > kLongText || y.size() > kLongText) x = "x", y = "y";
  const std::string quotient = fmt::format("T.floor({} / {})", x, y);
  if (op == Op::FloorDiv) return {"for floats write " + quotient};
  return {fmt::format("for floats write {} - {} * {}", x, quotient, y)};
}

/// What to write where a rule refuses an operand; nothing where a conversion is what helps.
std::vector<std::string> operand_remedy(Op op, const std::vector<Expr>& args, size_t i) {
  const OpRow& row = row_of(op);
  const bool divides = op == Op::FloorDiv || op == Op::FloorMod;
  if (divides && args[i]->dtype.is_float() && !args[1 - i]->dtype.is_bool()) return float_division_remedy(op, args);
  if (row.rule != OpRule::Logical && row.rule != OpRule::Select) return {};
  const bool is_constant = args[i]->kind == ExprKind::IntImm || args[i]->kind == ExprKind::FloatImm;
  if (is_constant) return {"write a condition there; `x if condition else y` chooses one of two numbers"};
  return {"compare it, for example with '!= 0'"};
}

/// `i`: the operand at fault.
[[noreturn]] void refuse_operand(Op op, const std::vector<Expr>& args, size_t i, std::string given,
                                 const char* expected, Span span) {
  const std::string_view text = row_of(op).text;
  wrong_type(fmt::format("an operand of '{}'", text.substr(0, text.find(' '))), std::move(given), expected,
             args[i]->span.known() ? args[i]->span : span, operand_remedy(op, args, i));
}

/// Checks each operand against the rule of the row, before operands are unified.
void check_operands(Op op, const std::vector<Expr>& args, Span span) {
  const auto require = [&](bool condition, size_t i, const char* expected) {
    if (!condition) refuse_operand(op, args, i, to_string(args[i]->dtype), expected, span);
  };
  for (size_t i = 0; i < args.size(); ++i) {
    const DType t = args[i]->dtype;
    switch (row_of(op).rule) {
      case OpRule::Integer: require(t.is_integer(), i, "an integer"); break;
      case OpRule::Logical: require(t.is_bool(), i, "bool"); break;
      case OpRule::Arithmetic:
      case OpRule::Number: require(!t.is_bool(), i, "a number"); break;
      case OpRule::Select:
        if (i == 0) require(t.is_bool(), i, "bool");
        break;
      case OpRule::Float:
      case OpRule::Compare: break;
    }
  }
}

Expr negate_constant(const Expr& e, Span span) {
  if (const IntImm* i = as<IntImm>(e); i && i->value != std::numeric_limits<int64_t>::min()) {
    return int_imm(wrap_to(-i->value, e->dtype), e->dtype, span);
  }
  if (const FloatImm* f = as<FloatImm>(e)) return float_imm(-f->value, e->dtype, span);
  return {};
}

}  // namespace

Expr apply(Op op, std::vector<Expr> args, Span span) {
  const OpRow& row = row_of(op);
  HELVE_CHECK(static_cast<int>(args.size()) == row.arity, fmt::format("'{}' takes {} operands", row.text, row.arity));
  check_operands(op, args, span);
  const size_t first = row.rule == OpRule::Select ? 1 : 0;
  DType type = args[first]->dtype;
  for (size_t i = first + 1; i < args.size(); ++i) {
    const std::optional<DType> common = common_type(type, args[i]->dtype);
    if (!common) mixed(row.text, args[first], args[i], span);
    type = *common;
  }
  if (row.rule == OpRule::Float) {
    if (op == Op::Div && type.is_integer()) throw UserError(Code::IntegerDivision, span);
    if (!type.is_float()) wrong_type(fmt::format("an operand of '{}'", row.text), to_string(type), "a float", span);
  }
  for (size_t i = first; i < args.size(); ++i) args[i] = cast(args[i], type, args[i]->span);
  if (op == Op::FloorDiv || op == Op::FloorMod) {
    if (const int64_t* d = int_value(args[1]); d && *d == 0) throw UserError(Code::ZeroDivisor, span);
  }
  if (op == Op::Neg) {
    if (Expr folded = negate_constant(args[0], span)) return folded;
  }
  const bool gives_bool = row.rule == OpRule::Compare || row.rule == OpRule::Logical;
  return make_apply(op, gives_bool ? kBool : type, std::move(args), span);
}

Expr bitcast(Expr value, DType dtype, Span span) {
  const DType from = value->dtype;
  const auto has_bits = [](DType t) { return t.is_float() || (t.is_data_int() && t.bits >= 8); };
  if (!has_bits(from) || !has_bits(dtype) || from.bits != dtype.bits) {
    wrong_type("the operand of T.reinterpret", to_string(from), fmt::format("as wide as {}", to_string(dtype)), span,
               {"the bits of integers of 8 bits or more and of floats can be read as another type of the same width"});
  }
  if (from == dtype) return value;
  if (from.is_data_int() && dtype.is_data_int()) return cast(std::move(value), dtype, span);
  if (from.is_float() && dtype.is_float()) value = bitcast(std::move(value), {TypeCode::UInt, from.bits}, span);
  Ref<Bitcast> node = make_ref<Bitcast>(dtype, std::move(value));
  node->span = span;
  return Expr(node);
}

Expr constant_of(const Operand& number, DType dtype, Span span) {
  if (const bool* b = std::get_if<bool>(&number)) {
    if (!dtype.is_bool()) wrong_type(*b ? "True" : "False", "bool", to_string(dtype), span);
    return bool_imm(*b, span);
  }
  if (const int64_t* i = std::get_if<int64_t>(&number)) {
    if (dtype.is_bool()) wrong_type(fmt::format("{}", *i), "an integer", "bool", span);
    if (dtype.is_float()) return float_imm(float_of(*i, dtype), dtype, span);
    if (wrap_to(*i, dtype) != *i && !(dtype.code == TypeCode::UInt && dtype.bits == 64)) {
      out_of_range(*i, dtype, span);
    }
    return int_imm(*i, dtype, span);
  }
  const double* d = std::get_if<double>(&number);
  HELVE_CHECK(d, "constant_of takes a number");
  if (!dtype.is_float()) wrong_type(fmt::format("{}", *d), "a float", to_string(dtype), span);
  return float_imm(*d, dtype, span);
}

Expr apply_operands(Op op, const std::vector<Operand>& args, Span span) {
  const OpRow& row = row_of(op);
  const size_t first = row.rule == OpRule::Select ? 1 : 0;
  const Expr* typed = nullptr;
  bool any_float = false;
  for (size_t i = first; i < args.size(); ++i) {
    if (const Expr* e = std::get_if<Expr>(&args[i]); e && !typed) typed = e;
    any_float |= std::holds_alternative<double>(args[i]);
  }
  const DType weak = typed ? (*typed)->dtype : any_float || row.rule == OpRule::Float ? kFloat32 : kIndex;
  std::vector<Expr> exprs;
  for (size_t i = 0; i < args.size(); ++i) {
    if (const Expr* e = std::get_if<Expr>(&args[i])) {
      exprs.push_back(*e);
    } else if (std::holds_alternative<bool>(args[i])) {
      exprs.push_back(constant_of(args[i], kBool, span));
    } else if (const double* number = std::get_if<double>(&args[i]); number && !weak.is_float()) {
      const bool logical = row.rule == OpRule::Logical;
      if (row.rule != OpRule::Integer && !logical) {
        mixed_literal(row.text, *typed, *number, std::holds_alternative<double>(args[first]), span);
      }
      std::vector<Expr> both = {*typed, *typed};  // no conversion of the other one would help
      both[i] = float_imm(*number, kFloat32, span);
      refuse_operand(op, both, i, fmt::format("the float {}", float_text(*number)), logical ? "bool" : "an integer",
                     span);
    } else {
      exprs.push_back(constant_of(args[i], weak.is_bool() ? kIndex : weak, span));
    }
  }
  return apply(op, std::move(exprs), span);
}

Expr convert_for_store(Expr value, DType dtype, Span span) {
  const DType from = value->dtype;
  const bool widens = from.code == dtype.code && from.bits <= dtype.bits;
  const bool allowed = from == dtype || (from.is_index() && !dtype.is_bool()) ||
                       (from.is_float() && dtype.is_float()) || (from.is_data_int() && widens);
  if (!allowed) {
    std::vector<std::string> fixes = {cast_remedy(value, dtype)};
    if (dtype.is_packed()) {
      fixes.push_back("two elements of a tensor share a byte: store to a buffer of T.alloc_shared, and T.copy that");
    }
    wrong_type("the stored value", to_string(from), to_string(dtype), span, std::move(fixes));
  }
  return cast(std::move(value), dtype, span);
}

void check_index_types(const Storage& buffer, const std::vector<Expr>& indices, Span span) {
  if (indices.size() != buffer.rank()) {
    throw UserError(Code::IndexCount, span,
                    {{"buffer", buffer.name},
                     {"rank", static_cast<int64_t>(buffer.rank())},
                     {"given", static_cast<int64_t>(indices.size())}});
  }
  for (const Expr& index : indices) {
    Span at = index->span.known() ? index->span : span;
    if (!index->dtype.is_index()) {
      std::vector<std::string> fixes;
      const bool rounds = index->dtype.is_float();
      if (rounds || index->dtype.is_data_int()) {
        fixes.push_back(
            fmt::format("write T.index({}){}", brief_text(index), rounds ? ", which rounds toward zero" : ""));
      }
      throw UserError(Code::IndexType, at, {{"buffer", buffer.name}, {"dtype", to_string(index->dtype)}}, {},
                      std::move(fixes));
    }
  }
}

void check_indices(const Storage& buffer, const std::vector<Expr>& indices, Span span) {
  check_index_types(buffer, indices, span);
  for (const Expr& index : indices) {
    const Span at = index->span.known() ? index->span : span;
    if (const int64_t* v = int_value(index); v && *v < 0) {
      throw UserError(Code::NegativeIndex, at, {{"buffer", buffer.name}, {"index", *v}});
    }
  }
}

Expr load(StorageRef buffer, std::vector<Expr> indices, Span span) {
  check_indices(*buffer, indices, span);
  Ref<Load> node = make_ref<Load>(std::move(buffer), std::move(indices));
  node->span = span;
  return Expr(node);
}

Expr load_vector(StorageRef buffer, std::vector<Expr> indices, int64_t width, Span span) {
  check_indices(*buffer, indices, span);
  Ref<Load> node = make_ref<Load>(std::move(buffer), std::move(indices));
  node->width = width;
  node->span = span;
  return Expr(node);
}

Expr tile_load(StorageRef buffer, std::vector<Expr> indices, Span span) {
  check_indices(*buffer, indices, span);
  Ref<TileLoad> node = make_ref<TileLoad>(std::move(buffer), std::move(indices));
  node->span = span;
  return Expr(node);
}

Expr misalignment(StorageRef buffer, int64_t unit, Span span) {
  Ref<Misalignment> node = make_ref<Misalignment>(std::move(buffer), unit);
  node->span = span;
  return Expr(node);
}

Expr extreme_imm(DType dtype, bool lowest, Span span) {
  if (dtype.is_float()) return float_imm(extreme_float(dtype, lowest), dtype, span);
  return int_imm(extreme_int(dtype, lowest), dtype, span);
}

Expr ceil_div(const Expr& a, const Expr& b) {
  const int64_t* n = int_value(a);
  const int64_t* d = int_value(b);
  if (n && d && *n >= 0 && *d > 0) return int_imm(*n / *d + (*n % *d != 0), a->dtype);
  return floor_div(apply(Op::Sub, {apply(Op::Add, {a, b}), int_imm(1, a->dtype)}), b);
}

}  // namespace helve
