// Expressions of index notation: their reductions, and the left side that they are assigned to.
// Front ends build statements by these functions, which convert or refuse.
#include <fmt/format.h>

#include <algorithm>
#include <type_traits>

#include "helve/ir/expr/text.h"
#include "helve/ir/expr/visit.h"
#include "helve/notation/index_notation.h"
#include "walk.h"

namespace helve::notation {

namespace {

bool is_logical(ReduceKind kind) { return kind == ReduceKind::Any || kind == ReduceKind::All; }

void check_type(ReduceKind kind, DType dtype, Span span) {
  const bool fits = is_logical(kind) ? dtype.is_bool() : !dtype.is_bool() && !dtype.is_index();
  if (fits) return;
  std::vector<std::string> fixes;
  if (dtype.is_bool())
    fixes = {"helve.reduce_any and helve.reduce_all combine conditions; T.cast(x, \"int32\") counts them"};
  if (dtype.is_index()) fixes = {"give the indices a type of data: T.cast(i, \"int32\")"};
  throw UserError(Code::WrongType, span,
                  {{"what", "a term of a reduction"},
                   {"given", to_string(dtype)},
                   {"expected", is_logical(kind) ? "bool" : "a number"}},
                  {}, std::move(fixes));
}

}  // namespace

IndexExpr reduce(ReduceKind kind, const std::vector<Index>& indices, const IndexExpr& body, Span span) {
  check_type(kind, body.value->dtype, span);
  Substitution own;
  Reduction reduction{kind, {}, {}, {}, span};
  for (const Index& index : indices) {
    Index fresh{make_var(index.var->name, kIndex, index.var->span), index.extent};
    own.emplace(index.var.get(), fresh.var);
    reduction.indices.push_back(std::move(fresh));
  }
  // What the body names of reductions may use the indices too; then it is renewed with them.
  IndexExpr out;
  for (const Reduction& inner : reductions_used(body.value, body.reductions)) {
    Reduction copy = inner;
    copy.body = substitute(inner.body, own);
    if (copy.body != inner.body) {
      copy.result = make_var(inner.result->name, inner.result->dtype, inner.result->span);
      own.emplace(inner.result.get(), copy.result);
    }
    out.reductions.push_back(std::move(copy));
  }
  reduction.body = substitute(body.value, own);
  reduction.result = make_var("acc", accumulator(body.value->dtype), span);
  out.value = reduction.result;
  out.reductions.push_back(std::move(reduction));
  return out;
}

std::vector<Reduction> merge(std::vector<Reduction> a, const std::vector<Reduction>& b) {
  for (const Reduction& each : b) {
    const bool known = std::any_of(a.begin(), a.end(), [&](const Reduction& r) { return r.result == each.result; });
    if (!known) a.push_back(each);
  }
  return a;
}

namespace {

/// The operands as those of ir/expr; what they name of reductions is added to `reductions`.
std::vector<Operand> plain(const std::vector<IndexOperand>& args, std::vector<Reduction>& reductions) {
  std::vector<Operand> out;
  for (const IndexOperand& arg : args) {
    if (const IndexExpr* e = std::get_if<IndexExpr>(&arg)) {
      reductions = merge(std::move(reductions), e->reductions);
      out.push_back(e->value);
    } else {
      std::visit(
          [&](const auto& value) {
            if constexpr (!std::is_same_v<std::decay_t<decltype(value)>, IndexExpr>) out.push_back(value);
          },
          arg);
    }
  }
  return out;
}

std::vector<Expr> plain_subscripts(const std::vector<IndexOperand>& args, std::vector<Reduction>& reductions) {
  std::vector<Expr> out;
  for (const Operand& each : plain(args, reductions)) {
    const Expr* e = std::get_if<Expr>(&each);
    out.push_back(e ? *e : constant_of(each, kIndex));
  }
  return out;
}

}  // namespace

IndexExpr apply(Op op, const std::vector<IndexOperand>& args, Span span) {
  IndexExpr out;
  const std::vector<Operand> operands = plain(args, out.reductions);
  out.value = apply_operands(op, operands, span);
  return out;
}

IndexExpr cast(const IndexExpr& value, DType dtype, Span span) {
  return {helve::cast(value.value, dtype, span), value.reductions};
}

IndexExpr load(const BufferRef& buffer, const std::vector<IndexOperand>& subscripts, Span span) {
  IndexExpr out;
  out.value = helve::load(buffer, plain_subscripts(subscripts, out.reductions), span);
  return out;
}

Assignment assign(BufferRef target, const std::vector<IndexOperand>& left, IndexExpr value, std::vector<Index> indices,
                  std::optional<ReduceKind> update, Span span) {
  std::vector<Reduction> none;
  std::vector<Expr> subscripts = plain_subscripts(left, none);
  check_index_types(*target, subscripts, span);
  for (size_t d = 0; d < subscripts.size(); ++d) {
    const Var* var = as<Var>(subscripts[d]);
    const bool is_index = var && find_index(indices, var);
    const bool repeats =
        is_index && std::find(subscripts.begin(), subscripts.begin() + d, subscripts[d]) != subscripts.begin() + d;
    if (is_index && !repeats) continue;
    const std::string text =
        repeats ? fmt::format("'{}' again", var->name) : fmt::format("'{}'", brief_text(subscripts[d]));
    throw UserError(Code::LeftSubscript, span,
                    {{"dim", static_cast<int64_t>(d)}, {"tensor", target->name}, {"text", text}});
  }
  // Converted only when it is stored: sums are rounded once.
  convert_for_store(value.value, target->dtype, value.value->span.known() ? value.value->span : span);
  return {std::move(target), std::move(subscripts), std::move(value), std::move(indices), update, span};
}

std::vector<BufferRef> buffers_read(const IndexExpr& expr) {
  std::vector<BufferRef> out;
  walk_all(expr, [&](const Expr& e) {
    const Load* load = as<Load>(e);
    if (!load) return;
    BufferRef buffer = buffer_ref(load->buffer);
    if (std::find(out.begin(), out.end(), buffer) == out.end()) out.push_back(std::move(buffer));
  });
  return out;
}

}  // namespace helve::notation
