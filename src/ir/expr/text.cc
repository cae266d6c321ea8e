// Expression text by precedence.
// Parentheses appear where Python would otherwise regroup, so that printed programs stay readable and parse back equal,
// and around `and` beside `or`, whose precedence not every reader knows.
#include "helve/ir/expr/text.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

#include "helve/ir/expr/chain.h"
#include "helve/ir/expr/multiprocessors.h"
#include "helve/ir/expr/visit.h"
#include "helve/support/diagnostic.h"
#include "helve/support/text.h"

namespace helve {

namespace {

constexpr int kAtom = 20;
constexpr int kPrefix = 14;

bool is_constant(const Expr& e) { return e->kind == ExprKind::IntImm || e->kind == ExprKind::FloatImm; }

/// How a constant prints: always with its type, with it unless index or bool, or without.
enum class Form { Typed, Plain, Bare };

class Writer {
 public:
  explicit Writer(Namer& namer) : namer_(namer) {}

  /// Text that stands where operators of at least `precedence` are allowed.
  std::string write(const Expr& e, int precedence, Form form) {
    auto [text, own] = dispatch(e, [&](const auto& node) { return part(node, form); });
    return finished(e, std::move(text), own < precedence);
  }

 private:
  struct Part {
    std::string text;
    int precedence;
  };

  /// The text of `e` with its parentheses and its mark.
  std::string finished(const Expr& e, std::string text, bool enclosed) {
    if (enclosed) text = "(" + text + ")";
    const int mark = namer_.mark_of(*e);
    return mark < 0 ? text : fmt::format("{}{}{}{}{}", kMarkBegin, text, kMarkEnd, mark, kMarkEnd);
  }

  static Part signed_part(std::string text) {
    const int precedence = text.front() == '-' ? kPrefix : kAtom;
    return {std::move(text), precedence};
  }

  static Part typed_part(DType dtype, const std::string& value) {
    return {fmt::format("T.{}({})", to_string(dtype), value), kAtom};
  }

  Part part(const IntImm& node, Form form) {
    const bool plain = node.dtype.is_bool() || node.dtype.is_index();
    // Above the range of int64 a number has its place only in its own type.
    const bool large = node.dtype == DType{TypeCode::UInt, 64} && node.value < 0;
    std::string value = large ? fmt::format("{}", static_cast<uint64_t>(node.value)) : fmt::format("{}", node.value);
    if (node.dtype.is_bool()) value = node.value ? "True" : "False";
    const bool bare = form == Form::Bare || (form == Form::Plain && plain);
    return bare && !large ? signed_part(value) : typed_part(node.dtype, value);
  }

  /// The shortest decimal that reads back, by way of double, as the value.
  static std::string digits(const FloatImm& node) {
    const float narrow = static_cast<float>(node.value);
    std::string value = fmt::format("{}", narrow);
    if (node.dtype == kFloat64 || static_cast<float>(std::strtod(value.c_str(), nullptr)) != narrow) {
      value = fmt::format("{}", node.value);
    }
    return value.find_first_of(".e") == std::string::npos ? value + ".0" : value;
  }

  Part part(const FloatImm& node, Form form) {
    const std::string type = to_string(node.dtype);
    if (std::isnan(node.value)) return {fmt::format("T.nan(\"{}\")", type), kAtom};
    if (std::isinf(node.value))
      return signed_part(fmt::format("{}T.infinity(\"{}\")", node.value < 0 ? "-" : "", type));
    return form == Form::Bare ? signed_part(digits(node)) : typed_part(node.dtype, digits(node));
  }

  Part part(const Var& node, Form) {
    return {is_multiprocessors(node) ? "T.multiprocessors()" : namer_.name_of(node), kAtom};
  }

  Part part(const Cast& node, Form) {
    return {fmt::format("T.cast({}, \"{}\")", write(node.value, 0, Form::Typed), to_string(node.dtype)), kAtom};
  }

  Part part(const Bitcast& node, Form) {
    return {fmt::format("T.reinterpret({}, \"{}\")", write(node.value, 0, Form::Typed), to_string(node.dtype)), kAtom};
  }

  Part part(const Load& node, Form) {
    const Part element = subscript(*node.buffer, node.indices);
    return node.width ? Part{fmt::format("T.load_vector({}, {})", element.text, node.width), kAtom} : element;
  }
  Part part(const TileLoad& node, Form) { return subscript(*node.buffer, node.indices); }

