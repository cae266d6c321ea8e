// Is a loop over vectors a function of the position?
// With l = position - v * lanes substituted into a subscript, v must cancel: then it depends on the position alone, for
// all values of v and l; likewise for several loops. Buffers that an iteration allocates belong to its lanes and are
// not shifted.
#include "helve/analysis/vector_walk.h"

#include <algorithm>
#include <unordered_set>

#include "helve/arith/sum.h"
#include "helve/ir/tensor/visit.h"

namespace helve {

namespace {

class Walk {
 public:
  explicit Walk(VarRef shift) : shift_(std::move(shift)) {}

  std::optional<VectorWalk> read(const For& loop) {
    if (!enter(loop) || !vectors_) return std::nullopt;
    const int64_t* lanes = int_value(vectors_->extents[0]);
    if (!lanes || !begins_at_zero(*vectors_)) return std::nullopt;
    lane_ = vectors_->vars[0];
    count_positions(*lanes);
    const Ref<For> vectors = copy_with(*vectors_, [&](For& copy) { copy.body = statement(vectors_->body); });
    if (!good_ || !store_ || read_.contains(store_->buffer.get())) return std::nullopt;
    const Stmt body = rewrite(body_, [&](const Stmt& s) { return s.get() == vectors_ ? Stmt(vectors) : s; });
    return VectorWalk{vars_, extents_, body, vectors_, vectors.get(), store_, *lanes};
  }

 private:
  static bool begins_at_zero(const For& loop) {
    const int64_t* begin = int_value(loop.begins[0]);
    return begin && *begin == 0;
  }

  bool enter(const For& loop) {
    const bool counts = loop.loop == LoopKind::Serial || loop.loop == LoopKind::Parallel;
    if (!counts || loop.vars.size() != 1) return false;
    if (!vars_.empty()) {
      const int64_t* extent = int_value(loop.extents[0]);
      if (!extent || *extent < 1 || !begins_at_zero(loop)) return false;
      extents_.push_back(*extent);
    }
    vars_.push_back(loop.vars[0]);
    body_ = loop.body;
    const For* inner = as<For>(loop.body);
    return inner && inner->loop != LoopKind::Vectorized ? enter(*inner) : find_vectors(loop.body);
  }

  /// Allocations and one loop over lanes.
  bool find_vectors(const Stmt& s) {
    if (const Seq* n = as<Seq>(s)) {
      return std::all_of(n->stmts.begin(), n->stmts.end(), [&](const Stmt& part) { return find_vectors(part); });
    }
    if (const Alloc* n = as<Alloc>(s)) return own_.insert(n->buffer.get()).second;
    const For* loop = as<For>(s);
    if (!loop || loop->loop != LoopKind::Vectorized || loop->vars.size() != 1 || vectors_) return false;
    vectors_ = loop;
    return true;
  }

  /// Expresses the lane by the position.
  void count_positions(int64_t lanes) {
    Expr vector = vars_[0];
    for (size_t k = 1; k < vars_.size(); ++k) vector = vector * int_imm(extents_[k - 1]) + Expr(vars_[k]);
    lane_of_position_ = {{lane_.get(), Expr(position_) - vector * int_imm(lanes)}};
  }

  bool of_outer_loops(const Expr& e) const {
    return std::any_of(vars_.begin(), vars_.end(), [&](const VarRef& var) { return mentions(e, var.get()); });
  }

  /// Only stores are accepted: anything else could depend on the order of lanes.
  Stmt statement(const Stmt& s) {
    if (as<Seq>(s)) return map_parts(s, [](const Expr& e) { return e; }, [&](const Stmt& p) { return statement(p); });
    const Store* n = as<Store>(s);
    if (!n || n->is_atomic()) return refuse(s);
    Ref<Store> out = make_ref<Store>(*n);
    out->value = value(n->value);
    subscripts(*n->buffer, &out->indices);
    if (!own_.contains(n->buffer.get())) {
      if (store_ || !contiguous(*n->buffer, n->indices)) return refuse(s);
      store_ = out.get();
    }
    return Stmt(out);
  }

  Stmt refuse(const Stmt& s) {
    good_ = false;
    return s;
  }

  Expr value(const Expr& e) {
    if (e->dtype.is_index()) return position(e);
    const Load* load = as<Load>(e);
    if (!load) return map_children(e, [&](const Expr& child) { return value(child); });
    read_.insert(&buffer_of(load->buffer));
    return Expr(copy_with(*load, [&](Load& out) { subscripts(buffer_of(load->buffer), &out.indices); }));
  }

  /// A shifted index: it must not depend on the vector to which it belongs.
  Expr position(const Expr& index) {
    good_ &= !has_load(index) && !of_outer_loops(expr_of(sum_of(substitute(index, lane_of_position_))));
    return substitute(index, {{lane_.get(), Expr(lane_) + Expr(shift_)}});
  }

  void subscripts(const Buffer& buffer, std::vector<Expr>* indices) {
    for (Expr& index : *indices) {
      if (own_.contains(&buffer)) {
        good_ &= !has_load(index) && !of_outer_loops(index);
      } else {
        index = position(index);
      }
    }
  }

  /// Consecutive positions are consecutive elements.
  bool contiguous(const Buffer& buffer, const std::vector<Expr>& indices) const {
    if (indices.empty()) return false;
    for (size_t d = 0; d + 1 < indices.size(); ++d) {
      if (mentions(indices[d], lane_.get())) return false;
    }
    const int64_t* stride = buffer.strides.empty() ? nullptr : int_value(buffer.strides.back());
    if (!buffer.strides.empty() && (!stride || *stride != 1)) return false;
    return coefficient_of(sum_of(substitute(indices.back(), lane_of_position_)), position_.get()) == 1;
  }

  std::vector<VarRef> vars_;
  std::vector<int64_t> extents_;
  Stmt body_;
  VarRef lane_, shift_, position_ = make_var("position");
  Substitution lane_of_position_;
  const For* vectors_ = nullptr;
  const Store* store_ = nullptr;
  bool good_ = true;
  std::unordered_set<const Buffer*> own_;  ///< of one iteration
  std::unordered_set<const Buffer*> read_;
};

}  // namespace

std::optional<VectorWalk> vector_walk(const For& loop, const VarRef& shift) { return Walk(shift).read(loop); }

}  // namespace helve
