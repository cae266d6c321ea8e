// Is a loop over vectors a function of the position?
// With l = position - v * lanes substituted into a subscript, v must cancel: then it depends on the position alone, for
// all values of v and l; likewise for several loops. Buffers that an iteration allocates belong to its lanes and are
// not shifted.
#include "helve/analysis/vector_walk.h"

#include <algorithm>
#include <unordered_set>

#include "helve/arith/simplify.h"
#include "helve/arith/sum.h"
#include "helve/ir/tensor/visit.h"

namespace helve {

namespace {

class Walk {
 public:
  std::optional<VectorWalk> read(const For& loop) {
    if (!enter(loop) || !vectors_) return std::nullopt;
    const int64_t* lanes = int_value(vectors_->extents[0]);
    if (!lanes || !begins_at_zero(*vectors_)) return std::nullopt;
    lane_ = vectors_->vars[0];
    count_positions(*lanes);
    const Stmt body = statement(vectors_->body);
    if (!good_ || !store_ || read_.contains(store_->buffer.get())) return std::nullopt;
    int64_t inner = 1;
    for (int64_t extent : extents_) inner *= extent;
    return VectorWalk{simplify(loop.begins[0] * int_imm(inner * *lanes)),
                      simplify(loop.extents[0] * int_imm(inner)),
                      *lanes,
                      position_,
                      lane_,
                      allocations_,
                      body,
                      store_};
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
    const For* inner = as<For>(loop.body);
    return inner && inner->loop != LoopKind::Vectorized ? enter(*inner) : find_vectors(loop.body);
  }

  /// Allocations and one loop over lanes.
  bool find_vectors(const Stmt& s) {
    if (const Seq* n = as<Seq>(s)) {
      return std::all_of(n->stmts.begin(), n->stmts.end(), [&](const Stmt& part) { return find_vectors(part); });
    }
    if (const Alloc* n = as<Alloc>(s)) {
      allocations_.push_back(s);
      return own_.insert(n->buffer.get()).second;
    }
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
    if (const Prefetch* n = as<Prefetch>(s)) return prefetch(*n);
    const Store* n = as<Store>(s);
    if (!n || n->mode != StoreMode::Write) return refuse(s);
    const Ref<Store> out = copy_with(*n, [&](Store& copy) {
      copy.value = value(n->value);
      subscripts(*n->buffer, &copy.indices);
    });
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

  /// An index by its position: it must not depend on the vector to which it belongs.
  std::optional<Expr> by_position(const Expr& index) const {
    if (has_load(index)) return std::nullopt;
    const bool moves = mentions(index, lane_.get()) || of_outer_loops(index);
    const Expr out = moves ? expr_of(sum_of(substitute(index, lane_of_position_))) : index;
    return of_outer_loops(out) ? std::nullopt : std::optional(out);
  }

  Expr position(const Expr& index) {
    const std::optional<Expr> out = by_position(index);
    good_ &= out.has_value();
    return out.value_or(index);
  }

  /// One that is not known by the position is left out.
  Stmt prefetch(const Prefetch& n) const {
    std::vector<Expr> indices;
    for (const Expr& index : n.indices) {
      const std::optional<Expr> out = by_position(index);
      if (!out) return seq({}, n.span);
      indices.push_back(*out);
    }
    return helve::prefetch(n.buffer, std::move(indices), n.span);
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
  std::vector<Stmt> allocations_;
  VarRef lane_, position_ = make_var("position");
  Substitution lane_of_position_;
  const For* vectors_ = nullptr;
  const Store* store_ = nullptr;
  bool good_ = true;
  std::unordered_set<const Buffer*> own_;  ///< of one iteration
  std::unordered_set<const Buffer*> read_;
};

}  // namespace

std::optional<VectorWalk> vector_walk(const For& loop) { return Walk().read(loop); }

}  // namespace helve