  Part part(const Misalignment& node, Form) {
    return {fmt::format("T.misalignment({}, {})", namer_.name_of(*node.buffer), node.unit), kAtom};
  }

  Part subscript(const Storage& buffer, const std::vector<Expr>& indices) {
    const std::string name = namer_.name_of(buffer);
    const std::string inside = join(indices, ", ", [&](const Expr& i) { return write(i, 0, Form::Plain); });
    return {fmt::format("{}[{}]", name, inside.empty() ? "()" : inside), kAtom};
  }

  /// An operand prints bare when a neighbour that carries a type fixes it: one that is no constant, or else the first.
  static Form operand_form(const Apply& node, size_t i) {
    const OpRow& row = row_of(node.op);
    const size_t first = row.rule == OpRule::Select ? 1 : 0;
    if (i < first || row.rule == OpRule::Logical) return Form::Typed;
    for (size_t k = first; k < node.args.size(); ++k) {
      if (!is_constant(node.args[k])) return Form::Bare;
    }
    return i == first ? Form::Typed : Form::Bare;
  }

  std::string operand(const Apply& node, size_t i, int precedence) {
    return write(node.args[i], precedence, operand_form(node, i));
  }

  struct Chain {
    std::string text;
    size_t operands;
  };

  /// An operand of `and` or `or`: more than one where it is the operator itself and needs no parentheses as a chain().
  Chain chained(const Expr& e, const OpRow& row, Op op) {
    if (const Apply* node = as_op(e, op)) return chain_text(*node, row);
    const int inside = as_op(e, Op::And) ? row_of(Op::And).precedence : row.precedence;
    return Chain{write(e, inside + 1, Form::Typed), 1};
  }

  Chain chain_text(const Apply& node, const OpRow& row) {
    Chain left = chained(node.args[0], row, node.op), right = chained(node.args[1], row, node.op);
    const bool halves = are_halves(left.operands, right.operands);
    const auto place = [&](const Expr& e, Chain& part, bool enclosed) {
      if (part.operands == 1) return;  // finished
      part.text = finished(e, std::move(part.text), enclosed);
      if (enclosed) part.operands = 1;
    };
    place(node.args[0], left, !halves && left.operands >= kChainSpine);
    place(node.args[1], right, !halves);
    return {fmt::format("{} {} {}", left.text, row.text, right.text), left.operands + right.operands};
  }

  Part part(const Apply& node, Form) {
    const OpRow& row = row_of(node.op);
    if (row.form == OpForm::Infix && row.rule == OpRule::Logical) return {chain_text(node, row).text, row.precedence};
    if (row.form == OpForm::Prefix) {
      return {std::string(row.text) + operand(node, 0, row.precedence), row.precedence};
    }
    if (row.form == OpForm::Infix) {
      // Comparisons do not chain and binary operators group to the left.
      const int left = row.rule == OpRule::Compare ? row.precedence + 1 : row.precedence;
      const std::string before = operand(node, 0, left);
      const std::string after = operand(node, 1, row.precedence + 1);
      return {fmt::format("{} {} {}", before, row.text, after), row.precedence};
    }
    std::string inside;
    for (size_t i = 0; i < node.args.size(); ++i) {
      if (i) inside += ", ";
      inside += operand(node, i, 0);
    }
    return {fmt::format("T.{}({})", row.text, inside), kAtom};
  }

  Namer& namer_;
};

}  // namespace

void require_writable(const Expr& e) {
  if (e->occurrences() <= kLargestExpr) return;
  throw UserError(Code::TextLimit, e->span, {{"limit", int64_t{kLargestExpr}}, {"unit", "operands of an expression"}},
                  {}, {"bind what it uses several times to a name"});
}

std::string brief_text(const Expr& e) { return is_large(e) ? "..." : to_text(e); }

std::string to_text(const Expr& e, Namer& namer, bool bare) {
  require_writable(e);
  return Writer(namer).write(e, 0, bare ? Form::Bare : Form::Plain);
}

std::string to_text(const Expr& e) {
  Namer namer;
  return to_text(e, namer);
}

std::string to_typed_text(const Expr& e, Namer& namer) {
  require_writable(e);
  return Writer(namer).write(e, 0, Form::Typed);
}

}  // namespace helve
