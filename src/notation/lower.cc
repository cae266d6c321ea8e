// One assignment of index notation as kernels.
// Every element is computed by itself, reductions from the inside out: a program that is right by construction, and
// that schedules start from. Elements are what threads divide: a block has some of them, and a parallel loop over them.
//
//   y[i] = b[i] + A[i, j] * x[j]
//
//   with T.Kernel(T.ceildiv(M, 128), threads=128) as i_1:
//       for i_2 in T.Parallel(128):
//           if i_1 * 128 + i_2 < M:
//               acc = T.alloc_local((1,), "float32")
//               acc[0] = 0.0
//               for j in T.serial(N):
//                   T.update(acc[0], A[i_1 * 128 + i_2, j] * x[j], "add")
//               y[i_1 * 128 + i_2] = b[i_1 * 128 + i_2] + acc[0]
#include <algorithm>
#include <optional>
#include <utility>

#include "helve/ir/expr/visit.h"
#include "helve/layout/warp.h"
#include "helve/notation/index_notation.h"
#include "walk.h"

namespace helve::notation {

namespace {

constexpr int64_t kThreads = 128;  // of a block, at most; a block has whole warps
constexpr int64_t kElements = 1024;  // of a block whose elements are cheap; with reductions one a thread

/// The element combined with `value`, which is rounded only with the result; the order of such stores does not matter.
Stmt combine_into(ReduceKind kind, const BufferRef& buffer, const std::vector<Expr>& element, const Expr& value,
                  Span span) {
  switch (kind) {
    case ReduceKind::Sum: return update(buffer, element, value, StoreMode::Add, span);
    case ReduceKind::Prod: return update(buffer, element, value, StoreMode::Mul, span);
    case ReduceKind::Max: return update(buffer, element, value, StoreMode::Max, span);
    case ReduceKind::Min: return update(buffer, element, value, StoreMode::Min, span);
    case ReduceKind::AbsMax: return update(buffer, element, helve::apply(Op::Abs, {value}), StoreMode::Max, span);
    case ReduceKind::Any:
    case ReduceKind::All: return store(buffer, element, combine(kind, helve::load(buffer, element, span), value), span);
  }
  __builtin_unreachable();
}

class Element {
 public:
  Element(const Assignment& assignment, const Extents& extents) : assignment_(assignment), extents_(extents) {}

  /// The statements that compute the element of the left side at `subscripts`, `known` for the indices.
  Stmt statements(const std::vector<Expr>& subscripts, Substitution known) {
    const BufferRef& target = assignment_.target;
    const Expr& value = assignment_.value.value;
    const Reduction* whole = reduction_of(value);
    if (whole && accumulates_in_place(*whole)) {
      known = reduce_inside(whole->body, std::move(known));
      if (!assignment_.update) out_.push_back(initial(*whole, target, subscripts));
      reduce_into(*whole, target, subscripts, std::move(known));
      return seq(std::move(out_));
    }
    known = reduce_inside(value, std::move(known));
    const Expr result = substitute(value, known);
    out_.push_back(assignment_.update ? combine_into(*assignment_.update, target, subscripts, result, span())
                                      : store(target, subscripts, result, span()));
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

  /// Appends the loops that combine the terms of a reduction into an element.
  void reduce_into(const Reduction& r, const BufferRef& buffer, const std::vector<Expr>& element, Substitution known) {
    std::vector<VarRef> vars;
    for (const Index& index : r.indices) {
      vars.push_back(make_var(index.var->name, kIndex, index.var->span));
      known.insert_or_assign(index.var.get(), vars.back());
    }
    std::vector<Stmt> around = std::exchange(out_, {});
    known = reduce_inside(r.body, std::move(known));
    out_.push_back(combine_into(r.kind, buffer, element, substitute(r.body, known), span()));
    Stmt body = seq(std::exchange(out_, std::move(around)));
    for (size_t d = vars.size(); d-- > 0;)
      body = for_loop(LoopKind::Serial, vars[d], extent_of(extents_, r.indices[d]), body, span());
    out_.push_back(std::move(body));
  }

  /// Appends the reductions that `e` uses and that need no loop but those around, and adds their results to `known`.
  Substitution reduce_inside(const Expr& e, Substitution known) {
    for (const Reduction& r : reductions_used(e, assignment_.value.reductions)) {
      if (known.contains(r.result.get()) || !is_known(r, known)) continue;
      const BufferRef accumulator =
          make_buffer("acc", r.result->dtype, MemoryScope::Local, {int_imm(1)}, {}, {}, r.span);
      const std::vector<Expr> element{int_imm(0)};
      out_.push_back(alloc(accumulator, span()));
      out_.push_back(initial(r, accumulator, element));
      reduce_into(r, accumulator, element, known);
      known.insert_or_assign(r.result.get(), helve::load(accumulator, element, span()));
    }
    return known;
  }

  /// Are all indices that `r` does not bind, itself or inside of it, those of loops around?
  bool is_known(const Reduction& r, const Substitution& known) const {
    const std::vector<Reduction>& all = assignment_.value.reductions;
    std::vector<Index> bound = r.indices, others;
    for (const Reduction& inner : reductions_used(r.body, all))
      bound.insert(bound.end(), inner.indices.begin(), inner.indices.end());
    for (const Reduction& other : all) others.insert(others.end(), other.indices.begin(), other.indices.end());
    const std::vector<Index> used = indices_used(r.body, all, others);
    return std::all_of(used.begin(), used.end(), [&](const Index& index) {
      return find_index(bound, index.var.get()) || known.contains(index.var.get());
    });
  }

  const Assignment& assignment_;
  const Extents& extents_;
  std::vector<Stmt> out_;
};

/// The elements of the left side, divided among blocks: the last dimensions whole while they are small, and of the
/// dimension in front of them some at a time, if without it a block had few elements.
class Blocks {
 public:
  Blocks(const Extents& left, int64_t wanted) : left_(left) {
    while (whole_ > 0) {
      const int64_t* size = int_value(extent(whole_ - 1));
      if (!size || *size > wanted / elements_) break;
      elements_ *= std::max<int64_t>(*size, 1);
      --whole_;
    }
    if (whole_ > 0 && elements_ < kWarp) {
      some_ = (wanted + elements_ - 1) / elements_;
      elements_ *= *some_;
    }
  }

