// How many values the indices of a statement have.
// An index that subscripts dimensions alone runs over all of them, so they are equal or the statement is refused.
#include <fmt/format.h>

#include <algorithm>

#include "helve/arith/simplify.h"
#include "helve/ir/expr/text.h"
#include "helve/notation/index_notation.h"
#include "walk.h"

namespace helve::notation {

namespace {

/// One dimension that an index subscripts alone.
struct Use {
  BufferRef buffer;
  size_t dim;
  Span span;
  const Expr& extent() const { return buffer->shape[dim]; }
};

class Ranges {
 public:
  void add(const Index& index) {
    if (!find_index(indices_, index.var.get())) indices_.push_back(index), uses_.emplace_back();
  }

  void add_access(const BufferRef& buffer, const std::vector<Expr>& subscripts, Span span) {
    for (size_t d = 0; d < subscripts.size(); ++d) {
      const Var* var = as<Var>(subscripts[d]);
      const Index* index = var ? find_index(indices_, var) : nullptr;
      if (index) uses_[index - indices_.data()].push_back({buffer, d, span});
    }
  }

  std::vector<std::pair<VarRef, Expr>> extents() const {
    Extents out;
    for (size_t i = 0; i < indices_.size(); ++i) out.emplace_back(indices_[i].var, extent(indices_[i], uses_[i]));
    return out;
  }

 private:
  static Expr extent(const Index& index, const std::vector<Use>& uses) {
    if (index.extent) return index.extent;
    if (uses.empty()) {
      throw UserError(Code::IndexWithoutRange, index.var->span, {{"index", index.var->name}});
    }
    for (const Use& use : uses) {
      if (!can_prove(helve::apply(Op::Eq, {use.extent(), uses[0].extent()}))) refuse(index, uses[0], use);
    }
    return uses[0].extent();
  }

  [[noreturn]] static void refuse(const Index& index, const Use& first, const Use& other) {
    throw UserError(Code::IndexExtents, other.span,
                    {{"index", index.var->name},
                     {"left", to_text(first.extent())},
                     {"first", fmt::format("'{}'", first.buffer->name)},
                     {"first_dim", static_cast<int64_t>(first.dim)},
                     {"right", to_text(other.extent())},
                     {"second", fmt::format("'{}'", other.buffer->name)},
                     {"second_dim", static_cast<int64_t>(other.dim)}},
                    notes(first, other), fixes(first, other));
  }

  /// Two variables may have one name.
  static std::vector<std::string> fixes(const Use& first, const Use& other) {
    const Var* var = as<Var>(first.extent());
    if (!var || to_text(first.extent()) != to_text(other.extent())) return {};
    return {fmt::format("each T.dyn is an extent of its own: write {0} = T.dyn(\"{0}\") once, and {0} in both shapes",
                        var->name)};
  }

  static std::vector<Note> notes(const Use& first, const Use& other) {
    std::vector<Note> out{declaration_note(*first.buffer)};
    if (other.buffer != first.buffer) out.push_back(declaration_note(*other.buffer));
    return out;
  }

  std::vector<Index> indices_;
  std::vector<std::vector<Use>> uses_;
};

}  // namespace

Extents index_extents(const Assignment& assignment) {
  Ranges ranges;
  // Sums have taken over the indices that the left side lacks.
  for (const Expr& subscript : assignment.subscripts) ranges.add(*find_index(assignment.indices, as<Var>(subscript)));
  for (const Reduction& reduction : assignment.value.reductions) {
    for (const Index& index : reduction.indices) ranges.add(index);
  }
  ranges.add_access(assignment.target, assignment.subscripts, assignment.span);
  walk_all(assignment.value, [&](const Expr& e) {
    if (const Load* load = as<Load>(e)) ranges.add_access(buffer_ref(load->buffer), load->indices, e->span);
  });
  return ranges.extents();
}

}  // namespace helve::notation
