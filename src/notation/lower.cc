// One assignment of index notation as a kernel.
// Every element is computed by itself, reductions from the inside out: a program that is right by construction, and
// that schedules start from.
//
//   y[i] = b[i] + A[i, j] * x[j]
//
//   with T.Kernel(M, threads=32) as i:
//       acc = T.alloc_local((1,), "float32")
//       acc[0] = 0.0
//       for j in T.serial(N):
//           T.update(acc[0], A[i, j] * x[j], "add")
//       y[i] = b[i] + acc[0]
#include <algorithm>
#include <unordered_set>

#include "helve/ir/expr/visit.h"
#include "helve/notation/index_notation.h"
#include "walk.h"

namespace helve::notation {

namespace {

constexpr int64_t kThreads = 128;       // of a block that has a loop to divide
constexpr int64_t kSerialThreads = 32;  // of one that has none

using Extents = std::vector<std::pair<VarRef, Expr>>;

/// The element combined with `value`; the order of such stores does not matter.
Stmt combine_into(ReduceKind kind, const BufferRef& buffer, const std::vector<Expr>& element, const Expr& value,
                  Span span) {
  const Expr term = helve::cast(value, buffer->dtype);
  switch (kind) {
    case ReduceKind::Sum: return update(buffer, element, term, StoreMode::Add, span);
    case ReduceKind::Prod: return update(buffer, element, term, StoreMode::Mul, span);
    case ReduceKind::Max: return update(buffer, element, term, StoreMode::Max, span);
    case ReduceKind::Min: return update(buffer, element, term, StoreMode::Min, span);
    default: return store(buffer, element, combine(kind, helve::load(buffer, element, span), term), span);
  }
}

class Element {
 public:
  Element(const Assignment& assignment, const Extents& extents) : assignment_(assignment), extents_(extents) {}

  /// The statements that compute one element of the left side.
  Stmt statements() {
    const Expr& value = assignment_.value.value;
    const Reduction* whole = reduction_of(value);
    if (whole && accumulates_in_place(*whole)) {
      if (!assignment_.update) out_.push_back(initial(*whole, assignment_.target, assignment_.subscripts));
      reduce_into(*whole, assignment_.target, assignment_.subscripts, {});
      return seq(std::move(out_));
    }
    const Expr result = emit(value, {});
    out_.push_back(assignment_.update
                       ? combine_into(*assignment_.update, assignment_.target, assignment_.subscripts,
                                      convert_for_store(result, assignment_.target->dtype, result->span), span())
                       : store(assignment_.target, assignment_.subscripts, result, span()));
    return seq(std::move(out_));
  }

 private:
  Span span() const { return assignment_.span; }

  const Reduction* reduction_of(const Expr& e) const {
    const Var* var = as<Var>(e);
    return var ? find_reduction(assignment_.value.reductions, var) : nullptr;
  }

  /// May the left side be the accumulator? Only if nothing is rounded, and old contents combine by the same operator.
  bool accumulates_in_place(const Reduction& r) const {
    return r.result->dtype == assignment_.target->dtype && (!assignment_.update || *assignment_.update == r.kind);
  }

  Stmt initial(const Reduction& r, const BufferRef& buffer, const std::vector<Expr>& element) const {
    return store(buffer, element, identity_imm(r.kind, buffer->dtype), span());
  }

  const Expr& extent(const Index& index) const {
    const auto found =
        std::find_if(extents_.begin(), extents_.end(), [&](const auto& each) { return each.first == index.var; });
    HELVE_CHECK(found != extents_.end(), "an index of a reduction has an extent");
    return found->second;
  }

  /// Appends the loops that combine the terms of a reduction into an element.
  void reduce_into(const Reduction& r, const BufferRef& buffer, const std::vector<Expr>& element, Substitution known) {
    std::vector<VarRef> vars;
    for (const Index& index : r.indices) {
      vars.push_back(make_var(index.var->name, kIndex, index.var->span));
      known.insert_or_assign(index.var.get(), vars.back());
    }
    std::vector<Stmt> around = std::exchange(out_, {});
    const Expr term = emit(r.body, std::move(known));
    out_.push_back(combine_into(r.kind, buffer, element, term, span()));
    Stmt body = seq(std::exchange(out_, std::move(around)));
    for (size_t d = vars.size(); d-- > 0;)
      body = for_loop(LoopKind::Serial, vars[d], extent(r.indices[d]), body, span());
    out_.push_back(std::move(body));
  }

  /// `e` with the results of its reductions, which are computed first. `known`: what variables stand for.
  Expr emit(const Expr& e, Substitution known) {
    std::vector<const Reduction*> needed;
    walk(e, [&](const Expr& part) {
      const Reduction* r = reduction_of(part);
      if (r && !known.contains(r->result.get()) && std::find(needed.begin(), needed.end(), r) == needed.end())
        needed.push_back(r);
    });
    for (const Reduction* r : needed) {
      const BufferRef accumulator =
          make_buffer("acc", r->result->dtype, MemoryScope::Local, {int_imm(1)}, {}, {}, r->span);
      const std::vector<Expr> element{int_imm(0)};
      out_.push_back(alloc(accumulator, span()));
      out_.push_back(initial(*r, accumulator, element));
      reduce_into(*r, accumulator, element, known);
      known.insert_or_assign(r->result.get(), helve::load(accumulator, element, span()));
    }
    return substitute(e, known);
  }

  const Assignment& assignment_;
  const Extents& extents_;
  std::vector<Stmt> out_;
};

}  // namespace

Stmt lower(const Assignment& assignment) {
  const Assignment placed = place_sums(assignment);
  const Extents extents = index_extents(placed);
  Stmt body = Element(placed, extents).statements();
  const size_t rank = placed.subscripts.size();
  std::vector<VarRef> vars;
  for (size_t d = 0; d < rank; ++d) vars.push_back(extents[d].first);
  std::vector<Expr> sizes;
  for (size_t d = 0; d < rank; ++d) sizes.push_back(extents[d].second);
  if (rank == 0) return kernel({make_var("block")}, {int_imm(1)}, kSerialThreads, body, placed.span);
  if (rank == 1) return kernel(vars, sizes, kSerialThreads, body, placed.span);
  body = for_loop(LoopKind::Parallel, vars.back(), sizes.back(), body, placed.span);
  vars.pop_back(), sizes.pop_back();
  return kernel(std::move(vars), std::move(sizes), kThreads, body, placed.span);
}

}  // namespace helve::notation