  /// The kernel whose elements are `element(subscripts, what the indices are)`.
  template <typename F>
  Stmt kernel_of(F&& element, Span span) const {
    std::vector<VarRef> blocks, loops;
    std::vector<Expr> grid, extents, subscripts;
    Expr guard;
    for (size_t d = 0; d < left_.size(); ++d) {
      const VarRef& index = left_[d].first;
      const bool divided = some_ && d + 1 == whole_;
      if (d < whole_) blocks.push_back(make_var(index->name, kIndex, index->span));
      if (d < whole_) grid.push_back(divided ? ceil_div(extent(d), int_imm(*some_)) : extent(d));
      if (d >= whole_ || divided) loops.push_back(make_var(index->name, kIndex, index->span));
      if (d >= whole_ || divided) extents.push_back(divided ? int_imm(*some_) : extent(d));
      subscripts.push_back(divided ? blocks.back() * int_imm(*some_) + loops.back()
                                   : Expr(d < whole_ ? blocks.back() : loops.back()));
      const int64_t* size = int_value(extent(d));
      if (divided && !(size && *size % *some_ == 0)) guard = less(subscripts.back(), extent(d));
    }
    Substitution known;
    for (size_t d = 0; d < left_.size(); ++d) known.emplace(left_[d].first.get(), subscripts[d]);
    Stmt body = element(subscripts, std::move(known));
    if (guard) body = if_then(guard, body, {}, span);
    if (!loops.empty()) {
      const std::vector<Expr> begins(loops.size(), int_imm(0));
      body = for_loop(LoopKind::Parallel, std::move(loops), begins, std::move(extents), body, 1, span);
    }
    if (blocks.empty()) blocks.push_back(make_var("block")), grid.push_back(int_imm(1));
    const int64_t threads = std::min((elements_ + kWarp - 1) / kWarp * kWarp, kThreads);
    return kernel(std::move(blocks), std::move(grid), threads, body, span);
  }

 private:
  const Expr& extent(size_t d) const { return left_[d].second; }

  const Extents left_;
  size_t whole_ = left_.size();  ///< dimensions from this one on are whole in a block
  std::optional<int64_t> some_;  ///< how many of the dimension before them a block has, if more than one
  int64_t elements_ = 1;  ///< of a block
};

/// One block, whose elements are `element(subscripts, what the indices are)` in serial loops.
template <typename F>
Stmt nest_of(const Extents& left, F&& element, Span span) {
  std::vector<VarRef> vars;
  Substitution known;
  for (const auto& [index, extent] : left) {
    vars.push_back(make_var(index->name, kIndex, index->span));
    known.emplace(index.get(), vars.back());
  }
  Stmt body = element(std::vector<Expr>(vars.begin(), vars.end()), std::move(known));
  for (size_t d = vars.size(); d-- > 0;) body = for_loop(LoopKind::Serial, vars[d], left[d].second, body, span);
  return kernel({make_var("block")}, {int_imm(1)}, kThreads, body, span);
}

Stmt kernel_of(const Assignment& statement, Form form) {
  const Extents extents = index_extents(statement);
  const size_t rank = statement.subscripts.size();
  const auto element = [&](const std::vector<Expr>& subscripts, Substitution known) {
    return Element(statement, extents).statements(subscripts, std::move(known));
  };
  const Extents left(extents.begin(), extents.begin() + static_cast<int64_t>(rank));
  if (form == Form::Nest) return nest_of(left, element, statement.span);
  return Blocks(left, extents.size() > rank ? kThreads : kElements).kernel_of(element, statement.span);
}

}  // namespace

Stmt lower(const Assignment& assignment, Form form) {
  std::vector<Stmt> out;
  for (const Assignment& statement : hoist(place_sums(assignment))) {
    if (statement.target != assignment.target) out.push_back(alloc(statement.target, statement.span));
    out.push_back(kernel_of(statement, form));
  }
  return seq(std::move(out));
}

}  // namespace helve::notation
