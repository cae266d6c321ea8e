// The way back from isl, node by node.
// What isl can write and an expression cannot has no counterpart: nothing is guessed.
#include "isl_ast.h"

#include <fmt/format.h>

#include <optional>
#include <string>

#include "helve/ir/expr/build.h"
#include "helve/ir/expr/visit.h"

namespace helve {

namespace {

std::string name_of(size_t dim) { return fmt::format("v{}", dim); }

/// `a < b + 1` is `a <= b`: a strict comparison with a number next to the bound and one without, either way.
void move_bound(Op* op, std::vector<Expr>* args) {
  const auto without = [](const Expr& e, int64_t by) -> Expr {  // e - by, where that is shorter
    const Apply* sum = as<Apply>(e);
    if (!sum || (sum->op != Op::Add && sum->op != Op::Sub)) return {};
    const int64_t* n = int_value(sum->args[1]);
    return n && *n == (sum->op == Op::Add ? by : -by) ? sum->args[0] : Expr();
  };
  // What is subtracted from the left or the right operand, and what the comparison then is.
  struct Move {
    Op from;
    int64_t left, right;
    Op to;
  };
  static constexpr Move kMoves[] = {
      {Op::Lt, 0, 1, Op::Le}, {Op::Lt, -1, 0, Op::Le}, {Op::Le, 1, 0, Op::Lt}, {Op::Le, 0, -1, Op::Lt},
      {Op::Gt, 1, 0, Op::Ge}, {Op::Gt, 0, -1, Op::Ge}, {Op::Ge, 0, 1, Op::Gt}, {Op::Ge, -1, 0, Op::Gt},
  };
  for (const Move& move : kMoves) {
    if (move.from != *op) continue;
    Expr& side = (*args)[move.left ? 0 : 1];
    const Expr shorter = without(side, move.left ? move.left : move.right);
    if (!shorter) continue;
    side = shorter;
    *op = move.to;
    return;
  }
}

class Reader {
 public:
  explicit Reader(const std::vector<VarRef>& vars) : vars_(vars) {}

  /// Null when isl answers in a form that has no counterpart.
  Expr read(const isl_ast_expr* e) const {
    switch (isl_ast_expr_get_type(const_cast<isl_ast_expr*>(e))) {
      case isl_ast_expr_int: return number(e);
      case isl_ast_expr_id: return variable(e);
      case isl_ast_expr_op: return operation(e);
      default: return {};
    }
  }

 private:
  static Expr number(const isl_ast_expr* e) {
    const isl::val value = isl::manage(isl_ast_expr_int_get_val(const_cast<isl_ast_expr*>(e)));
    // More than 64 bits have no literal.
    if (isl_val_is_int(value.get()) != isl_bool_true || isl_val_n_abs_num_chunks(value.get(), 8) > 1) return {};
    const long n = isl_val_get_num_si(value.get());
    const isl::val again(isl::manage(isl_val_int_from_si(isl_val_get_ctx(value.get()), n)));
    return isl_val_eq(value.get(), again.get()) == isl_bool_true ? int_imm(n) : Expr();
  }

  Expr variable(const isl_ast_expr* e) const {
    const isl::id id = isl::manage(isl_ast_expr_id_get_id(const_cast<isl_ast_expr*>(e)));
    for (size_t d = 0; d < vars_.size(); ++d) {
      if (name_of(d) == isl_id_get_name(id.get())) return Expr(vars_[d]);
    }
    return {};
  }

  Expr operation(const isl_ast_expr* e) const {
    isl_ast_expr* op = const_cast<isl_ast_expr*>(e);
    std::vector<Expr> args;
    for (int i = 0; i < isl_ast_expr_op_get_n_arg(op); ++i) {
      const AstExpr arg(isl_ast_expr_op_get_arg(op, i));
      args.push_back(read(arg.get()));
      if (!args.back()) return {};
    }
    if (isl_ast_expr_op_get_type(op) == isl_ast_expr_op_minus) return plain_node(Op::Neg, std::move(args));
    const std::optional<Op> kind = operator_of(isl_ast_expr_op_get_type(op));
    if (!kind) return {};
    if (*kind == Op::Select) return plain_node(Op::Select, std::move(args));
    Expr out = args[0];
    for (size_t i = 1; i < args.size(); ++i) out = plain_node(*kind, {out, args[i]});
    return out;
  }

  static std::optional<Op> operator_of(isl_ast_expr_op_type type) {
    switch (type) {
      case isl_ast_expr_op_and:
      case isl_ast_expr_op_and_then: return Op::And;
      case isl_ast_expr_op_or:
      case isl_ast_expr_op_or_else: return Op::Or;
      case isl_ast_expr_op_max: return Op::Max;
      case isl_ast_expr_op_min: return Op::Min;
      case isl_ast_expr_op_add: return Op::Add;
      case isl_ast_expr_op_sub: return Op::Sub;
      case isl_ast_expr_op_mul: return Op::Mul;
      // Exact, of what is not negative, or towards minus infinity: all are the floor. A remainder that is compared with
      // zero only is the remainder.
      case isl_ast_expr_op_div:
      case isl_ast_expr_op_fdiv_q:
      case isl_ast_expr_op_pdiv_q: return Op::FloorDiv;
      case isl_ast_expr_op_pdiv_r:
      case isl_ast_expr_op_zdiv_r: return Op::FloorMod;
      case isl_ast_expr_op_cond:
      case isl_ast_expr_op_select: return Op::Select;
      case isl_ast_expr_op_eq: return Op::Eq;
      case isl_ast_expr_op_le: return Op::Le;
      case isl_ast_expr_op_lt: return Op::Lt;
      case isl_ast_expr_op_ge: return Op::Ge;
      case isl_ast_expr_op_gt: return Op::Gt;
      default: return std::nullopt;
    }
  }

  const std::vector<VarRef>& vars_;
};

}  // namespace

isl_set* with_parameters(const isl::set& set, size_t count) {
  isl_set* out = set.copy();
  const unsigned moved = static_cast<unsigned>(count);
  out = isl_set_move_dims(out, isl_dim_param, 0, isl_dim_set, 0, moved);
  for (unsigned d = 0; d < moved; ++d) {
    out = isl_set_set_dim_id(out, isl_dim_param, d, isl_id_alloc(isl_set_get_ctx(out), name_of(d).c_str(), nullptr));
  }
  return out;
}

Expr read_ast(const isl_ast_expr* e, const std::vector<VarRef>& vars) { return Reader(vars).read(e); }

Expr plain_node(Op op, std::vector<Expr> args) {
  if (row_of(op).rule == OpRule::Compare) move_bound(&op, &args);
  const OpRule rule = row_of(op).rule;
  const bool truth = rule == OpRule::Compare || op == Op::And || op == Op::Or || op == Op::Not;
  return make_ref<Apply>(truth ? kBool : kIndex, op, std::move(args));
}

int operator_count(const Expr& e) {
  int count = 0;
  walk(e, [&](const Expr& node) { count += node->kind == ExprKind::Apply; });
  return count;
}

}  // namespace helve
