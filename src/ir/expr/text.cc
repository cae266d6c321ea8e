// Expression text by precedence.
// Parentheses appear exactly where Python would otherwise regroup, so printed programs stay readable and parse back equal.
#include "helve/ir/expr/text.h"

#include <fmt/format.h>

#include <cmath>

#include "helve/support/text.h"

namespace helve {

namespace {

constexpr int kAtom = 20;
constexpr int kPrefix = 14;

bool is_constant(const Expr& e) { return e->kind == ExprKind::IntImm || e->kind == ExprKind::FloatImm; }

class Writer {
 public:
  explicit Writer(Namer& namer) : namer_(namer) {}

  /// Text that stands where operators of at least `precedence` are allowed.
  std::string write(const Expr& e, int precedence, bool bare) {
    auto [text, own] = dispatch(e, [&](const auto& node) { return part(node, bare); });
    return own < precedence ? "(" + text + ")" : text;
  }

 private:
  struct Part {
    std::string text;
    int precedence;
  };

  static Part signed_part(std::string text) {
    const int precedence = text.front() == '-' ? kPrefix : kAtom;
    return {std::move(text), precedence};
  }

  Part part(const IntImm& node, bool bare) {
    if (node.dtype.is_bool()) return {node.value ? "True" : "False", kAtom};
    std::string value = node.dtype == DType{TypeCode::UInt, 64} ? fmt::format("{}", static_cast<uint64_t>(node.value))
                                                                : fmt::format("{}", node.value);
    if (bare || node.dtype.is_index()) return signed_part(value);
    return {fmt::format("T.{}({})", to_string(node.dtype), value), kAtom};
  }

  Part part(const FloatImm& node, bool bare) {
    const std::string type = to_string(node.dtype);
    if (std::isnan(node.value)) return {fmt::format("T.nan(\"{}\")", type), kAtom};
    if (std::isinf(node.value)) return signed_part(fmt::format("{}T.infinity(\"{}\")", node.value < 0 ? "-" : "", type));
    std::string value = node.dtype == kFloat64 ? fmt::format("{}", node.value)
                                               : fmt::format("{}", static_cast<float>(node.value));
    if (value.find_first_of(".e") == std::string::npos) value += ".0";
    if (bare) return signed_part(value);
    return {fmt::format("T.{}({})", type, value), kAtom};
  }

  Part part(const Var& node, bool) { return {namer_.name_of(node), kAtom}; }

  Part part(const Cast& node, bool) {
    return {fmt::format("T.cast({}, \"{}\")", write(node.value, 0, false), to_string(node.dtype)), kAtom};
  }

  Part part(const Load& node, bool) { return subscript(*node.buffer, node.indices); }
  Part part(const TileLoad& node, bool) { return subscript(*node.buffer, node.indices); }

  Part subscript(const Storage& buffer, const std::vector<Expr>& indices) {
    std::string inside = join(indices, ", ", [&](const Expr& i) { return write(i, 0, false); });
    return {fmt::format("{}[{}]", namer_.name_of(buffer), inside.empty() ? "()" : inside), kAtom};
  }

  /// A constant operand may print bare when a typed, non-constant neighbour fixes its type.
  static bool typed_by_neighbour(const Apply& node, size_t i) {
    const size_t first = node.op == Op::Select ? 1 : 0;
    for (size_t k = first; k < node.args.size(); ++k) {
      if (k != i && i >= first && !is_constant(node.args[k])) return true;
    }
    return false;
  }

  std::string operand(const Apply& node, size_t i, int precedence) {
    return write(node.args[i], precedence, typed_by_neighbour(node, i));
  }

  Part part(const Apply& node, bool) {
    const OpRow& row = row_of(node.op);
    if (row.form == OpForm::Prefix) {
      return {std::string(row.text) + operand(node, 0, row.precedence), row.precedence};
    }
    if (row.form == OpForm::Infix) {
      // Comparisons do not chain and binary operators group to the left.
      const int left = row.rule == OpRule::Compare ? row.precedence + 1 : row.precedence;
      return {fmt::format("{} {} {}", operand(node, 0, left), row.text, operand(node, 1, row.precedence + 1)),
              row.precedence};
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

std::string to_text(const Expr& e, Namer& namer, bool bare) { return Writer(namer).write(e, 0, bare); }

std::string to_text(const Expr& e) {
  Namer namer;
  return to_text(e, namer);
}

}  // namespace helve
